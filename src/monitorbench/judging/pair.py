"""A prompted model and a probe that reads its passes: judged with together, each pass of the model paid once.

In an evaluation each has a run of its own, the one that judging with it alone gives: found again, resumed,
combined and calibrated as any other.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from monitorbench.config.base import ConfigError
from monitorbench.config.engine import Engine, states_engine
from monitorbench.config.monitor import Monitor, Prompt
from monitorbench.config.study import Study
from monitorbench.corpus.build import ensure
from monitorbench.engines.protocol import Tap
from monitorbench.engines.stored.model_folder import load_config
from monitorbench.engines.stored.states import as_stored
from monitorbench.engines.weights import weights_folder
from monitorbench.judging.evaluate import Planned, evaluate, needed_splits, planned_evaluation
from monitorbench.judging.head import HeadJudge, fitting_head, unkept_rendering
from monitorbench.judging.identity import judge_identity
from monitorbench.judging.judge import Judge, JudgeSpec, Question
from monitorbench.judging.local import TokenJudge
from monitorbench.judging.open import open_prompt
from monitorbench.records import Sample, Verdict
from monitorbench.runs.files import DIRECTORY_LOCK, locked
from monitorbench.runs.verdict_log import VERDICTS, open_verdict_log


class PairJudge(Judge):
    """The model's verdicts; what the probe says of the same pass is noted right before each of them."""

    def __init__(
        self, judge: TokenJudge, probe: HeadJudge, depth: int, note: Callable[[Verdict], None]
    ) -> None:
        """`depth` is how many layers the model has."""
        super().__init__(judge.prompt)
        self.closing.callback(judge.close)
        self._judge, self._probe, self._depth, self._note = judge, probe, depth, note

    def question(self, sample: Sample) -> Question:
        """See `Judge.question`: the model's."""
        return self._judge.question(sample)

    def prepare(self, first: Question) -> float | None:
        """See `Judge.prepare`."""
        return self._judge.prepare(first)

    def ask(self, questions: Sequence[Question]) -> Iterator[tuple[int, Verdict]]:
        """See `Judge.ask`; the probe's seconds are its share of the pass, through its layer's depth."""
        of_probe = [self._probe.question(question.sample) for question in questions]
        reads = self._probe.head.read_from
        spans = tuple(question.request.response for question in of_probe)
        share = reads.layer / self._depth
        for index, reply in self._judge.replies(
            questions, Tap(reads.layer, reads.position, reads.window, spans)
        ):
            assert reply.states is not None
            states_NH = as_stored(reply.states, reads.storage)
            self._note(self._probe.on_states(of_probe[index], states_NH, reply.seconds * share))
            yield index, self._judge.verdict(questions[index], reply, self._judge.read(reply))


def open_pair(
    monitor: Monitor, engine: Engine, prompt: Prompt, models: Path, note: Callable[[Verdict], None]
) -> PairJudge:
    """The monitor with its `head_beside`; `note` gets the probe's verdicts.

    Raises what `open_prompt` raises, and `ConfigError` for a head of another monitor or prompt, and for a
    prompt or monitor that no probe can read.
    """
    if prompt.unit.by != "trajectory":
        raise ConfigError(
            f"prompt.unit.by={prompt.unit.by}: monitor.head_beside reads whole responses; expected trajectory"
        )
    engine = states_engine(monitor, engine, prompt)
    of_model, of_probe = monitor.without_probe(), monitor.probe_alone()
    head = fitting_head(of_probe, prompt)
    weights = weights_folder(monitor, models)
    probe = HeadJudge(
        head,
        prompt,
        unkept_rendering(head, weights, prompt, of_probe),
        monitor.context_tokens,
        judge_identity(of_probe, engine, prompt),
    )
    identity = judge_identity(of_model, engine, prompt)
    settings = f"monitor={monitor.name} prompt={prompt.name}"
    judge = open_prompt(of_model, engine, prompt, models, settings, identity=identity)
    assert isinstance(judge, TokenJudge)
    return PairJudge(judge, probe, load_config(weights).num_hidden_layers, note)


def evaluate_pair(study: Study) -> Path:
    """Judge with the model and with `monitor.head_beside`; returns the model's run, the probe's is printed.

    A sample whose verdict by one of them is there already is judged by the other alone. Raises what
    `evaluate` raises for either, and `ConfigError` for what no probe can read.
    """
    if study.adapters:
        raise ConfigError("adapters: monitor.head_beside reads the base's states; expected no adapters")
    states_engine(study.monitor, study.engine, study.prompt)
    of_model = study.model_copy(update={"monitor": study.monitor.without_probe()})
    of_probe = study.model_copy(update={"monitor": study.monitor.probe_alone()})
    data = ensure(study, needed_splits(study.evaluate, study.monitor.router, study.prompt.shots))
    model, probe = planned_evaluation(of_model, data), planned_evaluation(of_probe, data)
    if not (model.done or probe.done):
        _judge_together(study.monitor, of_model, probe)
    print(evaluate(of_probe), flush=True)
    return evaluate(of_model)


def _judge_together(monitor: Monitor, of_model: Study, probe: Planned) -> None:
    """Judge with the model, and put what the probe reads of its passes into the log of the probe's run."""
    with (
        locked(probe.run.path / DIRECTORY_LOCK),
        open_verdict_log(probe.run.path / VERDICTS) as log,
    ):

        def note(verdict: Verdict) -> None:
            if verdict.key not in log.entries:
                log.append(verdict)

        def opens(spec: JudgeSpec, models: Path, **of_endpoint: Any) -> Judge:
            return open_pair(monitor, spec.engine, spec.prompt, models, note)

        evaluate(of_model, opens)
