"""A judge that is ready for one sample after the other, outside any run; nothing that it judges is kept.

Promise: it is the judge that was calibrated, each time it is opened; an endpoint's answers are by the model
that they were by, as far as they name it, unless `engine.model_may_change` says otherwise.
"""

import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.engine import Engine, with_states
from monitorbench.guardrail.calibrated import ServedBaseline, ServedJudge
from monitorbench.judging.judge import JudgeSpec, judge_spec
from monitorbench.judging.open import open_prompted
from monitorbench.judging.pair.judgement import Judgement, Judges, sample_of
from monitorbench.judging.prompted import PromptedModel
from monitorbench.judging.served import reach
from monitorbench.prompts.few_shot import Shots
from monitorbench.records import Label, Message, Role, Sample, UnscoredReason
from monitorbench.runs.files import content_hash
from monitorbench.scoring.baselines import THRESHOLD, fitted_baseline, train_samples

_MOST_RETRIES = 1
"""Of a request to an endpoint: whoever waits for a guardrail has no time for more."""


class Opened(NamedTuple):
    """A judge, and what gives its memory back."""

    judges: Judges
    close: Callable[[], None]
    is_remote: bool = False
    """An endpoint: it may be closed while it is asked, which ends what is in flight."""


def open_part(part: ServedJudge | ServedBaseline, seconds: float) -> Opened:
    """Open a judge; one of this process is loaded and tried, an endpoint is not asked anything yet.

    `seconds` is what an answer may take at most. Raises what `judging.open.open_prompted` raises, and
    `UserError` for a server that is not reached, or where the judge is not the one that was calibrated.
    """
    if isinstance(part, ServedBaseline):
        return Opened(_by(fitted_baseline(train_samples(part.data), part.name)), lambda: None)
    study, spec = reach(part.study), part.spec
    _refuse_another(spec, study.engine)
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
    by = None if study.engine.model_may_change or study.engine.server else _By(part.served_models)
    found = _asks(model, spec.shots, by)
    if study.engine.takes_token_ids:
        try:
            model.prepare(model.question(TRIAL, spec.shots.beside(TRIAL)))
            found(TRIAL)
        except BaseException:
            model.close()
            raise
    return Opened(found, model.close, is_remote=not study.engine.takes_token_ids)


def _refuse_another(spec: JudgeSpec, engine: Engine) -> None:
    """A server of ours may have come back with another adapter, and weights on a disk be replaced."""
    now = judge_spec(spec.monitor, engine, spec.prompt, spec.shots, spec.route).identity
    if content_hash(now) == content_hash(spec.identity):
        return
    others = sorted(name for name in {*now, *spec.identity} if now.get(name) != spec.identity.get(name))
    server = engine.server
    where = f"engine.server={server}" if server else f"monitor={spec.monitor.name}"
    raise UserError(
        f"{where}: no longer the judge that was calibrated (other {', '.join(others)}); expected that one, "
        "or an operating_point that was calibrated for this one"
    )


class _By:
    """Which models may answer, as an endpoint calls them; of no known one the first that does."""

    def __init__(self, known: Iterable[str]) -> None:
        self._known = set(known)
        self._lock = threading.Lock()

    def another(self, name: str) -> str:
        """What there is to say of an answer by another model than these; empty where it is one of them."""
        if not name:
            return ""
        with self._lock:
            if not self._known:
                self._known.add(name)
            if name in self._known:
                return ""
            known = ", ".join(sorted(self._known))
        return f"answered by model {name[:60]}, not {known}; expected it, or engine.model_may_change=true"


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


def _asks(model: PromptedModel, shots: Shots, by: _By | None) -> Judges:
    """`by` is None where any model may answer."""

    def judges(sample: Sample) -> Judgement:
        question = model.question(sample, shots.beside(sample))
        tokens = len(question.request.token_ids)
        if question.too_long:
            return Judgement(None, UnscoredReason.TOO_LONG, question.detail, None, None, tokens)
        ((_, reply),) = model.replies([question])
        if by is not None and reply.failure is None and (said := by.another(reply.served_model)):
            return Judgement(None, UnscoredReason.BAD_RESPONSE, said, None, None, reply.prompt_tokens)
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
