"""The signals that stop a run of a sweep: USR1 shortly before its time is up, TERM when it is.

The run's worker (`sweeps.worker`) passes the signal on and starts the run again later. Where every finished
piece of work is on disk already, as in an evaluation, the signal simply ends the run (`Preempted`). A
training calls `hold` first, and then checks `preempted` after every step.
"""

import os
import signal
from types import FrameType

from monitorbench.config.base import Preempted

SWEEP_VARIABLE = "MONITORBENCH_SWEEP"
"""Environment variable of every run of a sweep, with the sweep's name."""

_is_held = False
_is_signalled = False


def watch() -> None:
    """Make USR1 and TERM end this process resumably under a sweep; change nothing elsewhere."""
    if SWEEP_VARIABLE in os.environ:
        signal.signal(signal.SIGUSR1, _on_signal)
        signal.signal(signal.SIGTERM, _on_signal)


def hold() -> None:
    """Make later signals only set what `preempted` returns."""
    global _is_held
    _is_held = True


def preempted() -> bool:
    """Return whether this process got the signal to stop."""
    return _is_signalled


def _on_signal(number: int, _: FrameType | None) -> None:
    global _is_signalled
    already, _is_signalled = _is_signalled, True
    if not _is_held and not already:  # a second signal must not cut short what the first one began
        raise Preempted(f"stopped by {signal.Signals(number).name}; the same command resumes from here")
