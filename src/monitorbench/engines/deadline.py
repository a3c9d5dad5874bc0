"""Until when whoever asks waits for an answer: said once around a call, whatever requests it is made of.

An endpoint gives up what is not answered by then, waits for its limits and retries included; a model of this
process can't.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_until: ContextVar[float | None] = ContextVar("given_up_at", default=None)


@contextmanager
def given_up_at(until: float) -> Iterator[None]:
    """Nobody waits any more from `until` on, a time on `time.monotonic`, for what the body asks."""
    before = _until.set(until)
    try:
        yield
    finally:
        _until.reset(before)


def waited_until() -> float | None:
    """That time; None where nobody said one."""
    return _until.get()
