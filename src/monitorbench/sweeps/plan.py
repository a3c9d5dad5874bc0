"""Settling a sweep: its name, its manifest, and every run's frozen study, before anything starts."""

from collections.abc import Sequence
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.config.load import freeze
from monitorbench.config.study import Study
from monitorbench.runs.files import content_hash, write_atomically
from monitorbench.runs.provenance import code_state
from monitorbench.sweeps.expand import Point
from monitorbench.sweeps.manifest import Manifest, Sweep


def plan(script: Path, overrides: Sequence[str], points: Sequence[Point], folder: Path) -> Sweep:
    """The sweep of these runs, with nothing written yet. Its name hashes the studies without paths."""
    studies = [
        point.study.model_dump(mode="json", exclude={"paths", "cluster", "tracking"}) for point in points
    ]
    parent = (folder / points[0].study.paths.runs / "sweeps").resolve()
    manifest = Manifest(
        script=script.resolve(),
        folder=folder,
        overrides=tuple(overrides),
        points=tuple(point.overrides for point in points),
        git_commit=code_state().commit,
    )
    return Sweep(parent / f"{script.stem}-{content_hash([script.name, studies])}", manifest)


def write(sweep: Sweep, points: Sequence[Point]) -> None:
    """Freeze every run; the manifest last, so that a sweep which has one is whole.

    Raises:
        UserError: where the same sweep is there already.

    """
    if (sweep.path / "manifest.json").is_file():
        raise UserError(
            f"{sweep.path}: that sweep is there already; `python slurm/resume.py {sweep.path}` starts "
            "what is pending"
        )
    for number, point in enumerate(points):
        write_atomically(sweep.file(number, "json"), freeze(_grouped(point.study, sweep.path.name)))
    sweep.write()


def _grouped(study: Study, name: str) -> Study:
    """W&B shows the runs of a sweep together, unless the study says otherwise."""
    tracking = study.tracking.model_copy(update={"group": study.tracking.group or name})
    return study.model_copy(update={"tracking": tracking})
