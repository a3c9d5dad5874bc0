"""`import`: a file of scores becomes a dataset and an evaluation run a monitor and split; no model is run.

Promises: everything is read and checked before anything is written; what is written appears whole; the same
file with the same settings is found again.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from monitorbench.config.base import UserError
from monitorbench.config.imports import Import
from monitorbench.config.study import Study
from monitorbench.interop.imports import values
from monitorbench.interop.imports.columns import ImportedColumns, find_columns
from monitorbench.interop.imports.conversations import read_side
from monitorbench.interop.imports.dataset import write_dataset
from monitorbench.interop.imports.evaluation import VERSION, Named, steps_of, write_evaluation
from monitorbench.interop.imports.readers.open import ImportedFiles, stem_of
from monitorbench.interop.imports.rows import imported_rows
from monitorbench.interop.imports.samples import SPLITS, keys_of, samples_of
from monitorbench.interop.imports.scores import Rows, scored
from monitorbench.interop.imports.unnest import is_list, unnested
from monitorbench.interop.imports.words import say_monitor, say_rows, say_runs, say_samples
from monitorbench.metrics.bootstrap import IntArray
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


def imported_runs(study: Study, *, calibration_share: float = 0.0) -> Imported:
    """Import `from` as `import_scores` does; with `study.plan` read and check it all, and write nothing.

    `calibration_share` is that of a file which has no split, where no setting names one.
    """
    imported = imported_rows(study.from_, study.import_)
    read, settings, places = imported.read, imported.settings, imported.places
    columns = find_columns(read.present, settings, read.clashing, [stem_of(file) for file in read.files])
    if not settings.calibration_share and "split" not in columns.names:
        settings = settings.model_copy(update={"calibration_share": calibration_share})
    draws: IntArray | None = None
    if lists := sorted({name for name in columns.scores.values() if is_list(read.table.column(name).type)}):
        if len(lists) < len(set(columns.scores.values())):
            raise UserError(f"{lists[0]}: holds lists, and other columns of scores don't; expected one form")
        read, draws, parents = unnested(read, lists, may_be_empty=True)
        places = None if places is None else places[parents]
    say_rows(read, imported.n_rows, columns)
    keys = keys_of(read, columns, settings, places, draws)
    request, response = (
        read_side(read, columns, keys, role, settings.unknown_content) for role in ("request", "response")
    )
    samples = samples_of(read, columns, keys, settings, None if request.is_absent else request.plain)
    monitors = {entry.name: (entry, rows) for entry, rows in _monitors(read, columns, settings)}
    of_monitor = {name: scored(read, keys, rows, settings) for name, (_, rows) in monitors.items()}
    files = [
        {"name": file.name, "sha256": digest, "format": kind}
        for source in imported.sources
        for file, digest, kind in zip(source.files, source.sha256, source.formats, strict=True)
    ]
    column_names = {**columns.names, "score": dict(columns.scores)}
    identity = {
        "imported": [entry["sha256"] for entry in files],
        "columns": {role: name for role, name in columns.names.items() if role not in _OF_VERDICTS},
        "settings": settings.model_dump(mode="json", include=_DECIDE_SAMPLES),
        "version": VERSION,
        **({"unusable": "take"} if settings.unusable == "take" else {}),
    }
    facts: dict[str, Any] = {"imported": {"files": files, "columns": column_names, "rows": imported.n_rows}}
    if imported.n_unusable:
        facts["imported"]["unusable"] = imported.n_unusable
    if settings.positive_means != Import().positive_means:
        facts["positive_means"] = settings.positive_means
    name = settings.name or _name_of(read.files[0])
    say_samples(samples, response)
    if study.plan:
        for monitor in monitors:
            say_monitor(monitor, of_monitor[monitor], samples, settings)
        splits = [split for split in _JUDGED if SPLITS.index(split) in samples.splits]
        evaluations = study.paths.runs / "evaluate"
        planned = {(monitor, split): evaluations for monitor in monitors for split in splits}
        return Imported(study.paths.data / name, planned)
    data = write_dataset(study, study.paths.data, name, identity, facts, samples, request, response)
    runs: dict[tuple[str, Split], Path] = {}
    for monitor, (entry, rows) in monitors.items():
        monitor_scores = of_monitor[monitor]
        say_monitor(monitor, monitor_scores, samples, settings)
        steps = steps_of(keys, samples, rows)
        origin = {"files": files, "columns": column_names}
        for split in _JUDGED:
            if split in data.rows:
                runs[monitor, split] = write_evaluation(
                    study, settings, study.paths.runs, data, split, entry, monitor_scores, steps, origin
                )
    return Imported(data.directory, runs)


_OF_VERDICTS = frozenset(("score", "flagged", "monitor", "monitor_version", "prompt_hash", "seconds", "cost"))
"""Columns that decide what monitors said, and not what was judged."""


def _monitors(read: ImportedFiles, columns: ImportedColumns, settings: Import) -> list[tuple[Named, Rows]]:
    """Each monitor of the file with its rows, in the order of their first rows."""
    n = read.table.num_rows
    flagged = None
    if "flagged" in columns.names:
        flagged = values.flags(
            read, columns.names["flagged"], settings.misbehavior_values, settings.benign_values
        )
    spent = {
        role: values.numbers(read, columns.names[role], least=0) if role in columns.names else None
        for role in ("seconds", "cost")
    }
    monitors: list[tuple[str, IntArray, np.ndarray]] = []
    for monitor, column in columns.scores.items() or [("", "")]:
        scores = (
            values.scores(read, column, scale=settings.scale, levels=settings.levels)
            if column
            else np.full(n, np.nan)
        )
        if "monitor" in columns.names:
            names = values.texts(read, columns.names["monitor"])
            if names.null_count:
                row = int(np.flatnonzero(pc.is_null(names))[0])
                values.refuse(read, row, columns.names["monitor"], "no monitor", "a name in each row")
            encoded = pc.dictionary_encode(names)
            of = encoded.indices.to_numpy()
            monitors += [
                (name, rows := np.flatnonzero(of == i), scores[rows])
                for i, name in enumerate(encoded.dictionary.to_pylist())
            ]
        else:
            name = monitor or settings.monitor or column or columns.names["flagged"]
            rows = read.rows_of(columns.files[monitor]) if monitor in columns.files else np.arange(n)
            monitors.append((name, rows, scores[rows]))
    own = [name for name, _, _ in monitors]
    safe_names = [re.sub(r"[^A-Za-z0-9._+-]+", "_", name)[:60] for name in own]
    if len(set(safe_names)) < len(safe_names):
        twice = next(name for name in safe_names if safe_names.count(name) > 1)
        alike = [value for value, its in zip(own, safe_names, strict=True) if its == twice]
        raise UserError(f"monitors {alike[0]!r} and {alike[1]!r} would both be called {twice}; rename one")
    return [
        (
            Named(
                name,
                _constant(read, columns, "monitor_version", rows) or settings.monitor_version,
                _constant(read, columns, "prompt_hash", rows) or settings.prompt_hash,
            ),
            Rows(
                rows,
                scores,
                None if flagged is None else flagged[rows],
                *(None if value is None else value[rows] for value in spent.values()),
            ),
        )
        for name, (_, rows, scores) in zip(safe_names, monitors, strict=True)
    ]


def _constant(read: ImportedFiles, columns: ImportedColumns, role: str, rows: IntArray) -> str:
    """Return the value of all rows of a monitor, "" where none has one; `UserError` where they differ."""
    if role not in columns.names:
        return ""
    name = columns.names[role]
    texts = values.texts(read, name)
    distinct = pc.unique(pc.drop_null(texts.take(rows))).to_pylist()
    if len(distinct) > 1:
        differs = pc.equal(texts.take(rows), distinct[1])
        row = int(rows[np.flatnonzero(pc.fill_null(differs, False))[0]])
        values.refuse(
            read, row, name, f"the monitor has {distinct[0]!r} elsewhere", "one for each monitor's name"
        )
    return str(distinct[0]) if distinct else ""


def _name_of(file: Path) -> str:
    stem = file.name.partition(".")[0]
    return re.sub(r"[^A-Za-z0-9._-]+", "_", stem)[:60] or "imported"
