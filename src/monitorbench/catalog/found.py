"""Which runs a folder of runs holds, and what each says of itself: read from manifests alone.

A damaged manifest is a run like the others, in the state `damaged`: a list that stops at one hides the rest.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from monitorbench.config.base import UserError
from monitorbench.runs.directory import MANIFEST, read_manifest
from monitorbench.runs.files import is_locked
from monitorbench.runs.run_folders import dataset_name

State = Literal["done", "running", "incomplete", "stale", "damaged"]
"""`stale`: it says running, and no process is at it. The same command resumes that, as what is incomplete."""

KINDS = (
    "train",
    "fit",
    "evaluate",
    "calibrate",
    "gate",
    "wording",
    "stress",
    "control",
    "transfer",
    "recommend",
    "pilot",
    "serve",
    "localisation",
    "episodes",
    "baselines",
)
"""The folders below the folder of runs that hold runs, in the order they are shown."""
ON_THE_WAY = ("episodes", "baselines")
"""What other stages make for themselves; listed only where asked for."""
_HASH_DIGITS = 12
_UNITS = ((86400 * 365, "y"), (86400, "d"), (3600, "h"), (60, "m"))


@dataclass(frozen=True)
class Run:
    """One run, as far as its manifest tells."""

    path: Path
    kind: str
    """The folder it is in, such as `evaluate`."""
    parts: tuple[str, ...]
    """What it is of, such as monitor, prompt, dataset and split."""
    dataset: str
    """The name alone; "" where it is of none."""
    split: str
    """Of an evaluation, else ""."""
    state: State
    started: datetime | None
    """When it was last started."""
    changed: int
    """When its manifest was last written, in ns."""
    manifest: Mapping[str, Any]
    """Empty where there is none, or a damaged one."""

    @property
    def id(self) -> str:
        """The hash at the end of the folder's name; the whole name where there is none."""
        head, _, digest = self.path.name.rpartition("-")
        return digest if head and len(digest) == _HASH_DIGITS else self.path.name

    @property
    def title(self) -> str:
        """What it is of, without dataset and split: `smollm2_135m-direct`."""
        parts = [part for part in self.parts if part not in (self.dataset, self.split)]
        return "-".join(parts) or self.parts[0]

    @property
    def age(self) -> tuple[datetime, int, str]:
        """Sorts runs by how long ago they were started; two of one second by their manifests."""
        return self.started or datetime.fromtimestamp(0, UTC), self.changed, self.path.name


def runs_in(folder: Path, kinds: Sequence[str] = KINDS, *, beginning: str = "") -> list[Run]:
    """The runs of some kinds in a folder of runs, the newest first.

    With `beginning` only those whose folder's name, or whose hash, begins so.
    """
    found = (read_run(path, kind) for kind in kinds for path in _folders(folder / kind, beginning))
    return sorted(found, key=lambda run: run.age, reverse=True)


def _folders(parent: Path, beginning: str) -> Iterator[Path]:
    try:
        with os.scandir(parent) as entries:
            names = [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        if name.startswith(beginning) or name.rpartition("-")[2].startswith(beginning):
            yield parent / name


def read_run(path: Path, kind: str) -> Run:
    """What a run's folder says of it, whatever its state."""
    state: State = "damaged"
    changed = 0
    try:
        changed = (path / MANIFEST).stat().st_mtime_ns
        manifest = read_manifest(path)
        identity = manifest["identity"]
        return Run(
            path=path,
            kind=kind,
            parts=_parts(path, kind, manifest),
            dataset=_dataset(path, kind, manifest),
            split=str(identity.get("split", "test")) if kind == "evaluate" else "",
            state=_state(path, str(manifest["status"])),
            started=datetime.fromisoformat(manifest["started"]) if "started" in manifest else None,
            changed=changed,
            manifest=manifest,
        )
    except FileNotFoundError:
        state = _state(path, "running")
    except (UserError, KeyError, ValueError, TypeError, AttributeError, IndexError):
        pass
    return Run(path, kind, (_named(path),), "", "", state, None, changed, {})


def _state(path: Path, status: str) -> State:
    if status == "done":
        return "done"
    if is_locked(path):
        return "running"
    return "incomplete" if status == "incomplete" else "stale"


def _named(path: Path) -> str:
    """A folder's name without the hash at its end."""
    return path.name.rpartition("-")[0] or path.name


def _dataset(path: Path, kind: str, manifest: Mapping[str, Any]) -> str:
    """The name of the dataset that a run read; "" of one that read none."""
    identity, results = manifest["identity"], manifest["results"]
    if kind in ("transfer", "baselines"):
        return _named(path)  # which is all that the folder's name says
    if kind == "calibrate" and "operating_point" in results:
        return dataset_name(str(results["operating_point"]["thresholds"][0]["data"]))
    return dataset_name(str(identity.get("data") or results.get("data") or ""))


def _parts(path: Path, kind: str, manifest: Mapping[str, Any]) -> tuple[str, ...]:
    identity, results = manifest["identity"], manifest["results"]
    if kind == "evaluate" and "judge" in results:
        judge = results["judge"]
        split = str(identity.get("split", "test"))
        return str(judge["name"]), str(judge["prompt"]), dataset_name(results["data"]), split
    if kind == "wording" and "monitor" in results:
        return str(results["monitor"]), dataset_name(str(identity["data"]))
    if kind == "stress" and "monitor" in results:
        return str(results["monitor"]), str(results["prompt"]), dataset_name(str(results["data"]))
    if kind == "calibrate" and "operating_point" in results:
        first = results["operating_point"]["thresholds"][0]
        monitor, prompt, _ = first["monitor"].split("/")
        return monitor, prompt, dataset_name(first["data"])
    if kind in ("train", "fit") and "name" in results:
        name, data, seed = str(results["name"]), dataset_name(identity["data"]), f"seed{identity['seed']}"
        name = f"{identity['head']['name']}-{name}" if kind == "fit" else name
        # The monitor's name is nowhere but in the folder's; in an older one without dataset and seed.
        monitor = _named(path).removesuffix(f"-{data}-{seed}").removesuffix(f"-{name}")
        return monitor, name, data, seed
    return (_named(path),)


def age_in_words(started: datetime | None, now: datetime | None = None) -> str:
    """`<1m`, `5m`, `3h`, `12d`, `2y`; `?` where nobody knows."""
    if started is None:
        return "?"
    seconds = ((now or datetime.now(UTC)) - started).total_seconds()
    return next((f"{seconds / each:.0f}{unit}" for each, unit in _UNITS if seconds >= each), "<1m")
