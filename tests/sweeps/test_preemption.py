"""What a signal does to a run, in a sweep and out of one."""

import os
import signal
from collections.abc import Iterator

import pytest

from monitorbench.config import ending
from monitorbench.config.base import Preempted


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    handlers = {one: signal.getsignal(one) for one in (signal.SIGUSR1, signal.SIGTERM)}
    monkeypatch.setattr(ending, "_is_held", False)
    monkeypatch.setattr(ending, "_is_signalled", False)
    yield
    for one, handler in handlers.items():
        signal.signal(one, handler)


def test_nothing_changes_outside_a_sweep(monkeypatch: pytest.MonkeyPatch):
    """Ctrl-C and kill on one's own machine have to do what they always do."""
    monkeypatch.delenv(ending.SWEEP_VARIABLE, raising=False)
    before = signal.getsignal(signal.SIGTERM)
    ending.watch()
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
def test_a_signal_ends_a_run_unless_held(monkeypatch: pytest.MonkeyPatch, number: signal.Signals):
    """An evaluation keeps every verdict as it goes; a training has a step to finish and to save."""
    monkeypatch.setenv(ending.SWEEP_VARIABLE, "sft-0123")
    ending.watch()
    with pytest.raises(Preempted, match=number.name):
        os.kill(os.getpid(), number)
    os.kill(os.getpid(), number)  # Slurm tells all processes of a job, and their worker tells them again
    monkeypatch.setattr(ending, "_is_signalled", False)
    ending.hold()
    os.kill(os.getpid(), number)
    assert ending.preempted()
