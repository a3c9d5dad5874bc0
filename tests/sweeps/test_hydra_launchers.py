"""`-m hydra/launcher=local` and `slurm`: frozen runs, started by Hydra; submit.py calls these launchers."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Python = Callable[..., subprocess.CompletedProcess[str]]
SLURM = ("-m", "hydra/launcher=slurm")
LOCAL = ("-m", "hydra/launcher=local", "hydra.launcher.jobs=2")


@pytest.mark.slow
def test_runs_here_and_the_same_command_again_does_what_is_missing(desk: Path, python: Python):
    """A sweep on a laptop that begins anew after each failure is a sweep nobody finishes."""
    command = ("train/echo.py", "seed=0,1,3", *LOCAL)
    done = python(*command)
    assert done.returncode == 1, done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: 1 of 3 runs failed")
    assert {f"run {n} of 3, seed={seed}: done" for n, seed in ((1, 0), (3, 3))} <= set(
        done.stderr.splitlines()
    )
    sweep = desk / done.stdout.splitlines()[-1]
    before = (sweep / "run-000.done").lstat().st_mtime_ns
    (desk / "mended").touch()
    again = python(*command)
    assert (again.returncode, again.stdout.splitlines()[-1]) == (0, done.stdout.splitlines()[-1]), (
        again.stderr
    )
    assert {
        json.loads((sweep / f"run-{n:03d}.done" / "study.json").read_text())["seed"] for n in range(3)
    } == {
        0,
        1,
        3,
    }
    assert (sweep / "run-000.done").lstat().st_mtime_ns == before
    assert python(*command).stdout.splitlines()[-2:] == ["nothing is pending", done.stdout.splitlines()[-1]]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("seed=0,-1",), "run 2 of 2, seed=-1: seed=-1: expected greater than or equal to 0"),
        (("seed=0,1", "hydra.launcher.after=[nowhere]"), "nowhere: no sweep's manifest.json there"),
        (
            ("seed=0,1", "hydra/sweeper=optuna", "hydra.sweeper.n_trials=2"),
            "a search wants each run's value",
        ),
        (("seed=0,1", "hydra.launcher.jobs=2"), "jobs=2: is of runs on this machine; expected"),
        (("seed=0,1", "hydra.launcher.jobs=two"), "hydra.launcher.jobs=two: Value 'two'"),
        (
            ("seed=0,1", "hydra.launcher.is_local=true", "hydra.launcher.jobs=0"),
            "jobs=0: expected a number from 1",
        ),
        (
            ("seed=0,1", "hydra.launcher.is_local=true", "hydra.launcher.after=[1]"),
            "after: is of Slurm; expected without",
        ),
    ],
)
def test_a_refusal_is_one_line_and_nothing_is_frozen(
    desk: Path, python: Python, given: tuple[str, ...], words: str
):
    """Half a sweep in the queue is worse than none; so is a search that waits for runs nobody waits for."""
    refused = python("train/echo.py", *given, *SLURM)
    assert refused.returncode in (1, 2)
    assert refused.stderr.startswith("error: ")
    assert refused.stderr.count("\n") == 1
    assert words in refused.stderr
    assert not (desk / "runs" / "sweeps").exists()
