"""A sweep's directory, `runs/sweeps/<script>-<hash>`: what runs, settled before anything does.

    manifest.json     the script, the overrides, every run's own, the commit, what was submitted
    run-000.json      one frozen study a run
    run-000.done      a link to the directory that the run wrote: it is done
    run-000.failed    the exit code of a run that failed
    run-000.running   the host and process that runs it, while one does
    run-000.log       its output
    submit-0.sbatch   the sbatch file that Slurm was given

A later stage may name `run-000.done` as its input before that exists: its own frozen study then holds
the link, and Slurm starts it once the link is there.
"""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from monitorbench.config.base import Config, UserError
from monitorbench.runs.files import write_atomically


class Submission(Config):
    """One array job."""

    job: int | None
    """Id of the array job; None while sbatch is asked for one, and where what it printed had none."""
    cluster: str | None = None
    """Cluster that sbatch named beside the id, where there are several."""
    runs: tuple[int, ...]
    at: str


class Manifest(Config):
    """What a sweep is. Only `submissions` ever grows."""

    script: Path
    """Absolute."""
    folder: Path
    """The working directory of every run, absolute."""
    overrides: tuple[str, ...]
    points: tuple[tuple[str, ...], ...]
    """Every run's overrides."""
    git_commit: str | None
    """Of the code at the time; each run records its own."""
    submissions: tuple[Submission, ...] = ()


class Sweep(NamedTuple):
    """A sweep's directory and its manifest."""

    path: Path
    manifest: Manifest

    def file(self, run: int, ending: str) -> Path:
        """`run-<NNN>.<ending>`."""
        return self.path / f"run-{run:03d}.{ending}"

    def write(self) -> None:
        """Write the manifest."""
        write_atomically(self.path / "manifest.json", self.manifest.model_dump_json(indent=2) + "\n")

    def submitted(self, runs: Sequence[int], job: int | None = None, cluster: str | None = None) -> None:
        """Write down that an array job has these runs, its id None until it is known."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        entry = Submission(job=job, cluster=cluster, runs=tuple(runs), at=now)
        grown = self.manifest.model_copy(update={"submissions": (*self.manifest.submissions, entry)})
        Sweep(self.path, grown).write()


def read(path: Path) -> Sweep:
    """The sweep in a directory; `UserError` where there is none."""
    try:
        text = (path / "manifest.json").read_text(encoding="utf-8")
        return Sweep(path.resolve(), Manifest.model_validate_json(text))
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path}: no sweep's manifest.json there; expected a directory that submit.py wrote"
        ) from error


def worker_command(sweep: Sweep, run: int) -> list[str]:
    """The command that does one run, from any folder and on any machine that sees the sweep's directory."""
    return [sys.executable, "-m", "monitorbench.sweeps.worker", str(sweep.path), str(run)]
