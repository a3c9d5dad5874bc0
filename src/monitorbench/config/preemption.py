"""How a run of a sweep is signalled to stop: USR1 before its time is up, TERM when it is.

Its worker (`sweeps.worker`) sends the signal on and starts it again later. Where every finished
piece of work is on disk already, as in an evaluation, the signal simply ends the run (`Preempted`).
A training calls `hold` first, and then looks at `preempted` after every step.
"""

import os
import signal
from types import FrameType

from monitorbench.config.base import Preempted

SWEEP_VARIABLE = "MONITORBENCH_SWEEP"
"""In the environment of every run of a sweep: the sweep's name."""

_held = False
_told = False


def watch() -> None:
    """Under a sweep, have USR1 and TERM end this process resumably; elsewhere change nothing."""
    if SWEEP_VARIABLE in os.environ:
        signal.signal(signal.SIGUSR1, _on_signal)
        signal.signal(signal.SIGTERM, _on_signal)


def hold() -> None:
    """From now on a signal only sets what `preempted` says."""
    global _held
    _held = True


def preempted() -> bool:
    """Whether this process got the signal to stop."""
    return _told


def _on_signal(number: int, _: FrameType | None) -> None:
    global _told
    already, _told = _told, True
    if not _held and not already:  # a second signal must not cut short what the first one began
        raise Preempted(f"stopped by {signal.Signals(number).name}; the same command resumes from here")
