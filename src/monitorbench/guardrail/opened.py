"""A part of a calibrated monitor, opened as a judge outside any run; nothing that it judges is kept.

Promise: it is the judge that was calibrated, each time it is opened; an endpoint's answers are by the model
that they were by, as far as they name it, unless `engine.model_may_change` says otherwise.
"""

from collections.abc import Callable, Iterator, Sequence

from monitorbench.config.base import UserError
from monitorbench.config.engine import Engine
from monitorbench.engines.protocol import Reply
from monitorbench.guardrail.calibrated import ServedBaseline, ServedJudge
from monitorbench.judging.identity import RECORDED_PROMPT
from monitorbench.judging.judge import TRIAL, Judge, JudgeSpec, KnownModels, Question, Reading, judge_spec
from monitorbench.judging.open import open_judge
from monitorbench.judging.serving.served import reach
from monitorbench.prompts.parse import Answer, Score
from monitorbench.records import Label, Sample, Verdict
from monitorbench.runs.files import content_hash
from monitorbench.scoring.baselines import THRESHOLD, fitted_baseline, train_samples

_MOST_RETRIES = 1
"""Retries of a request to an endpoint: whoever waits for a guardrail has no time for more."""


def open_part(part: ServedJudge | ServedBaseline, seconds: float) -> Judge:
    """Open a judge; one of this process is loaded and tried, an endpoint is not asked anything yet.

    `seconds` is what an answer may take at most. Raises what `judging.open.open_judge` raises, and
    `UserError` for a server that is not reached, or where the judge is not the one that was calibrated.
    """
    if isinstance(part, ServedBaseline):
        return BaselineJudge(fitted_baseline(train_samples(part.data), part.name))
    study, spec = reach(part.study), part.spec
    _refuse_another(spec, study.engine)
    spec = spec._replace(engine=_in_time(study.engine, seconds))
    judge = open_judge(spec, study.paths.models, keeps_states=False)
    if not (study.engine.model_may_change or study.engine.server):
        judge.known_models = KnownModels(part.served_models)
    if not judge.is_remote:
        try:
            judge.verdicts([TRIAL])
        except BaseException:
            judge.close()
            raise
    return judge


class BaselineJudge(Judge):
    """A fitted baseline, which reads no prompt."""

    def __init__(self, score: Callable[[Sample], float]) -> None:
        """`score` is in [0, 1], the higher the likelier is misbehavior."""
        super().__init__(RECORDED_PROMPT)
        self._score = score

    def question(self, sample: Sample) -> Question:
        """See `Judge.question`."""
        return Question("", sample)

    def ask(self, questions: Sequence[Question]) -> Iterator[tuple[int, Verdict]]:
        """See `Judge.ask`."""
        for index, question in enumerate(questions):
            score = self._score(question.sample)
            label = Label.MISBEHAVIOR if score >= THRESHOLD else Label.BENIGN
            reply = Reply("", "baseline")
            yield index, self.verdict(question, reply, Reading("", Answer(label, None), Score(score, None)))


def _refuse_another(spec: JudgeSpec, engine: Engine) -> None:
    """A server of ours may have come back with another adapter, and weights on a disk be replaced."""
    now = judge_spec(spec.monitor, engine, spec.prompt, spec.shots, spec.route).identity
    if content_hash(now) == content_hash(spec.identity):
        return
    changed = sorted(name for name in {*now, *spec.identity} if now.get(name) != spec.identity.get(name))
    server = engine.server
    where = f"engine.server={server}" if server else f"monitor={spec.monitor.name}"
    raise UserError(
        f"{where}: no longer the judge that was calibrated (other {', '.join(changed)}); expected that one, "
        "or an operating_point that was calibrated for this one"
    )


def _in_time(engine: Engine, seconds: float) -> Engine:
    """An endpoint that is given up in time; neither decides an answer."""
    if engine.takes_token_ids:
        return engine
    limits: dict[str, float] = engine.model_dump(include={"timeout_seconds", "max_retries"})
    return engine.model_copy(
        update={
            "timeout_seconds": min(seconds, limits["timeout_seconds"]),
            "max_retries": min(_MOST_RETRIES, int(limits["max_retries"])),
        }
    )
