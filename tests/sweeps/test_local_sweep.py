"""The same sweep without Slurm: markers, exit codes, resuming, stopping."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from monitorbench.sweeps.slurm import states
from monitorbench.sweeps.sweep import read

Python = Callable[..., subprocess.CompletedProcess[str]]


def _counts(sweep: Path) -> dict[str, int]:
    found = [one.state.value for one in states(read(sweep))]
    return {state: found.count(state) for state in set(found)}


def _until(ready: Callable[[], object]) -> None:
    end = time.monotonic() + 120
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_one_run_fails_the_rest_complete_and_it_alone_is_resumed(desk: Path, python: Python):
    """A sweep that stops at its first failure, or does everything again, wastes a night."""
    dry = python("slurm/submit.py", "train/echo.py", "seed=0,1,3", "--dry-run")
    assert "#SBATCH --array=0-2%8" in dry.stdout
    said = [f"run {run} of 3, seed={seed}" for run, seed in enumerate((0, 1, 3), 1)]
    assert dry.stderr.splitlines()[-4:] == [*said, "dry run: nothing was submitted"]
    assert not (desk / "runs").exists()

    done = python("slurm/submit.py", "train/echo.py", "seed=0,1,3", "--local", "--jobs", "2")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: 1 of 3 runs failed")
    assert last.endswith("the same command does them again")
    sweep = desk / done.stdout.splitlines()[-1]
    assert _counts(sweep) == {"done": 2, "failed": 1}
    assert (sweep / "run-001.log").read_text() == "run 2 of 3, seed=1\nerror: seed=1: not mended\n"
    assert "run 2 of 3, seed=1: failed with exit code 1" in done.stderr.splitlines()
    frozen = json.loads((sweep / "run-002.json").read_text())
    assert (frozen["seed"], frozen["tracking"]["group"]) == (3, sweep.name)
    assert json.loads((sweep / "run-002.done" / "study.json").read_text()) == frozen
    shown = python("slurm/status.py", str(sweep)).stdout.splitlines()
    assert shown[1] == "2 done, 0 running, 1 failed, 0 pending"
    assert shown[4].split() == ["001", "failed", "exit", "1", "seed=1"]

    other = python("slurm/submit.py", "train/echo.py", "seed=0,1,3", "tracking=none", "--local")
    assert other.returncode == 1
    assert "there already, frozen with another tracking" in other.stderr

    (desk / "mended").touch()
    logs = {run: (sweep / f"run-{run:03d}.log").read_text() for run in (0, 2)}
    resumed = python("slurm/submit.py", "train/echo.py", "seed=0,1,3", "--local")  # the same command
    assert (resumed.returncode, resumed.stdout.splitlines()) == (0, [done.stdout.splitlines()[-1]])
    assert _counts(sweep) == {"done": 3}
    assert logs == {run: (sweep / f"run-{run:03d}.log").read_text() for run in (0, 2)}
    (sweep / "run-001.done").unlink()
    resumed = python("slurm/resume.py", str(sweep), "--local")
    assert (resumed.returncode, resumed.stdout.splitlines()) == (0, [done.stdout.splitlines()[-1]])
    assert _counts(sweep) == {"done": 3}
    assert python("slurm/resume.py", str(sweep), "seed=4").returncode == 2


@contextmanager
def _waiting(desk: Path, root: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process whose run with seed=2 has begun."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=desk,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _until((desk / "waiting").exists)
        yield process
    finally:
        (desk / "go").touch()
        process.wait()


@pytest.mark.parametrize(
    ("sent", "state", "said"),
    [
        (signal.SIGKILL, "failed", "run 1 of 1, seed=2: failed with exit code -9"),
        (signal.SIGTERM, "pending", "run 1 of 1, seed=2: stopped, pending"),
    ],
)
def test_a_run_that_is_ended_from_outside_has_one_state(
    sent: signal.Signals, state: str, said: str, desk: Path, root: Path
):
    """The command said failed and the listing pending: nobody would know whether it is to be done again."""
    with _waiting(
        desk, root, str(root / "slurm" / "submit.py"), "train/echo.py", "seed=2", "--local"
    ) as process:
        (sweep,) = (desk / "runs" / "sweeps").iterdir()
        os.kill(json.loads((sweep / "run-000.running").read_text())["pid"], sent)
        _, shown = process.communicate()
    assert process.returncode == 1
    assert said in shown.splitlines()
    assert _counts(sweep) == {state: 1}


@pytest.mark.slow
def test_a_stopped_run_is_pending_and_resumes(desk: Path, root: Path, python: Python):
    """A run that was told to stop is no failure: counted as one, nobody would trust the table."""
    submit = (str(root / "slurm" / "submit.py"), "train/echo.py", "seed=2,3", "--local")
    with _waiting(desk, root, *submit) as process:
        (sweep,) = (desk / "runs" / "sweeps").iterdir()
        assert _counts(sweep) == {"running": 1, "pending": 1}
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 130
    assert _counts(sweep) == {"pending": 2}
    assert "stopped by SIGTERM; the same command resumes" in (sweep / "run-000.log").read_text()

    (desk / "waiting").unlink()
    (desk / "go").unlink()
    with _waiting(desk, root, "-m", "monitorbench.sweeps.worker", str(sweep), "0") as worker:
        worker.send_signal(signal.SIGUSR1)
        assert worker.wait() == os.EX_TEMPFAIL
    assert _counts(sweep) == {"pending": 2}

    (desk / "waiting").unlink()
    (desk / "go").unlink()
    with _waiting(desk, root, "-m", "monitorbench.sweeps.worker", str(sweep), "0") as worker:
        worker.kill()  # not even its marker is removed
        worker.wait()
        assert (sweep / "run-000.running").exists()
        assert _counts(sweep) == {"pending": 2}
