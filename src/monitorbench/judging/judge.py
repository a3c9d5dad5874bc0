"""The one judging interface: `open_judge` gives a `Judge`, whose verdicts are kept in a log and found there.

Promises: a sample that has a verdict in the log is not judged again; a verdict is in the log as soon
as it came in; a sample that can't be sent has a verdict with a reason and no label. A request that failed on
the way to an endpoint is in a log of its own, and the sample is judged when it is asked for again.
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from monitorbench.config.base import UserError
from monitorbench.config.engine import Engine
from monitorbench.config.monitor import Monitor, Prompt
from monitorbench.conversations.chats import unseen_media
from monitorbench.engines.protocol import Reply
from monitorbench.judging.identity import judge_identity
from monitorbench.judging.open import open_prompted
from monitorbench.judging.prompted import PromptedModel, Question
from monitorbench.judging.route import Route, router_identity
from monitorbench.judging.unanswered import is_outage
from monitorbench.prompts.few_shot import Shots
from monitorbench.prompts.grounding import ground
from monitorbench.records import TRANSPORT_FAILURES, Label, Sample, UnscoredReason, Verdict
from monitorbench.runs.verdict_log import Failure, FailureLog, VerdictLog

if TYPE_CHECKING:
    from monitorbench.engines.shared import SharedEngine

NO_SHOTS = Shots(0, ())
FAILURES_IN_A_ROW = 20
"""After so many failures with nothing answered in between the endpoint is taken to be out of order."""
_log = logging.getLogger(__name__)


class Display(Protocol):
    """What is shown of verdicts as they come."""

    def add(self, label: Label, verdict: Verdict) -> None:
        """Note one verdict on a sample whose true label is `label`."""
        ...


class JudgeSpec(NamedTuple):
    """Which judge: monitor × engine × prompt; made by `judge_spec`."""

    monitor: Monitor
    engine: Engine
    prompt: Prompt
    shots: Shots
    """The examples of a few-shot prompt."""
    identity: Mapping[str, Any]
    """Everything that decides a verdict."""
    route: Route | None = None
    """Of a monitor with a router."""


def judge_spec(
    monitor: Monitor, engine: Engine, prompt: Prompt, shots: Shots = NO_SHOTS, route: Route | None = None
) -> JudgeSpec:
    """The judge with its identity; runs no model. Raises as `judge_identity` and `router_identity`."""
    identity = judge_identity(monitor, engine, prompt, shots.ids) | router_identity(monitor, engine, route)
    return JudgeSpec(monitor, engine, prompt, shots, identity, route)


class Pending(NamedTuple):
    """The keys of all samples' verdicts, and the questions of those that have none."""

    keys: list[str]
    questions: list[Question]


class Judge:
    """A monitor that is ready to judge; see `open_judge`.

    Several threads may call it at once where its engine is an endpoint.
    """

    def __init__(
        self,
        model: PromptedModel,
        log: VerdictLog,
        failures: FailureLog,
        shots: Shots = NO_SHOTS,
        *,
        model_may_change: bool = False,
    ) -> None:
        self._model_may_change, self._served = model_may_change, set(served_models(log))
        self._model, self._log, self._failures, self._shots = model, log, failures, shots
        self._attempts = Counter(failure.verdict.key for failure in failures.entries.values())
        self.failed = {failure.verdict.key: failure.verdict for failure in failures.entries.values()}
        """By key what the last failed request about a sample would be as a verdict."""
        self.adapter_change: float | None = None
        """What the adapter changes on the first question that was asked; None without one."""
        self._lock = threading.Lock()

    @property
    def spent(self) -> float:
        """What the answers and failures in the logs cost, in the currency of the prices."""
        return _spent(self._log, self._failures)

    def verdicts(self, samples: Sequence[Sample]) -> list[Verdict]:
        """One verdict a sample, in their order; samples without a verdict in the log are judged.

        One whose reason is in `TRANSPORT_FAILURES` is not in the log: its sample is asked about next time.
        Raises `UserError` for an adapter that changes nothing, and where an endpoint can't be used or its
        `max_cost` is spent: what was answered until then is in the log.
        """
        keys, questions = self.pending(samples)
        self.ask(questions)
        if any(key not in self._log.entries and key not in self.failed for key in keys):
            raise UserError(f"{FAILURES_IN_A_ROW} requests in a row failed; run the same command again")
        return [self._log.entries.get(key) or self.failed[key] for key in keys]

    def pending(self, samples: Sequence[Sample]) -> Pending:
        """The requests to send; a sample that the context can't hold gets its verdict in the log at once.

        Those that failed before come last, so that they can't keep the others from being asked.
        """
        keys: list[str] = []
        questions: list[Question] = []
        with self._lock:
            for sample in samples:
                question = self._model.question(sample, self._shots.beside(sample))
                keys.append(question.key)
                if question.key in self._log.entries:
                    continue
                if question.too_long:
                    self._log.append(_too_long(question, self._model.prompt))
                else:
                    questions.append(question)
        questions.sort(key=lambda question: self._attempts[question.key])
        return Pending(keys, questions)

    def ask(
        self,
        questions: Sequence[Question],
        shown: Callable[[], AbstractContextManager[Display | None]] = nullcontext,
    ) -> None:
        """Ask, and put each verdict into the log as it comes; `shown` opens a display, with the model loaded.

        Stops after `FAILURES_IN_A_ROW`, with a warning. Raises what `verdicts` raises.
        """
        if not questions:
            return
        with self._lock:
            self.adapter_change = self._model.prepare(questions[0])
        in_a_row = 0
        with shown() as display:
            for index, reply in self._model.replies(questions):
                changed = self._changed(reply)
                if changed and not self._model_may_change:  # paid for, and nobody's verdict
                    reply = replace(reply, failure="bad_response", detail=changed)
                verdict = self._verdict(questions[index], reply)
                in_a_row = in_a_row + 1 if is_outage(verdict.unscored, verdict.detail) else 0
                self._note(verdict)
                if display is not None:
                    display.add(questions[index].sample.label, verdict)
                if changed and not self._model_may_change:
                    raise UserError(f"{changed}; with engine.model_may_change=true this is a warning")
                if in_a_row == FAILURES_IN_A_ROW:
                    _log.warning("%d requests in a row failed: no more are sent", in_a_row)
                    break

    def differences_alone(self, questions: Sequence[Question]) -> list[float]:
        """Ask about each question alone, and compare with the logged verdicts; nothing is added to the log.

        One absolute difference for each question that has a score both times.
        """
        differences = []
        for question in questions:
            logged = self._log.entries.get(question.key)
            if logged is None or logged.score is None:
                continue
            ((_, reply),) = self._model.replies([question])
            again = self._model.read(reply).score.score
            if again is not None:
                differences.append(abs(again - logged.score))
        return differences

    def _changed(self, reply: Reply) -> str:
        """What there is to say of a reply by another model than those that answered before."""
        name = reply.served_model
        with self._lock:
            if reply.failure is not None or not name or name in self._served:
                return ""
            before = ", ".join(sorted(self._served))
            if not before or self._model_may_change:
                self._served.add(name)
        changed = f"answered by model {name}, the run's other answers are by {before}" if before else ""
        if changed and self._model_may_change:
            _log.warning("%s", changed)
        return changed

    def _note(self, verdict: Verdict) -> None:
        """Log a verdict, or a request that got no answer."""
        key = verdict.key
        with self._lock:
            if verdict.unscored in TRANSPORT_FAILURES:
                self._attempts[key] += 1
                self._failures.append(Failure(attempt=self._attempts[key], verdict=verdict))
                self.failed[key] = verdict
            elif key not in self._log.entries:  # another thread may have asked the same
                self._log.append(verdict)

    def _verdict(self, question: Question, reply: Reply) -> Verdict:
        prompt, (text, answer, score) = self._model.prompt, self._model.read(reply)
        unseen = unseen_media((*question.sample.request, *question.sample.response))
        return Verdict(
            key=question.key,
            sample_id=question.sample.id,
            prompt=prompt.name,
            answer=text,
            label=answer.label,
            unscored=answer.unscored,
            detail="; ".join(filter(None, (question.detail, reply.detail, unseen))),
            score=score.score,
            label_mass=score.label_mass,
            score_censored=score.censored,
            finish_reason=reply.finish_reason,
            served_model=reply.served_model,
            reasoning=reply.reasoning,
            reasoning_tokens=reply.reasoning_tokens,
            category=answer.category,
            severity=answer.severity,
            quotes=answer.quotes,
            evidence=ground(answer.quotes, question.sample.response, prompt.fuzzy_ratio),
            truncated_tokens=question.truncated_tokens,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            seconds=round(reply.seconds, 4),
            cost=reply.cost,
        )


@contextmanager
def open_judge(
    spec: JudgeSpec,
    models: Path,
    log: VerdictLog,
    failures: FailureLog,
    where: str = "prompt",
    run: Path | None = None,
    shared: "SharedEngine | None" = None,
) -> Iterator[Judge]:
    """A judge whose verdicts are kept in `log`, and failed requests in `failures`; closed on leaving.

    `models` is the folder that models are kept in; `where` is the setting that holds the prompt, for errors;
    `run` the directory that the names of a batch API's batches are kept in, `shared` an engine that other
    adapters of the same weights are asked on. Raises
    `UserError` where weights, an adapter or an endpoint's key are missing, `ConfigError` where prompt or
    reasoning don't fit the tokenizer.
    """
    model = open_prompted(
        spec.monitor,
        spec.engine,
        spec.prompt,
        models,
        f"monitor={spec.monitor.name} {where}={spec.prompt.name}",
        identity=spec.identity,
        spent=_spent(log, failures),
        run=run,
        shared=shared,
        route=spec.route,
    )
    try:
        may_change = spec.engine.model_may_change
        yield Judge(model, log, failures, spec.shots, model_may_change=may_change)
    finally:
        model.close()


def served_models(log: VerdictLog) -> dict[str, int]:
    """How many of the verdicts are by which model, as the endpoint called it in its answers."""
    named = Counter(verdict.served_model for verdict in log.entries.values() if verdict.served_model)
    return dict(sorted(named.items()))


def _spent(log: VerdictLog, failures: FailureLog) -> float:
    failed = sum(failure.verdict.cost for failure in failures.entries.values())
    return sum(verdict.cost for verdict in log.entries.values()) + failed


def _too_long(question: Question, prompt: Prompt) -> Verdict:
    return Verdict(
        key=question.key,
        sample_id=question.sample.id,
        prompt=prompt.name,
        answer="",
        label=None,
        unscored=UnscoredReason.TOO_LONG,
        detail=question.detail,
        score=None,
        label_mass=None,
        finish_reason="",
        prompt_tokens=len(question.request.token_ids),
        completion_tokens=0,
        seconds=0.0,
    )
