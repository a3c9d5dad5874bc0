"""A judge in a run: its verdicts are kept in a log, and found there or in other runs (`open_logged`).

Promises: a sample that has a verdict in the log is not judged again; a verdict is in the log as soon
as it came in. A request that failed on the way to an endpoint is in a log of its own, and the sample is
judged when it is asked for again; a run that lost too many is incomplete (`refuse_incomplete`). Other runs
are only read: a verdict's key names all that decided it, so that theirs are those that judging again would
give.
"""

import logging
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from monitorbench.config.base import Incomplete, UserError
from monitorbench.judging.identity import JudgeSpec
from monitorbench.judging.judge import Judge, KnownModels, Question, by_another, not_asked
from monitorbench.judging.open import open_judge
from monitorbench.records import TRANSPORT_FAILURES, Sample, UnscoredReason, Verdict, reasons_in_words
from monitorbench.runs.directory import RunDirectory, read_manifest
from monitorbench.runs.keyed_log import VERDICTS, Failure, FailureLog, VerdictLog, read_verdicts

if TYPE_CHECKING:
    from monitorbench.judging.display import VerdictCounter

FAILURES_IN_A_ROW = 20
"""After so many failures with nothing answered in between the endpoint is taken to be out of order."""
_log = logging.getLogger(__name__)
_WOULD_COME_AGAIN = re.compile(r"\bHTTP (400|413|422)\b|\bnot sent:")
"""Words of `engines.endpoint.wire` for a request that is at fault itself, for example too long."""
Outcome = Verdict | None
"""A sample's verdict, or what its last failed request would be as one; None where it was not asked."""


class OpensJudge(Protocol):
    """How a run opens its judge: `judging.open.open_judge`, or that on an engine that others share."""

    def __call__(
        self, spec: JudgeSpec, models: Path, *, spent: float = 0.0, run: Path | None = None
    ) -> Judge:
        """Open it; arguments as for `open_judge`."""
        ...


class Pending(NamedTuple):
    """The keys of all samples' verdicts, and the questions of those that have none."""

    keys: list[str]
    questions: list[Question]


class LoggedJudge:
    """A judge with a run's logs; several threads may ask it at once where the judge `is_remote`."""

    def __init__(
        self, judge: Judge, log: VerdictLog, failures: FailureLog, *, model_may_change: bool = False
    ) -> None:
        self._judge, self._log, self._failures = judge, log, failures
        self._models, self._model_may_change = KnownModels(served_models(log)), model_may_change
        self._attempts = Counter(failure.verdict.key for failure in failures.entries.values())
        self.failed = {failure.verdict.key: failure.verdict for failure in failures.entries.values()}
        """By key what the last failed request about a sample would be as a verdict."""
        self.adapter_change: float | None = None
        """What the adapter changes on the first question that was asked; None without one."""
        self._lock = threading.Lock()

    @property
    def spent(self) -> float:
        """Cost of the answers and failures in the logs, in the currency of the prices."""
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
                question = self._judge.question(sample)
                keys.append(question.key)
                if question.key in self._log.entries:
                    continue
                if question.unasked is not None:
                    self._log.append(not_asked(question, self._judge.prompt))
                else:
                    questions.append(question)
        questions.sort(key=lambda question: self._attempts[question.key])
        return Pending(keys, questions)

    def ask(
        self,
        questions: Sequence[Question],
        shown: Callable[[], AbstractContextManager["VerdictCounter | None"]] = nullcontext,
    ) -> None:
        """Ask, and put each verdict into the log as it comes; `shown` opens a display, with the model loaded.

        Stops after `FAILURES_IN_A_ROW`, with a warning. Raises what `verdicts` raises.
        """
        if not questions:
            return
        with self._lock:
            self.adapter_change = self._judge.prepare(questions[0])
        in_a_row = 0
        with shown() as display:
            for index, answered in self._judge.ask(questions):
                refused = self._refused(answered)
                verdict = by_another(answered, refused) if refused else answered
                in_a_row = in_a_row + 1 if is_outage(verdict.unscored, verdict.detail) else 0
                self._note(verdict)
                if display is not None:
                    display.add(questions[index].sample.label, verdict)
                if refused:
                    raise UserError(refused)
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
            ((_, again),) = self._judge.ask([question])
            if again.score is not None:
                differences.append(abs(again.score - logged.score))
        return differences

    def _refused(self, verdict: Verdict) -> str:
        """Say that another model answered than before, unless it may: then that is a warning, once."""
        another = self._models.another(verdict)
        if another and self._model_may_change:
            self._models.add(verdict.served_model)
            _log.warning("%s", another.partition("; ")[0])
            return ""
        return another

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


@contextmanager
def open_logged(
    spec: JudgeSpec,
    models: Path,
    log: VerdictLog,
    failures: FailureLog,
    *,
    run: Path | None = None,
    opens: OpensJudge = open_judge,
) -> Iterator[LoggedJudge]:
    """A judge whose verdicts are kept in `log`, and failed requests in `failures`; closed on leaving.

    `models` is the folder that models are kept in, `run` the directory that the names of a batch API's
    batches are kept in. Raises what `opens` raises.
    """
    judge = opens(spec, models, spent=_spent(log, failures), run=run)
    try:
        yield LoggedJudge(judge, log, failures, model_may_change=spec.engine.model_may_change)
    finally:
        judge.close()


def served_models(log: VerdictLog) -> dict[str, int]:
    """How many of the verdicts are by which model, as the endpoint called it in its answers."""
    counts = Counter(verdict.served_model for verdict in log.entries.values() if verdict.served_model)
    return dict(sorted(counts.items()))


def _spent(log: VerdictLog, failures: FailureLog) -> float:
    failed = sum(failure.verdict.cost for failure in failures.entries.values())
    return sum(verdict.cost for verdict in log.entries.values()) + failed


def unscored_reasons(found: Sequence[Outcome]) -> Counter[str]:
    """How many of these samples have no label for which reason."""
    return Counter(_reason(outcome) for outcome in found if outcome is None or outcome.label is None)


def refuse_incomplete(directory: Path, unanswered: Sequence[Outcome], n: int, max_failed: float) -> None:
    """Raise `Incomplete` where one sample was not asked, or too many were and got no answer.

    Args:
        directory: the run.
        unanswered: the samples without a verdict.
        n: how many samples are judged in all.
        max_failed: the share of them that may stay without an answer, in [0, 1].

    """
    if None not in unanswered and len(unanswered) / n <= max_failed:
        return
    details = [outcome.detail for outcome in unanswered if outcome is not None and outcome.detail]
    last = f"; the last one: {details[-1]}" if details else ""
    words = reasons_in_words(Counter(map(_reason, unanswered)))
    raise Incomplete(
        f"{directory}: incomplete, {len(unanswered)} of {n} samples got no answer ({words}{last}); the same "
        f"command asks only these again (engine.max_failed={max_failed:g})"
    )


def is_outage(reason: str | None, detail: str) -> bool:
    """Whether a request failed on its way, so that nothing may be made of it before it is asked again.

    Not where asking again would get the same: an empty answer, or a request that the endpoint refuses for
    what it is. `reason` is a value of `UnscoredReason`, `detail` is the reply's.
    """
    on_the_way = reason in TRANSPORT_FAILURES and reason != UnscoredReason.EMPTY
    return on_the_way and not _WOULD_COME_AGAIN.search(detail)


def _reason(one: Outcome) -> str:
    return "not_asked" if one is None else str(one.unscored)


def is_done(run: RunDirectory) -> bool:
    """Whether an evaluation finished and its log has as many lines as it had then.

    A person may have removed one that could not be read, as the log's own message advises.
    """
    if not run.done:
        return False
    results = read_manifest(run.path)["results"]
    log = run.path / VERDICTS
    lines = log.read_bytes().count(b"\n") if log.is_file() else 0
    return lines >= int(results["n_logged"])


def take_known_verdicts(
    known: Iterable[tuple[Path, Mapping[str, Verdict]]], questions: Sequence[Question], log: VerdictLog
) -> list[Question]:
    """Copy what other runs answered to these questions into `log`; returns the questions left.

    `known` is a run with its verdicts by key, as `read_known_verdicts` gives them.
    """
    unanswered = {question.key: question for question in questions}
    for run, verdicts in known:
        reused = [key for key in unanswered if key in verdicts]
        for key in reused:
            log.append(verdicts[key])
            del unanswered[key]
        if reused:
            _log.info("judging: %d of %d verdicts reused from %s", len(reused), len(questions), run)
        if not unanswered:
            break
    return list(unanswered.values())


def read_known_verdicts(runs: Iterable[Path]) -> Iterator[tuple[Path, dict[str, Verdict]]]:
    """Read the verdicts of runs by key: judging again would give them. An unreadable run has none."""
    for run in runs:
        try:
            verdicts = read_verdicts(run / VERDICTS)
        except UserError as error:  # the stage that needs that run reports it
            _log.warning("judging: nothing is reused from a run that can't be read: %s", error)
            continue
        yield run, {row.key: row for row in verdicts if row.unscored not in TRANSPORT_FAILURES}


def runs_of_the_same_judge(run: RunDirectory, within: str = "") -> Iterator[Path]:
    """Folders beside the run whose manifest names the same judge and the same data.

    `within` is the part of the runs' identity that names them; empty: the identity itself.
    """

    def judge_and_data(identity: Mapping[str, Any]) -> list[Any]:
        fields = identity.get(within, {}) if within else identity
        return [fields.get(name) for name in ("schema_version", "data", "judge")]

    for manifest in sorted(run.path.parent.glob("*/manifest.json")):
        folder = manifest.parent
        if folder == run.path or not (folder / VERDICTS).is_file():
            continue
        try:
            identity = read_manifest(folder).get("identity", {})
        except UserError:  # `verify` says so; nothing here depends on it
            continue
        if judge_and_data(identity) == judge_and_data(run.identity):
            yield folder
