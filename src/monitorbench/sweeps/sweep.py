"""A sweep's directory, `runs/sweeps/<script>-<hash>`: what runs, settled before anything does.

    manifest.json     the stage, the overrides, every run's own, the commit, what was submitted
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
from monitorbench.config.load import freeze, read_frozen
from monitorbench.config.study import Study
from monitorbench.runs.files import content_hash, write_atomically
from monitorbench.runs.provenance import code_state

_SCRIPTS = {"train": "sft"}
"""Names of the scripts that are not called after their stage: a sweep has its script's name."""


class Submission(Config):
    """One array job."""

    job: int | None
    """Id of the array job; None while sbatch is asked for one, and where what it printed had none."""
    cluster: str | None = None
    """Cluster that sbatch named beside the id, where there are several."""
    runs: tuple[int, ...]
    at: str


class Manifest(Config):
    """Content of a sweep's `manifest.json`. Only `submissions` ever grows."""

    script: str
    """The stage's name, or a script's absolute path."""
    folder: Path
    """The working directory of every run, absolute."""
    overrides: tuple[str, ...]
    points: tuple[tuple[str, ...], ...]
    """Every run's overrides."""
    git_commit: str | None
    """Commit of the code when the sweep was frozen; each run records its own."""
    submissions: tuple[Submission, ...] = ()


class Point(NamedTuple):
    """One run of a sweep, before it is frozen."""

    overrides: tuple[str, ...]
    study: Study


class Sweep(NamedTuple):
    """A sweep's directory and its manifest."""

    path: Path
    manifest: Manifest

    def file(self, run: int, ending: str) -> Path:
        """Name a run's file, `run-<NNN>.<ending>`."""
        return self.path / f"run-{run:03d}.{ending}"

    def title(self, run: int) -> str:
        """Say which run it is to people: `run 2 of 4, seed=1`."""
        return run_title(run, self.manifest.points)

    def write(self) -> None:
        """Write the manifest."""
        write_atomically(self.path / "manifest.json", self.manifest.model_dump_json(indent=2) + "\n")

    def submitted(self, runs: Sequence[int], job: int | None = None, cluster: str | None = None) -> None:
        """Write down that an array job has these runs, its id None until it is known."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        entry = Submission(job=job, cluster=cluster, runs=tuple(runs), at=now)
        grown = self.manifest.model_copy(update={"submissions": (*self.manifest.submissions, entry)})
        Sweep(self.path, grown).write()

    def worker_command(self, run: int) -> list[str]:
        """Build the command that does one run, from any folder and machine that sees the sweep."""
        return [sys.executable, "-m", "monitorbench.sweeps.worker", str(self.path), str(run)]


def read(path: Path) -> Sweep:
    """Read the sweep in a directory; `UserError` where there is none."""
    try:
        text = (path / "manifest.json").read_text(encoding="utf-8")
        return Sweep(path.resolve(), Manifest.model_validate_json(text))
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path}: no sweep's manifest.json there; expected the directory of a sweep"
        ) from error


def settle(script: str, overrides: Sequence[str], points: Sequence[Point]) -> Sweep:
    """Name the sweep of these runs, with nothing written yet. Its name hashes the studies without paths.

    `script` is a stage's name or a script's path; both name a stage's sweep alike.
    """
    name = _SCRIPTS.get(script, Path(script).stem)
    studies = [
        point.study.model_dump(mode="json", exclude={"paths", "cluster", "tracking"}) for point in points
    ]
    manifest = Manifest(
        script=str(Path(script).resolve()) if script.endswith(".py") else script,
        folder=Path.cwd(),
        overrides=tuple(overrides),
        points=tuple(point.overrides for point in points),
        git_commit=code_state().commit,
    )
    parent = points[0].study.paths.runs.resolve() / "sweeps"
    return Sweep(parent / f"{name}-{content_hash([f'{name}.py', studies])}", manifest)


def write(sweep: Sweep, points: Sequence[Point]) -> bool:
    """Freeze every run; the manifest last, so that a sweep which has one is whole.

    A run's group in W&B is the sweep, unless its study names another. Returns whether the sweep was written
    now: frozen runs that are there already stay as they are.

    Raises:
        UserError: where the same sweep is there already, frozen with other paths or another tracking.

    """
    is_new = not (sweep.path / "manifest.json").is_file()
    for number, (_, study) in enumerate(points):
        tracking = study.tracking.model_copy(update={"group": study.tracking.group or sweep.path.name})
        frozen = study.model_copy(update={"tracking": tracking})
        if is_new:
            write_atomically(sweep.file(number, "json"), freeze(frozen))
            continue
        old = read_frozen(sweep.file(number, "json"))
        for key in ("paths", "tracking"):
            if getattr(old, key) != getattr(frozen, key):
                raise UserError(
                    f"{sweep.path}: that sweep is there already, frozen with another {key}; "
                    f"the same command with that {key} starts what is pending of it"
                )
    if is_new:
        sweep.write()
    return is_new


def run_title(run: int, points: Sequence[Sequence[str]]) -> str:
    """Say which run of a sweep it is to people: `run 2 of 4, seed=1`."""
    return ", ".join([f"run {run + 1} of {len(points)}", *swept(points)[run]])


def swept(points: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """List each run's overrides that not all runs share; all of them, where there is one run."""
    shared = set(points[0]).intersection(*points[1:]) if len(points) > 1 else set[str]()
    return [tuple(word for word in point if word not in shared) for point in points]
