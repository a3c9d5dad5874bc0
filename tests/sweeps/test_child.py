"""A child process of a sweep: what it is sent, a signal too, how it ended, what it printed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitorbench.config import ending
from monitorbench.config.base import Preempted, UserError
from monitorbench.sweeps import worker
from monitorbench.sweeps.worker import run_child, run_stages

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
        on_line=lambda line: os.kill(os.getpid(), signal.SIGUSR1),
    )
    assert ended == (os.EX_TEMPFAIL, "ready", (signal.SIGUSR1,))
    assert signal.getsignal(signal.SIGUSR1) is before


SLEEPS = """
import os, pathlib, signal, sys
pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
print("ready", flush=True)
signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_no_child_outlives_who_ended_its_parent_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
):
    """If it failed: what a wrapper or an editor ended would go on judging, and paying, unseen."""
    pid = tmp_path / "pid"
    # Set anew: under nohup the tests themselves ignore HUP.
    program = f"""
import signal, sys
from pathlib import Path
from monitorbench.sweeps import worker
signal.signal({int(number)}, signal.{"default_int_handler" if number == signal.SIGINT else "SIG_DFL"})
worker.stage_command = lambda *_: [sys.executable, "-c", {SLEEPS!r}, {str(pid)!r}]
worker.run_stage("evaluate", Path("study.json"), "it")
"""
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL) as parent:
        try:
            while not (pid.is_file() and pid.read_text()):
                assert parent.poll() is None
                time.sleep(0.02)
            parent.send_signal(number)
            assert parent.wait(60) in (-number, 1, 130)
        finally:
            parent.kill()
    assert not Path(f"/proc/{pid.read_text()}").exists()


def test_what_is_ignored_stays_ignored():
    """If it failed: under nohup a study would end with the terminal that it was started from."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        ended = run_child(
            [sys.executable, "-c", "print('ready', flush=True); import time; time.sleep(0.2)"],
            on_line=lambda line: os.kill(os.getpid(), signal.SIGHUP),
        )
    finally:
        signal.signal(signal.SIGHUP, before)
    assert ended == (0, "ready", ())


@pytest.mark.parametrize(("source", "code", "last"), [("print('a'); print('b\\n')", 0, "b"), ("1/0", 1, "")])
def test_its_code_and_its_last_line_are_told(
    capfd: pytest.CaptureFixture[str], source: str, code: int, last: str
):
    """The last line is the run's directory; a wrong code makes a failed run a finished one."""
    ended = run_child([sys.executable, "-c", source])
    assert (ended.code, ended.last_line) == (code, last)
    assert capfd.readouterr().out == "", "what it prints is for `on_line`"


NOTES = """
import os, sys, time
def note(what):
    with open(sys.argv[1] + ".notes", "a") as notes:
        notes.write(what + "\\n")
note("begin")
assert os.environ["OMP_NUM_THREADS"]
print("said", file=sys.stderr)
time.sleep(0.5)
note("end")
sys.exit("fails" in sys.argv[2])
"""


def side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, *names: str
) -> dict[str, Path]:
    """Studies whose stage is a small program; all of them note what they do in one file."""
    notes = str(tmp_path / "all")
    monkeypatch.setattr(
        worker, "stage_command", lambda _, file: [sys.executable, "-c", source, notes, file.stem]
    )
    return {name: tmp_path / f"{name}.json" for name in names}


def test_several_run_side_by_side_and_no_more_than_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Four trainings at once on two cores wait for each other; one at a time leaves a core idle."""
    studies = side_by_side(tmp_path, monkeypatch, NOTES, "a", "b", "c", "d")
    run_stages("train", studies, 2)
    at_once, most = 0, 0
    for line in (tmp_path / "all.notes").read_text().split():
        at_once += 1 if line == "begin" else -1
        most = max(most, at_once)
    assert (most, at_once) == (2, 0)
    assert [(tmp_path / f"{name}.log").read_text() for name in "abcd"] == ["said\n"] * 4


def test_after_a_failure_no_more_are_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Hours of training behind one that failed at once would be spent before anybody hears of it."""
    studies = side_by_side(tmp_path, monkeypatch, NOTES, "fails", "b", "c", "d")
    with pytest.raises(UserError, match=rf"train fails: failed with exit code 1, see {tmp_path}/fails\.log"):
        run_stages("train", studies, 2)
    lines = (tmp_path / "all.notes").read_text().split()
    assert lines.count("begin") == lines.count("end") <= 3, "what was running has ended"


def test_all_that_run_get_the_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A preempted study must leave every training at a checkpoint, and start none of those that wait."""
    waits = """
import os, signal, sys, pathlib
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(75))
with open(sys.argv[1], "a") as notes:
    notes.write("x")
if pathlib.Path(sys.argv[1]).stat().st_size == 2:
    os.kill(os.getppid(), signal.SIGUSR1)
while True:
    signal.pause()
"""
    studies = side_by_side(tmp_path, monkeypatch, waits, "a", "b", "c")
    heard: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: heard.append(number))
    try:
        with pytest.raises(Preempted, match="stopped; the same command resumes it"):
            run_stages("train", studies, 2)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert heard == [signal.SIGUSR1]
    assert (tmp_path / "all").read_text() == "xx"


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
