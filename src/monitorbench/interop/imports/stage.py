"""`import`: a file of scores becomes a dataset and an evaluation run a monitor and split; no model is run.

Promises: everything is read and checked before anything is written; what is written appears whole; the same
file with the same settings is found again.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.imports import Import
from monitorbench.config.study import Study
from monitorbench.interop.imports.conversations import read_side
from monitorbench.interop.imports.dataset import write_dataset
from monitorbench.interop.imports.evaluation import VERSION, steps_of, write_evaluation
from monitorbench.interop.imports.monitors import read_scores
from monitorbench.interop.imports.readers.open import stem_of
from monitorbench.interop.imports.samples import SPLITS, samples_of
from monitorbench.interop.imports.words import say_monitor, say_renamed, say_rows, say_runs, say_samples
from monitorbench.records import Split

_DECIDE_SAMPLES = {
    "actions",
    "unit",
    "draws",
    "misbehavior_values",
    "benign_values",
    "category",
    "task",
    "calibration_share",
    "seed",
    "unknown_content",
    "where",
    "benign_places",
}
_JUDGED = (Split.CALIBRATION, Split.VALIDATION, Split.TEST)


class Imported(NamedTuple):
    """A dataset, and the evaluation runs over it."""

    data: Path
    runs: Mapping[tuple[str, Split], Path]
    """Directory of each run, by monitor and split; of a plan the folder that it would be in."""


def import_scores(study: Study) -> Path:
    """Import `from`; returns the run over the test split, of several monitors the first one's.

    Raises `ConfigError` for settings that don't fit each other, `UserError` for a file that can't be read or
    a row that can't be taken, with its line and field.
    """
    imported = imported_runs(study)
    return say_runs(imported.runs, imported.data)


def imported_runs(study: Study, *, calibration_share: float = 0.0, needed: Sequence[Split] = ()) -> Imported:
    """Import `from` as `import_scores` does; with `study.plan` read and check it all, and write nothing.

    `calibration_share` is that of a file which has no split, where no setting names one. Raises `UserError`,
    and writes nothing, where a split of `needed` has no sample.
    """
    scores = read_scores(study.from_, study.import_)
    imported, read, columns, keys = scores.imported, scores.read, scores.columns, scores.keys
    settings = imported.settings
    if not settings.calibration_share and "split" not in columns.names:
        settings = settings.model_copy(update={"calibration_share": calibration_share})
    say_rows(read, imported.n_rows, columns)
    request, response = (read_side(read, columns, keys, role, settings) for role in ("request", "response"))
    samples = samples_of(read, columns, keys, settings, None if request.is_absent else request.plain)
    files = [entry for source in imported.sources for entry in source.facts()]
    column_names = {**columns.names, "score": dict(columns.scores)}
    identity = {
        "imported": [entry["sha256"] for entry in files],
        "columns": {role: name for role, name in columns.names.items() if role not in _OF_VERDICTS},
        "settings": settings.model_dump(mode="json", include=_DECIDE_SAMPLES),
        "version": VERSION,
        **({"unusable": "take"} if settings.unusable == "take" else {}),
        **({"rows": settings.rows} if settings.rows else {}),
    }
    facts: dict[str, Any] = {"imported": {"files": files, "columns": column_names, "rows": imported.n_rows}}
    if settings.calibration_share:
        facts["imported"]["calibration_share"] = settings.calibration_share
    if imported.n_unusable:
        facts["imported"]["unusable"] = imported.n_unusable
    if settings.positive_means != Import().positive_means:
        facts["positive_means"] = settings.positive_means
    name = settings.name or re.sub(r"[^A-Za-z0-9._-]+", "_", stem_of(read.files[0]))[:60] or "imported"
    say_samples(samples, response, settings.calibration_share, is_split="split" in columns.names)
    for split in needed:
        if SPLITS.index(split) not in samples.splits:
            raise UserError(
                f"from: {name}: no sample for {split}, so nothing was imported; expected samples of "
                f"{' and '.join(needed)}: more groups, or a split column"
            )
    say_renamed({monitor.own_name: monitor.name for monitor in scores.monitors})
    if study.plan:
        for monitor in scores.monitors:
            say_monitor(monitor.name, monitor.scored, samples, settings)
        splits = [split for split in _JUDGED if SPLITS.index(split) in samples.splits]
        evaluations = study.paths.runs / "evaluate"
        planned = {(monitor.name, split): evaluations for monitor in scores.monitors for split in splits}
        return Imported(study.paths.data / name, planned)
    data = write_dataset(study, study.paths.data, name, identity, facts, samples, request, response)
    runs: dict[tuple[str, Split], Path] = {}
    for monitor in scores.monitors:
        say_monitor(monitor.name, monitor.scored, samples, settings)
        steps = steps_of(keys, samples, monitor.rows)
        origin = {"files": files, "columns": column_names}
        for split in _JUDGED:
            if split in data.rows:
                runs[monitor.name, split] = write_evaluation(
                    study, settings, study.paths.runs, data, split, monitor, steps, origin
                )
    return Imported(data.directory, runs)


_OF_VERDICTS = frozenset(("score", "flagged", "monitor", "monitor_version", "prompt_hash", "seconds", "cost"))
"""Columns that decide what monitors said, and not what was judged."""
