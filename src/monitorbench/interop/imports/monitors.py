"""Monitors that somebody else ran: their names and their scores of each sample, out of files of any form.

Promises: this is the one way from a file to scores, whether samples are made of it (`import`) or are there
already (`monitor=recorded`).
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from monitorbench.config.base import UserError
from monitorbench.config.imports import Import
from monitorbench.interop.imports import values
from monitorbench.interop.imports.columns import ImportedColumns, find_columns
from monitorbench.interop.imports.keys import Keys, keys_of
from monitorbench.interop.imports.readers.open import ImportedFiles, stem_of
from monitorbench.interop.imports.rows import ImportedRows, imported_rows, is_list, unnested
from monitorbench.interop.imports.scores import Rows, Scored, scored
from monitorbench.metrics.bootstrap import IntArray
from monitorbench.metrics.score_facts import as_imported
from monitorbench.runs.run_folders import refuse_baselines_name
from monitorbench.untrusted_rows import lists_of


class ForeignMonitor(NamedTuple):
    """A monitor of the files, as far as it is named there, and what it says."""

    name: str
    """Its own name, as far as folders can have it."""
    own_name: str
    version: str
    prompt_hash: str
    rows: Rows
    scored: Scored


class ForeignScores(NamedTuple):
    """Scores in files, by sample of the files and monitor."""

    imported: ImportedRows
    read: ImportedFiles
    """Rows of these, of lists of draws a row a draw."""
    columns: ImportedColumns
    keys: Keys
    monitors: list[ForeignMonitor]
    """Monitors in the order of their first rows."""


def read_scores(
    files: Sequence[Path], settings: Import, *, labelled: bool = True, also: Sequence[str] = ()
) -> ForeignScores:
    """Read the scores in files as the settings say; `also` are columns to read beside theirs.

    Of files that are not `labelled` a column `label` is what the monitor said, unless there is one `flagged`.
    Raises `ConfigError` for settings that don't fit each other, `UserError` for a file that can't be read or
    a row that can't be taken, with its line and field.
    """
    imported = imported_rows(files, settings, also)
    read, settings, places = imported.read, imported.settings, imported.places
    stems = [stem_of(file) for file in read.files]
    try:
        columns = find_columns(read.present, settings, read.clashing, stems, labelled=labelled)
    except UserError as error:
        if read.formats[0] != "jsonl" or settings.rows:
            raise
        usual = {name for names in settings.columns.looked_for().values() for name in names}
        ids = read.table.column("id").to_pylist() if "id" in read.table.column_names else []
        if columns_as_ids := [name for name in ids if name in usual]:
            raise UserError(
                f"{read.files[0]}: {', '.join(columns_as_ids)}: rows or columns? expected an object a row "
                "(pandas: orient='records')"
            ) from error
        if lists := lists_of(read.files[0]):
            raise UserError(f"{error}; rows in a list are read by import.rows={lists[0]}") from error
        raise
    draws: IntArray | None = None
    if lists := sorted({name for name in columns.scores.values() if is_list(read.table.column(name).type)}):
        if len(lists) < len(set(columns.scores.values())):
            raise UserError(f"{lists[0]}: holds lists, and other columns of scores don't; expected one form")
        read, draws, parents = unnested(read, lists, may_be_empty=True)
        places = None if places is None else places[parents]
    keys = keys_of(read, columns, settings, places, draws)
    return ForeignScores(imported, read, columns, keys, _monitors(read, columns, keys, settings, labelled))


def _monitors(
    read: ImportedFiles, columns: ImportedColumns, keys: Keys, settings: Import, labelled: bool
) -> list[ForeignMonitor]:
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
    for name in safe_names:
        refuse_baselines_name(name)
        if (short := as_imported(name)[0]) != name and short in safe_names:
            raise UserError(
                f"monitors {short!r} and {name!r}: {name} is what {short} is called where scores lack"
            )
    entries = []
    for name, (own_name, rows, scores) in zip(safe_names, monitors, strict=True):
        own_rows = Rows(
            rows,
            scores,
            None if flagged is None else flagged[rows],
            *(None if value is None else value[rows] for value in spent.values()),
        )
        version = _constant(read, columns, "monitor_version", rows) or settings.monitor_version
        prompt_hash = _constant(read, columns, "prompt_hash", rows) or settings.prompt_hash
        combined = scored(read, keys, own_rows, settings, keeps_answers=not labelled)
        entries.append(ForeignMonitor(name, own_name, version, prompt_hash, own_rows, combined))
    return entries


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
        expected = f"one for each monitor's name, or import.columns.{role}='' to leave the column alone"
        values.refuse(read, row, name, f"the monitor has {distinct[0]!r} elsewhere", expected)
    return str(distinct[0]) if distinct else ""
