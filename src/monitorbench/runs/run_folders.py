"""Folders of runs: their place and name, which there are, and what each says of itself.

Stages write where this module says, and studies and lists look there, with nothing heavy imported. A folder's
name says what the run is of, and ends in the hash of its identity. A list is read from manifests alone; a
damaged one is a run like the others, in the state `damaged`: a list that stops at one hides the rest.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.runs.directory import KINDS, MANIFEST, RunDirectory, read_manifest
from monitorbench.runs.files import content_hash, is_locked

State = Literal["done", "running", "incomplete", "stale", "damaged"]
"""`stale`: it says running, and no process is at it. The same command resumes that, as what is incomplete."""
_HASH_DIGITS = 12
_UNITS = ((86400 * 365, "y"), (86400, "d"), (3600, "h"), (60, "m"))
_LONGEST_NAME = 160
"""Bytes in front of the hash; a file system takes 255, with what names a folder in the making."""


def run_name(*parts: str) -> str:
    """Join what a run is of to a folder's name: `smollm2_135m-direct-starter-test`; long parts are cut.

    What a file's name or cell may hold besides letters, digits and few signs becomes `_`.
    """
    parts = tuple(re.sub(r"[^\w.+@=~()-]+", "_", part) for part in parts)
    name = "-".join(filter(None, parts))
    if len(name.encode()) <= _LONGEST_NAME:
        return name
    each = _LONGEST_NAME // len(parts) - 1
    return "-".join(name.encode()[:each].decode(errors="ignore") for name in filter(None, parts))


def dataset_name(directory: str) -> str:
    """The dataset's name in the name of its directory, `<name>-<hash>`."""
    return directory.rpartition("-")[0] or directory


def training_run(study: Study, data: str, weights: str) -> RunDirectory:
    """The run of the study's training on the dataset directory named `data`.

    `weights` is `engines.weights.weights_identity` of the monitor.
    """
    training: dict[str, Any] = {
        "training": study.training.model_dump(mode="json") | {"dtype": study.training.resolved_dtype}
    }
    if study.training.extra_source:
        training["instructions"] = study.source[study.training.extra_source].model_dump(mode="json")
    return _learning_run("train", study, data, weights, training, study.monitor.name)


def fit_run(study: Study, data: str, weights: str, dtype: str) -> RunDirectory:
    """The run of the study's fit of a head on the dataset directory named `data`.

    `weights` as for `training_run`; `dtype` is the one that the states are extracted in.
    """
    fit = {"head": study.head.model_dump(mode="json"), "dtype": dtype}
    return _learning_run("fit", study, data, weights, fit, study.monitor.name, study.head.name)


def _learning_run(
    kind: str, study: Study, data: str, weights: str, learned: Mapping[str, Any], *learner: str
) -> RunDirectory:
    """The run in which `learner` learns a train subset; `learned` is what its kind adds to the identity."""
    identity = {
        "data": data,
        "train": study.dataset.train.model_dump(mode="json"),
        "validation": study.dataset.validation.model_dump(mode="json"),
        "weights": weights,
        "prompt": study.prompt.of_whole_responses.model_dump(mode="json"),
        "opening": study.monitor.opening,
        **learned,
        "seed": study.seed,
    }
    subset = subset_name(study.dataset.train.subset)
    name = run_name(*learner, subset, dataset_name(data), f"seed{study.seed}")
    return RunDirectory(study.paths.runs / kind, name, identity)


def subset_name(subset: Sequence[str]) -> str:
    """A train subset as a name: `safety_permission_code`, `all-sycophancy_bias`."""
    return "+".join(subset).replace("/", "_")


_BASELINES = frozenset(
    ("always_benign", "always_misbehavior", "random", "length", "echo", "overlap", "form", "bag_of_words")
) | {"all_shortcuts"}


def refuse_baselines_name(monitor: str) -> None:
    """Raise `UserError` for a monitor that is called as a baseline, which stands in every table."""
    if monitor in _BASELINES:
        raise UserError(
            f"monitor {monitor!r}: a baseline of that name is in every table; expected another name "
            "(monitor.name=NAME, import.monitor=NAME or import.monitors={NAME:COLUMN})"
        )


def evaluation_run(runs: Path, monitor: str, prompt: str, identity: Mapping[str, Any]) -> RunDirectory:
    """The run of a monitor, asked with a prompt, over the split of the dataset that the identity names.

    Raises `UserError` for a baseline's name.
    """
    refuse_baselines_name(monitor)
    name = run_name(monitor, prompt, dataset_name(identity["data"]), identity["split"])
    return RunDirectory(runs / "evaluate", name, identity)


def evaluation_id(manifest: Mapping[str, Any]) -> str:
    """`<monitor>-<prompt>-<hash>`: the same for one run whatever its folder is called."""
    judge = manifest["results"]["judge"]
    return f"{judge['name']}-{judge['prompt']}-{content_hash(manifest['identity'])}"


@dataclass(frozen=True)
class Run:
    """One run, as far as its manifest tells."""

    path: Path
    kind: str
    """Folder that the run is in, such as `evaluate`."""
    parts: tuple[str, ...]
    """Names of what the run is of, such as monitor, prompt, dataset and split."""
    dataset: str
    """Name of the dataset; "" where the run is of none."""
    split: str
    """The split that an evaluation judged; "" for other kinds."""
    state: State
    started: datetime | None
    """Time at which the run was last started."""
    changed: int
    """Time at which its manifest was last written, in ns."""
    manifest: Mapping[str, Any]
    """Manifest of the run; empty where there is none, or a damaged one."""

    @property
    def id(self) -> str:
        """The hash at the end of the folder's name; the whole name where there is none."""
        head, _, digest = self.path.name.rpartition("-")
        return digest if head and len(digest) == _HASH_DIGITS else self.path.name

    @property
    def title(self) -> str:
        """Names of what the run is of, without dataset and split: `smollm2_135m-direct`."""
        first, *names = self.parts  # a monitor may have the dataset's name
        for name in (self.dataset, self.split):
            if name in names:
                names.remove(name)
        return "-".join((first, *names))

    @property
    def age(self) -> tuple[datetime, int, str]:
        """Sorts runs by how long ago they were started; two of one second by their manifests."""
        return self.started or datetime.fromtimestamp(0, UTC), self.changed, self.path.name


def runs_in(folder: Path, kinds: Iterable[str] = KINDS, *, beginning: str = "") -> list[Run]:
    """The runs of some kinds in a folder of runs, the newest first.

    With `beginning` only those whose folder's name, or whose hash, begins so.
    """
    runs = (read_run(path, kind) for kind in kinds for path in _folders(folder / kind, beginning))
    return sorted(runs, key=lambda run: run.age, reverse=True)


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
    """Read a run from its folder, whatever its state."""
    state: State = "damaged"
    changed = 0
    try:
        changed = (path / MANIFEST).stat().st_mtime_ns
        manifest = read_manifest(path)
        parts, dataset = _described(path, kind, manifest)
        return Run(
            path=path,
            kind=kind,
            parts=parts,
            dataset=dataset,
            split=str(manifest["identity"]["split"]) if kind == "evaluate" else "",
            state=_state(path, str(manifest["status"])),
            started=datetime.fromisoformat(manifest["started"]) if "started" in manifest else None,
            changed=changed,
            manifest=manifest,
        )
    except FileNotFoundError:
        state = _state(path, "running")
    except (UserError, KeyError, ValueError, TypeError, AttributeError, IndexError):
        pass
    return Run(path, kind, (_name_of(path),), "", "", state, None, changed, {})


def _state(path: Path, status: str) -> State:
    if status == "done":
        return "done"
    if is_locked(path):
        return "running"
    return "incomplete" if status == "incomplete" else "stale"


def _name_of(path: Path) -> str:
    """A folder's name without the hash at its end."""
    return path.name.rpartition("-")[0] or path.name


def _described(path: Path, kind: str, manifest: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
    """Tell what a run is of, and the name of the dataset that it read; "" where it read none."""
    identity, results = manifest["identity"], manifest["results"]
    dataset = dataset_name(str(identity.get("data") or results.get("data") or ""))
    if kind == "evaluate" and "judge" in results:
        judge = results["judge"]
        return (str(judge["name"]), str(judge["prompt"]), dataset, str(identity["split"])), dataset
    if kind in ("wording", "views", "stress") and "monitor" in results:
        prompt = [str(results["prompt"])] if kind == "stress" else []
        return (str(results["monitor"]), *prompt, dataset), dataset
    if kind == "calibrate" and "operating_point" in results:
        threshold = results["operating_point"]["thresholds"][0]
        # A log of unlabelled traffic has a name alone, no prompt and no hash.
        judge = threshold["monitor"].split("/")[:2]
        dataset = dataset_name(str(threshold["data"]))
        return (*judge, dataset), dataset
    if kind in ("train", "fit") and "name" in results:
        head = f"{identity['head']['name']}-" if kind == "fit" else ""
        subset, seed = f"{head}{results['name']}", f"seed{identity['seed']}"
        # The monitor's name is nowhere but in the folder's.
        return (_name_of(path).removesuffix(f"-{subset}-{dataset}-{seed}"), subset, dataset, seed), dataset
    # Of a transfer study and of baselines the folder's name is the dataset's.
    return (_name_of(path),), _name_of(path) if kind in ("transfer", "baselines") else dataset


def age_in_words(started: datetime | None, now: datetime | None = None) -> str:
    """`<1m`, `5m`, `3h`, `12d`, `2y`; `?` where nobody knows."""
    if started is None:
        return "?"
    seconds = ((now or datetime.now(UTC)) - started).total_seconds()
    return next((f"{seconds / each:.0f}{unit}" for each, unit in _UNITS if seconds >= each), "<1m")
