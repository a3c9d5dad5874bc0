"""A child process: what it is sent, how it ended, what it printed."""

import os
import signal
import sys

import pytest

from monitorbench.sweeps.child import run_child

WAITS = """
import signal, sys
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(75))
print("ready", flush=True)
signal.pause()
"""


def test_a_child_gets_the_signals_and_this_process_its_own_handlers_back():
    """A signal kept by the parent leaves a training to be killed; a handler kept breaks Ctrl-C."""
    before = signal.getsignal(signal.SIGUSR1)
    ended = run_child(
        [sys.executable, "-c", WAITS],
        (signal.SIGUSR1,),
        on_line=lambda line: os.kill(os.getpid(), signal.SIGUSR1),
    )
    assert ended == (os.EX_TEMPFAIL, "ready", (signal.SIGUSR1,))
    assert signal.getsignal(signal.SIGUSR1) is before


@pytest.mark.parametrize(("source", "code", "last"), [("print('a'); print('b\\n')", 0, "b"), ("1/0", 1, "")])
def test_its_code_and_its_last_line_are_told(
    capfd: pytest.CaptureFixture[str], source: str, code: int, last: str
):
    """The last line is the run's directory; a wrong code makes a failed run a finished one."""
    ended = run_child([sys.executable, "-c", source], ())
    assert (ended.code, ended.last_line) == (code, last)
    assert capfd.readouterr().out == "", "what it prints is for `on_line`"
