"""A judge that is ready for one sample after the other, outside any run; nothing that it judges is kept."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

from monitorbench.config.engine import Engine, with_states
from monitorbench.guardrail.calibrated import ServedBaseline, ServedJudge
from monitorbench.judging.open import open_prompted
from monitorbench.judging.pair.judgement import Judgement, Judges, sample_of
from monitorbench.judging.prompted import PromptedModel
from monitorbench.judging.served import reach
from monitorbench.prompts.few_shot import Shots
from monitorbench.records import Label, Message, Role, Sample, UnscoredReason
from monitorbench.scoring.baselines import THRESHOLD, fitted_baseline, train_samples

_MOST_RETRIES = 1
"""Of a request to an endpoint: whoever waits for a guardrail has no time for more."""


class Opened(NamedTuple):
    """A judge, and what gives its memory back."""

    judges: Judges
    close: Callable[[], None]


def open_part(part: ServedJudge | ServedBaseline, seconds: float) -> Opened:
    """Open a judge; one of this process is loaded and tried, an endpoint is not asked anything yet.

    `seconds` is what an answer may take at most. Raises what `judging.open.open_prompted` raises, and
    `UserError` for a server that is not reached.
    """
    if isinstance(part, ServedBaseline):
        return Opened(_by(fitted_baseline(train_samples(part.data), part.name)), lambda: None)
    study, spec = reach(part.study), part.spec
    if spec.monitor.head is not None:
        from monitorbench.judging.pair.judge import open_judges

        stack = ExitStack()
        engine = with_states(study.engine)
        judges = stack.enter_context(open_judges(spec.monitor, engine, spec.prompt, study.paths.models))
        return Opened(judges, stack.close)
    model = open_prompted(
        spec.monitor,
        _in_time(study.engine, seconds),
        spec.prompt,
        study.paths.models,
        f"monitor={spec.monitor.name} prompt={spec.prompt.name}",
        route=spec.route,
    )
    found = _asks(model, spec.shots)
    if study.engine.takes_token_ids:
        try:
            model.prepare(model.question(TRIAL, spec.shots.beside(TRIAL)))
            found(TRIAL)
        except BaseException:
            model.close()
            raise
    return Opened(found, model.close)


_SAID = (Message(role=Role.USER, content="?"),)
TRIAL = sample_of(_SAID, _SAID)
"""What a model is tried with."""


def _in_time(engine: Engine, seconds: float) -> Engine:
    """An endpoint that is given up in time; neither decides an answer."""
    if engine.takes_token_ids:
        return engine
    given: dict[str, float] = engine.model_dump(include={"timeout_seconds", "max_retries"})
    return engine.model_copy(
        update={
            "timeout_seconds": min(seconds, given["timeout_seconds"]),
            "max_retries": min(_MOST_RETRIES, int(given["max_retries"])),
        }
    )


def _asks(model: PromptedModel, shots: Shots) -> Judges:
    def judges(sample: Sample) -> Judgement:
        question = model.question(sample, shots.beside(sample))
        tokens = len(question.request.token_ids)
        if question.too_long:
            return Judgement(None, UnscoredReason.TOO_LONG, question.detail, None, None, tokens)
        ((_, reply),) = model.replies([question])
        _, answer, score = model.read(reply)
        return Judgement(
            answer.label, answer.unscored, reply.detail, score.score, None, reply.prompt_tokens or tokens
        )

    return judges


def _by(score: Callable[[Sample], float]) -> Judges:
    def judges(sample: Sample) -> Judgement:
        found = score(sample)
        label = Label.MISBEHAVIOR if found >= THRESHOLD else Label.BENIGN
        return Judgement(label, None, "", found, None, 0)

    return judges
