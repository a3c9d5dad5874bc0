"""One judge and the threads that ask it: in time or not at all, and opened again where it broke.

Promises: a model of this process is asked from one thread, in the order in which requests come; one that
nobody waits for any more is not begun; after a failure the model is tried, and opened anew where it fails
again, so that one that comes back answers again; meanwhile every request is told so at once.
"""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

from monitorbench.config.base import UserError
from monitorbench.guardrail.opened import TRIAL, Opened
from monitorbench.judging.pair.judgement import Judgement, Judges
from monitorbench.records import TRANSPORT_FAILURES, Sample

_SECONDS_BETWEEN_OPENINGS = 1.0
_log = logging.getLogger(__name__)


class Unjudged(Exception):
    """No judgement could be had: a word of few for why, and one line."""

    def __init__(self, why: str, detail: str = "") -> None:
        super().__init__(why, detail)
        self.why, self.detail = why, detail


class Runner:
    """A judge, asked by `threads` at once."""

    def __init__(
        self,
        name: str,
        open_: Callable[[], Opened],
        reopen: Callable[[], Opened] | None,
        *,
        threads: int = 1,
    ) -> None:
        """Open it; raises what `open_` raises. `reopen` is None where opening it anew can't help."""
        self.name = name
        self._reopen = reopen
        self._lock = threading.Lock()
        self._worker = ThreadPoolExecutor(threads, thread_name_prefix="judge")
        self._opened: Opened | None = None
        self._is_suspect = False
        self._not_before = 0.0
        try:
            self._opened = self._worker.submit(open_).result()
        except BaseException:
            self._worker.shutdown()
            raise

    @property
    def is_failing(self) -> bool:
        """Whether its last answer was none, for a reason that is not the judge's own."""
        return self._is_suspect or self._opened is None

    def begin(self, sample: Sample, deadline: float) -> "Future[Judgement]":
        """Ask about a sample; `deadline` is on `time.monotonic`. For `result`."""
        return self._worker.submit(self._judged, sample, deadline)

    def result(self, asked: "Future[Judgement]", deadline: float) -> Judgement:
        """What came of it. Raises `Unjudged` where nothing did, or not in time."""
        try:
            return asked.result(max(0.0, deadline - time.monotonic()))
        except CancelledError:
            raise Unjudged("failed", f"{self.name}: the server is ending") from None
        except TimeoutError:
            asked.cancel()
            raise Unjudged("timed_out", f"{self.name}: no answer in time") from None

    def close(self) -> None:
        """End the threads and give back the model's memory; a question that is being answered ends first."""
        self._worker.shutdown(cancel_futures=True)
        self._close()

    def _judged(self, sample: Sample, deadline: float) -> Judgement:
        if time.monotonic() >= deadline:
            raise Unjudged("timed_out", f"{self.name}: not begun in time")
        try:
            found = self._ready()(sample)
        except Unjudged:
            raise
        except Exception as error:  # whatever a model breaks with is no score, and fails closed
            self._failed(error)
            raise Unjudged("failed", f"{self.name}: {_one_line(error)}") from error
        if found.unscored in TRANSPORT_FAILURES:
            self._failed(found.detail)
            raise Unjudged(found.unscored.value, f"{self.name}: {found.detail}")
        if self._is_suspect:
            self._is_suspect = False
            _log.warning("serve: %s answers again", self.name)
        return found

    def _failed(self, error: Exception | str) -> None:
        if not self._is_suspect:
            trace = error if isinstance(error, Exception) and not isinstance(error, UserError) else None
            _log.error("serve: %s failed: %s", self.name, _one_line(error), exc_info=trace)
        self._is_suspect = True

    def _ready(self) -> Judges:
        """The judge, tried or opened anew where it failed before."""
        with self._lock:
            opened, reopen = self._opened, self._reopen
            if opened is not None and (not self._is_suspect or reopen is None or self._still_works(opened)):
                return opened.judges
            if time.monotonic() < self._not_before:
                raise Unjudged("failed", f"{self.name}: the model is not there")
            self._not_before = time.monotonic() + _SECONDS_BETWEEN_OPENINGS
            self._close()
            if reopen is None:
                raise Unjudged("failed", f"{self.name}: closed")
            self._opened = reopen()
            return self._opened.judges

    def _still_works(self, opened: Opened) -> bool:
        try:
            found = opened.judges(TRIAL)
        except Exception:  # whatever it is, the model is opened anew
            return False
        return found.unscored not in TRANSPORT_FAILURES

    def _close(self) -> None:
        before, self._opened = self._opened, None
        if before is not None:
            try:
                before.close()
            except Exception:  # of a model that is broken; what counts is the next one
                _log.exception("serve: %s could not be closed", self.name)


def _one_line(error: object) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
