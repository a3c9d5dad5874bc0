"""A second file that says what a log can't: the label of each sample, perhaps its group, category and split.

Promises: a column in which the log says anything stays the log's, but a label is said once; a sample that the
second file says nothing of is left out of everything, and counted.
"""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.imports import Import
from monitorbench.interop.imports.columns import absent_column
from monitorbench.interop.imports.readers.open import ImportedFiles, read_files
from monitorbench.interop.imports.values import flags, refuse, texts
from monitorbench.metrics.bootstrap import IntArray


class Labelled(NamedTuple):
    """A log's rows with what is known of their samples."""

    read: ImportedFiles
    """Files of the log, without the rows that were left out."""
    labels: ImportedFiles
    n_left_out: int
    """Rows of the log whose sample has no label."""


def labelled(read: ImportedFiles, file: Path, settings: Import) -> Labelled:
    """Join the columns of `file` (`import.labels`) to the log's rows, by sample.

    Raises `ConfigError` where the log has labels of its own, `UserError` where a column is missing, the file
    can't be read or says two things of a sample, or where it has the label of no sample of the log.
    """
    labels = read_files([file], settings.model_copy(update={"format": "auto", "rows": ""}))
    own, theirs = (_column(source, "sample", settings) for source in (read, labels))
    label = _column(labels, "label", settings)
    if label in read.present:
        raise ConfigError(
            f"import.labels={file}: {read.files[0]} has a column {label!r} too; expected it in one of them"
        )
    samples, names = _ids(read, own), _ids(labels, theirs)
    _refuse_repeated(labels, names, theirs)
    label_flags = flags(labels, label, settings.misbehavior_values, settings.benign_values)
    nothing = pa.scalar(None, pa.string())
    of_labels = pc.if_else(pa.array(~np.isnan(label_flags)), names, nothing)
    positions = pc.index_in(samples, value_set=of_labels)
    rows: IntArray = np.flatnonzero(pc.is_valid(positions).to_numpy(zero_copy_only=False))
    if not rows.size:
        raise UserError(
            f"import.labels={file}: no label of any sample of {read.files[0]}; expected the same ids in "
            f"{theirs!r} as there in {own!r}"
        )
    table, matches = read.table.take(pa.array(rows)), positions.take(pa.array(rows))
    for name in labels.table.column_names:
        if name == theirs:
            continue
        joined = labels.table.column(name).take(matches)
        if name not in table.column_names:
            table = table.append_column(name, joined)
        elif table.column(name).null_count == len(rows):
            table = table.set_column(table.column_names.index(name), name, joined)
    both = replace(
        read.taking(table, rows),
        present=tuple(dict.fromkeys((*read.present, *labels.present))),
        clashing=read.clashing | labels.clashing,
    )
    return Labelled(both, labels, len(positions) - len(rows))


def _column(read: ImportedFiles, role: str, settings: Import) -> str:
    """The column of a file that is the one named, or has a usual name for it."""
    column = settings.columns.named().get(role)
    wanted = [column] if column else [*settings.columns.looked_for().get(role, ())]
    present = read.present
    for name in wanted:
        if name in present:
            return name
    first = wanted[0] if wanted else role
    raise UserError(f"{read.files[0]}: " + absent_column(f"import.columns.{role}", first, present))


def _ids(read: ImportedFiles, column: str) -> pa.Array:
    ids = texts(read, column)
    if ids.null_count:
        refuse(read, int(np.flatnonzero(pc.is_null(ids))[0]), column, "no sample", "an id in each row")
    return ids


def _refuse_repeated(labels: ImportedFiles, names: pa.Array, column: str) -> None:
    of = pc.dictionary_encode(names).indices.to_numpy()
    first = np.unique(of, return_index=True)[1]
    if len(first) < len(of):
        row = int(np.setdiff1d(np.arange(len(of)), first)[0])
        refuse(labels, row, column, "is there before", "one row for each sample")
