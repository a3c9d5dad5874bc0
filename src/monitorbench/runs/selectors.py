"""Runs by short names: a path, `latest`, `@NAME` or `@NAME/SPLIT`, or how a folder's name or hash begins.

In a list `@*` stands for every run that fits.

`resolved` puts paths in the place of such names before a stage sees its study, so that its `config.json`
holds the path. Promises: a short name never gives a run of a kind, split or state that the stage can't read;
one that fits several runs is refused with their names.

`sources` and `readers` say which runs were made from which. Folders are compared by name, which ends in a
hash: a folder of runs may have been moved since.

`READS` says which runs each setting of each stage can name.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.load import did_you_mean
from monitorbench.config.monitor import Monitor
from monitorbench.config.study import Study
from monitorbench.runs.directory import KINDS, read_manifest
from monitorbench.runs.files import content_hash
from monitorbench.runs.run_folders import Run, age_in_words, runs_in


@dataclass(frozen=True)
class Wanted:
    """The runs that a setting can name."""

    kinds: tuple[str, ...]
    words: str
    """The words of an error for what was expected."""
    split: str = ""
    """The split that an evaluation must have judged; "" for any."""
    is_done: bool = True
    """Whether only a finished run will do."""
    fits: Callable[[Run], bool] = lambda _: True
    """A further test of the runs that `latest` and `@` mean; who types a name means that run."""

    def takes(self, run: Run) -> bool:
        """Whether a run is of the kind, the split and the state."""
        return (
            run.kind in self.kinds
            and (not self.split or run.split in ("", self.split))
            and (not self.is_done or run.state == "done")
        )


ANY_RUN = Wanted(tuple(KINDS), "a run", is_done=False)
COMPARED = replace(
    ANY_RUN,
    words="a finished evaluation run",
    fits=lambda run: run.kind == "evaluate" and run.state == "done",
)
_JUDGED = Wanted(("evaluate",), "a finished evaluation run")
_TESTED = Wanted(("evaluate",), "a finished evaluation run over the test split", "test")
_CALIBRATED = Wanted(("evaluate",), "a finished evaluation run over the calibration split", "calibration")
_ROUND = Wanted(("label",), "a finished round of labels")
_TRAINED = Wanted(("train",), "a finished training run")
_FITTED = Wanted(("fit",), "a finished fit of a probe")
_THRESHOLD = Wanted(("calibrate",), "a finished calibration")
_CHOSEN_FROM = Wanted(
    ("evaluate",),
    "a finished evaluation run over the calibration or the test split",
    fits=lambda run: run.split != "validation",
)
_PILOTED = Wanted(("pilot",), "a finished pilot")
_WORDED = Wanted(("wording",), "a finished choice of a wording")
_REPORTED = Wanted(
    ("evaluate", "transfer", "pilot"),
    "a scored evaluation run, a transfer run or a pilot",
    fits=lambda run: (
        run.kind == "pilot"
        or (run.kind == "evaluate" and run.split == "test" and "imported" in run.manifest["results"])
        or (run.path / "metrics.json").is_file()
    ),
)


def _or_round(wanted: Wanted) -> Wanted:
    """The runs of a setting, or a round of labels, which has numbers as soon as a label is back."""
    return replace(
        wanted,
        kinds=(*wanted.kinds, "label"),
        words=f"{wanted.words}, or a round of labels",
        fits=lambda run: (
            bool(run.manifest["results"]["n_labels"]) if run.kind == "label" else wanted.fits(run)
        ),
    )


_MONITOR = {"monitor.adapter": _TRAINED, "monitor.head": _FITTED, "monitor.head_beside": _FITTED}
READS: dict[str, dict[str, Wanted]] = {
    "evaluate": {**_MONITOR, "adapters": _TRAINED},
    "elicit": _MONITOR,
    "wording": _MONITOR,
    "label": {"run": _ROUND},
    "queue": {"run": _ROUND},
    "views": _MONITOR,
    "serve": {**_MONITOR, "adapters": _TRAINED, "operating_point": _THRESHOLD},
    "pilot": _MONITOR,
    "score": {"run": _or_round(_TESTED), "operating_point": _THRESHOLD},
    "stress": {"run": _JUDGED, "operating_point": _THRESHOLD},
    "calibrate": {"run": _or_round(_CALIBRATED), "operating_point": _THRESHOLD},
    "combine": {"combine.calibration": _CALIBRATED, "combine.test": _TESTED},
    "control": {"control.calibration": _CALIBRATED, "control.test": _TESTED},
    "gate": {
        "run": replace(_TESTED, words="a finished evaluation run", split=""),
        "operating_point": _THRESHOLD,
        **_MONITOR,
    },
    "transfer": {
        "transfer.runs": _TESTED,
        "transfer.operating_points": _THRESHOLD,
        "transfer.wordings": _WORDED,
    },
    "report": {"run": _or_round(_REPORTED), "operating_point": _THRESHOLD},
    "recommend": {"recommend.runs": _or_round(_CHOSEN_FROM), "recommend.pilot": _PILOTED},
    "export": {"run": _JUDGED, "operating_point": _THRESHOLD},
    "merge": {"run": _TRAINED},
    "push": {"run": _TRAINED},
    "verify": {"run": ANY_RUN},
}
"""The settings of each stage that name runs, and which; in the order they are resolved."""
NEEDS_A_RUN = frozenset(("score", "stress", "calibrate", "report", "merge", "push"))


LATEST = "latest"
BY_NAME = "@"
EVERY = "@*"
"""Value of a setting that takes several runs: every run that fits, the oldest first."""
_LISTED, _MOST_LISTED = 3, 10
_NAMED_IN_RESULTS = ("judged", "runs", "tested", "episodes", "combined.runs")
"""Keys of the manifests of some kinds of runs that name the runs they were made from."""
_log = logging.getLogger(__name__)


def resolved(study: Study, stage: str) -> Study:
    """The study with paths for the short names of runs that `stage` reads; each is said in one line.

    Raises `ConfigError` where a stage that needs a run is given none, `UserError` for a name that fits no run
    or several; both list runs that fit.
    """
    for key, wanted in READS.get(stage, {}).items():
        group, _, name = key.rpartition(".")
        holder: Any = getattr(study, group) if group else study
        value = getattr(holder, name, None)
        if key == "run" and value is None and stage in NEEDS_A_RUN:
            listed = _listed(_fitting(study.paths.runs, wanted)[:_LISTED], "the latest that fit")
            raise ConfigError(f"run=null: no value given; expected run=RUN, {wanted.words}{listed}")
        if key == "operating_point":
            of = _of_the_judge(study.run) if study.run else _of_the_recommended(study.paths.runs)
            wanted = replace(wanted, fits=of)
        if key in ("monitor.adapter", "adapters"):
            wanted = replace(wanted, fits=_of_the_base(study.monitor))
        runs = study.paths.runs
        changed: Any = value
        if isinstance(value, Path):
            changed = _path_of(runs, key, value, wanted)
        elif isinstance(value, tuple):
            changed = tuple(path for entry in value for path in _paths_of(runs, key, entry, wanted))
        if changed != value:
            holder = holder.model_copy(update={name: changed})
            study = study.model_copy(update={group: holder}) if group else holder
    return study


def _paths_of(runs: Path, key: str, typed: Path, wanted: Wanted) -> list[Path]:
    """The runs that an entry of a list stands for: `@*` is all that fit. `UserError` where none does."""
    if str(typed) != EVERY:
        return [_path_of(runs, key, typed, wanted)]
    # A round of labels has all its monitors in itself, and stands beside no other run.
    paths = [run.path for run in reversed(_fitting(runs, wanted)) if run.kind != "label"]
    if not paths:
        raise UserError(f"{key}={EVERY}: no such run in {runs}; expected {wanted.words}")
    _log.info("%s=%s: %d runs", key, EVERY, len(paths))
    return paths


def _path_of(runs: Path, key: str, typed: Path, wanted: Wanted) -> Path:
    """The run that was typed, said in a line where it was not typed as a path."""
    path = find(runs, str(typed), wanted, key)
    if path != typed:
        _log.info("%s=%s: %s", key, typed, path)
    return path


def find(runs: Path, name: str, wanted: Wanted = ANY_RUN, key: str = "") -> Path:
    """The path of the run that a short name means, or of the folder that is there under it.

    What has a slash in it and is not there is given back: the stage says what it misses. Raises `UserError`
    where no run fits, or several do.
    """
    setting = f"{key}={name}" if key else name
    if name == LATEST or name.startswith(BY_NAME):
        if described := by_description(name, _fitting(runs, wanted)):
            return described.path
        reason = f"no such run in {runs}"
        title = name.removeprefix(BY_NAME).partition("/")[0]
        names = [run.parts[0] for run in _fitting(runs, wanted) if run.parts]
        if title not in names and (nearest := did_you_mean(title, names, BY_NAME)):
            reason += f"; {nearest}"
    else:
        path = Path(name)
        if path.exists() or len(path.parts) != 1:
            return path
        of_all_kinds = runs_in(runs, beginning=name)
        candidates = by_beginning(name, [run for run in of_all_kinds if wanted.takes(run)])
        if len(candidates) == 1:
            return candidates[0].path
        if candidates:
            raise UserError(f"{setting}: {len(candidates)} runs begin so; expected one{_listed(candidates)}")
        if of_all_kinds:
            listed = _listed(of_all_kinds)
            raise UserError(f"{setting}: no run that begins so fits; expected {wanted.words}{listed}")
        reason = "no such folder, and no run begins so"
    listed = _listed(_fitting(runs, wanted)[:_LISTED], "the latest that fit")
    raise UserError(f"{setting}: {reason}; expected {wanted.words}{listed}")


def by_description(name: str, newest_first: Sequence[Run]) -> Run | None:
    """The newest run that `latest`, `@NAME` or `@NAME/SPLIT` describes.

    NAME is what it is of, or the first parts of that: `smollm2_135m`, `smollm2_135m-direct`.
    """
    if name == LATEST:
        return next(iter(newest_first), None)
    title, _, split = name.removeprefix(BY_NAME).partition("/")
    return next(
        (
            run
            for run in newest_first
            if title in ("-".join(run.parts[:n]) for n in range(1, len(run.parts) + 1))
            and (not split or run.split == split)
        ),
        None,
    )


def by_beginning(name: str, runs: Sequence[Run]) -> list[Run]:
    """The runs whose folder's name or hash begins so; only that one whose name it is."""
    if exact := [run for run in runs if run.path.name == name]:
        return exact
    return [run for run in runs if run.path.name.startswith(name) or run.id.startswith(name)]


def _of_the_judge(run: Path) -> Callable[[Run], bool]:
    """Whether a calibration is of the judge of the run that is scored; where that has none, any will do."""

    def fits(calibration: Run) -> bool:
        if "judge" not in (identity := read_manifest(run)["identity"]):
            return True
        judge = content_hash(identity["judge"])
        return bool(_threshold(calibration)["monitor"].rpartition("/")[2] == judge)

    return fits


def _of_the_recommended(runs: Path) -> Callable[[Run], bool]:
    """Whether a calibration is of the monitor that the newest recommendation on its dataset names.

    Without one, any will do: `choose` calibrates all monitors that it chose from, one as new as the other.
    """
    recommended: dict[str, str] = {}
    for run in reversed(runs_in(runs, ("recommend",))):
        if run.state == "done" and (results := run.manifest["results"])["decision"] == "recommend":
            recommended[results["data"]] = f"{results['monitor']}/{results['prompt']}"

    def fits(calibration: Run) -> bool:
        threshold = _threshold(calibration)
        monitor = recommended.get(threshold["data"])
        return monitor is None or bool(threshold["monitor"].rpartition("/")[0] == monitor)

    return fits


def _threshold(calibration: Run) -> Mapping[str, Any]:
    """The first threshold of a calibration: all are of one monitor and dataset."""
    first: Mapping[str, Any] = calibration.manifest["results"]["operating_point"]["thresholds"][0]
    return first


def _of_the_base(monitor: Monitor) -> Callable[[Run], bool]:
    """Whether an adapter was trained on the weights that it is to be put on."""

    @cache
    def weights() -> str:
        from monitorbench.engines.weights import weights_identity

        return weights_identity(monitor)

    return lambda training: bool(training.manifest["identity"]["weights"] == weights())


def _fitting(runs: Path, wanted: Wanted) -> list[Run]:
    return [run for run in runs_in(runs, wanted.kinds) if wanted.takes(run) and wanted.fits(run)]


def _listed(runs: Sequence[Run], title: str = "") -> str:
    head = f"; {title}:" if title and runs else ""
    lines = [
        f"\n  {run.path.name}  ({run.kind}, {run.state}, {age_in_words(run.started)})"
        for run in runs[:_MOST_LISTED]
    ]
    more = f"\n  and {len(runs) - _MOST_LISTED} more" if len(runs) > _MOST_LISTED else ""
    return head + "".join(lines) + more


def settings(run: Run) -> Mapping[str, Any]:
    """A run's `config.json`; empty where it has none that can be read."""
    try:
        config = json.loads((run.path / "config.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return config if isinstance(config, dict) else {}


def sources(run: Run) -> set[str]:
    """The names of the folders that a run was made from; some of them may be no runs."""
    config, results = settings(run), run.manifest.get("results", {})
    # A run of one of several `adapters` was judged with the one that `monitor.adapter` names.
    stage = "combine" if results.get("combined") else run.kind
    values = [_inner(config, key) for key in READS.get(stage, {}) if key != "adapters"]
    values += [_inner(results, key) for key in _NAMED_IN_RESULTS]
    paths = [
        Path(text) for value in values for text in (value if isinstance(value, list) else [value]) if text
    ]
    # An adapter is a folder inside its run, a sweep's link leads to the run.
    places = {place for path in paths for place in ((path, path.resolve()) if path.is_symlink() else (path,))}
    return {name for path in places for name in (path.name, path.parent.name)}


def readers(run: Run, candidates: Sequence[Run]) -> list[Run]:
    """The candidates that were made from a run."""
    return [reader for reader in candidates if reader.path != run.path and run.path.name in sources(reader)]


def _inner(tree: Any, key: str) -> Any:
    for name in key.split("."):
        tree = tree.get(name) if isinstance(tree, Mapping) else None
    return tree if isinstance(tree, str | list) else None
