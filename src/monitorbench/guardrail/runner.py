"""One judge and the threads that ask it: in time or not at all, and opened again where it broke.

Promises: a model of this process is asked from one thread, in the order in which requests come; one that
nobody waits for any more is not begun, nothing is kept of it, and an endpoint is not asked about it; after a
failure the model is tried, and opened anew where it fails again, so that one that comes back answers again;
meanwhile every request is told so at once, and so is one behind too many others.
"""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

from monitorbench.config.base import UserError
from monitorbench.config.deployment import Serve
from monitorbench.engines.endpoint.limits import given_up_at
from monitorbench.judging.judge import TRIAL, Judge
from monitorbench.records import TRANSPORT_FAILURES, Sample, Verdict

_SECONDS_BETWEEN_OPENINGS = 1.0
_log = logging.getLogger(__name__)


class Unjudged(Exception):
    """No verdict could be had: a word of few for why, and one line."""

    def __init__(self, why: str, detail: str = "") -> None:
        super().__init__(why, detail)
        self.why, self.detail = why, detail


class PendingQuestion:
    """A question to a `Runner`, and what comes of it."""

    def __init__(self, sample: Sample, deadline: float) -> None:
        self.sample: Sample | None = sample
        """None once nobody waits for it any more: what stands in a queue keeps no text."""
        self.deadline = deadline
        """On `time.monotonic`."""
        self.future: Future[Verdict]

    def drop(self) -> None:
        """Wait no more: where it has not begun it will not be."""
        self.sample = None


class Runner:
    """A judge, asked by `threads` at once."""

    def __init__(
        self,
        name: str,
        open_: Callable[[], Judge],
        reopen: Callable[[], Judge] | None,
        *,
        threads: int = 1,
        most_waiting: int = Serve().at_once,
    ) -> None:
        """Open it; raises what `open_` raises. `reopen` is None where opening it anew can't help.

        Of `most_waiting` questions that are not begun one more is refused.
        """
        self.name = name
        self._reopen = reopen
        self._lock = threading.Lock()
        self._worker = ThreadPoolExecutor(threads, thread_name_prefix="judge")
        self._waiting = threading.BoundedSemaphore(most_waiting)
        self._late: set[Future[Verdict]] = set()
        self._opened: Judge | None = None
        self._is_suspect = self._is_closing = False
        self._not_before, self._said = 0.0, ""
        try:
            self._opened = self._worker.submit(open_).result()
        except BaseException:
            self._worker.shutdown()
            raise

    @property
    def is_failing(self) -> bool:
        """Whether its last answer was none, for a reason that is not the judge's own, or is overdue."""
        return self._is_suspect or self._opened is None or bool(self._late)

    def begin(self, sample: Sample, deadline: float) -> PendingQuestion:
        """Ask about a sample; `deadline` is on `time.monotonic`. For `result`, or to be dropped.

        Raises `Unjudged` where too many wait already.
        """
        if not self._waiting.acquire(blocking=False):
            raise Unjudged("overloaded", f"{self.name}: too many questions wait for it")
        question = PendingQuestion(sample, deadline)
        try:
            question.future = self._worker.submit(self._judged, question)
        except RuntimeError:
            self._waiting.release()
            raise
        return question

    def result(self, asked: PendingQuestion) -> Verdict:
        """Wait for the verdict. Raises `Unjudged` where there is none, or not in time."""
        try:
            return asked.future.result(max(0.0, asked.deadline - time.monotonic()))
        except CancelledError:
            raise Unjudged("failed", f"{self.name}: the server is ending") from None
        except TimeoutError:
            asked.drop()
            if asked.future.running():
                self._late.add(asked.future)
                asked.future.add_done_callback(self._late.discard)
            raise Unjudged("timed_out", f"{self.name}: no answer in time") from None

    def close(self) -> None:
        """End the threads and give back the model's memory.

        An endpoint is not waited for; a model of this process ends what it is answering first.
        """
        self._is_closing = True
        self._worker.shutdown(wait=False, cancel_futures=True)
        opened = self._opened
        if opened is not None and opened.is_remote:
            opened.close()
        self._worker.shutdown()
        self._close()

    def _judged(self, asked: PendingQuestion) -> Verdict:
        self._waiting.release()
        sample = asked.sample
        self._refuse_late(asked)
        try:
            with given_up_at(asked.deadline):
                judge = self._ready()
                self._refuse_late(asked)  # a trial, or another thread's, may have taken all of its time
                assert sample is not None
                (verdict,) = judge.verdicts([sample])
        except Unjudged:
            raise
        except Exception as error:  # whatever a model breaks with is no score, and fails closed
            if self._is_closing:
                raise Unjudged("failed", f"{self.name}: the server is ending") from error
            self._failed(error)
            raise Unjudged("failed", f"{self.name}: {_one_line(error)}") from error
        if verdict.unscored in TRANSPORT_FAILURES:
            self._failed(verdict.detail)
            raise Unjudged(verdict.unscored.value, f"{self.name}: {verdict.detail}")
        if self._is_suspect:
            self._is_suspect = False
            _log.warning("serve: %s answers again", self.name)
        return verdict

    def _refuse_late(self, asked: PendingQuestion) -> None:
        if asked.sample is None or time.monotonic() >= asked.deadline:
            raise Unjudged("timed_out", f"{self.name}: not begun in time")

    def _failed(self, error: Exception | str) -> None:
        if not self._is_suspect:
            trace = error if isinstance(error, Exception) and not isinstance(error, UserError) else None
            _log.error("serve: %s failed: %s", self.name, _one_line(error), exc_info=trace)
        self._is_suspect = True

    def _ready(self) -> Judge:
        """The judge, tried or opened anew where it failed before."""
        with self._lock:
            opened, reopen = self._opened, self._reopen
            if opened is not None and (not self._is_suspect or reopen is None or self._still_works(opened)):
                return opened
            if time.monotonic() < self._not_before:
                raise Unjudged("failed", f"{self.name}: the model is not there")
            self._not_before = time.monotonic() + _SECONDS_BETWEEN_OPENINGS
            self._close()
            if reopen is None or self._is_closing:
                raise Unjudged("failed", f"{self.name}: closed")
            try:
                self._opened = reopen()
            except UserError as error:
                self._say(str(error))
                raise
            return self._opened

    def _say(self, why: str) -> None:
        """Why it can't be opened, once as long as that is the same."""
        if why != self._said:
            _log.error("serve: %s can't be opened again: %s", self.name, _one_line(why))
        self._said = why

    def _still_works(self, judge: Judge) -> bool:
        try:
            (verdict,) = judge.verdicts([TRIAL])
        except Exception:  # whatever it is, the model is opened anew
            return False
        return verdict.unscored not in TRANSPORT_FAILURES

    def _close(self) -> None:
        before, self._opened = self._opened, None
        if before is not None:
            try:
                before.close()
            except Exception:  # of a model that is broken; what counts is the next one
                _log.exception("serve: %s could not be closed", self.name)


def _one_line(error: object) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
