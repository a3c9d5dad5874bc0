"""The commands for a launcher of one's own: what they do when a shell really runs them."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from monitorbench.config.load import read_frozen

Python = Callable[..., subprocess.CompletedProcess[str]]


def _run(command: str, folder: Path) -> int:
    return subprocess.run(["/bin/sh", "-c", command], cwd=folder, check=False).returncode


@pytest.mark.parametrize("folder", ["runs", "of a colleague's; exit 7 #"])
def test_a_shell_runs_the_printed_commands(desk: Path, python: Python, tmp_path: Path, folder: str):
    """A launcher that has to guess how to start a run, or whose runs status.py can't see, is no launcher."""
    made = python(
        "slurm/submit.py",
        "train/echo.py",
        "seed=0,1,3",
        f'paths.runs="{folder}"',
        "--print-commands",
    )
    assert made.returncode == 0, made.stderr
    commands = made.stdout.splitlines()
    sweep = desk / made.stderr.splitlines()[-1]
    assert len(commands) == 3
    assert not list(sweep.glob("run-*.done")), "nothing is started"
    assert not list(sweep.glob("submit-*.sbatch")), "nor submitted"
    shown = python("slurm/status.py", str(sweep)).stdout.splitlines()
    assert shown[1] == "0 done, 0 running, 0 failed, 3 pending"

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert [_run(command, elsewhere) for command in commands] == [0, 1, 0]
    shown = python("slurm/status.py", str(sweep)).stdout.splitlines()
    assert shown[1] == "2 done, 0 running, 1 failed, 0 pending"

    (desk / "mended").touch()
    again = python("slurm/resume.py", str(sweep), "--print-commands")
    assert again.stdout.splitlines() == [commands[1]], "what is done is not printed"
    assert _run(again.stdout, elsewhere) == 0
    nothing = python("slurm/resume.py", str(sweep), "--print-commands")
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert nothing.stderr.startswith("nothing is pending")
    # Whoever runs all of them again does nothing twice.
    before = (sweep / "run-000.done").lstat().st_mtime_ns
    assert _run(commands[0], elsewhere) == 0
    assert (sweep / "run-000.done").lstat().st_mtime_ns == before


@pytest.mark.parametrize("other", ["--local", "--after=1", "--dry-run"])
def test_another_way_to_start_is_refused(desk: Path, python: Python, other: str):
    """Runs that are started and printed too would be done twice."""
    done = python("slurm/submit.py", "train/echo.py", "seed=0,1", "--print-commands", other)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: print_commands: starts nothing; expected without")
    assert not (desk / "runs").exists()


def test_a_group_of_ones_own_stays(desk: Path, python: Python):
    """In W&B the runs of a sweep are found under its name, unless somebody filed them under another."""
    groups = {}
    for name, given in (("own", ["tracking.group=mine"]), ("sweep", []), ("named", ["experiment=demo"])):
        made = python(
            "slurm/submit.py", "train/echo.py", "seed=0,3", f"paths.runs={name}", *given, "--print-commands"
        )
        assert made.returncode == 0, made.stderr
        sweep = desk / made.stderr.splitlines()[-1]
        found = {read_frozen(path).tracking.group for path in sorted(sweep.glob("run-???.json"))}
        groups[name] = found == {sweep.name} or found
    assert groups == {"own": {"mine"}, "sweep": True, "named": True}
