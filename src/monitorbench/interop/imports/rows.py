"""The rows that an import is made of: files read, rows chosen, labels joined, lists taken apart.

Promises: what is left out is counted and said, and nothing is left out that no setting names, or whose label
a file of labels does not have; a label is said once, and one that is of no row is named. Entries of a list
keep their order and know their line; lists of one row that differ in length are refused with the line.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.imports import Import
from monitorbench.interop.imports.columns import absent_column
from monitorbench.interop.imports.keys import sample_ids
from monitorbench.interop.imports.readers.open import ImportedFiles, read_files, usable_rows, wanted_columns
from monitorbench.interop.imports.values import flags, refuse, texts
from monitorbench.interop.imports.words import say_labels
from monitorbench.metrics.bootstrap import IntArray

BY_PLACE = "label by place"
"""Column of the labels that `import.benign_places` gives."""
_log = logging.getLogger(__name__)


class ImportedRows(NamedTuple):
    """Rows of all files, an entry of a list each where rows hold lists of actions."""

    read: ImportedFiles
    settings: Import
    """The import's settings, which name the columns that were made here."""
    places: IntArray | None
    """[rows]: the place of each in its list; None where rows hold no lists."""
    sources: tuple[ImportedFiles, ...]
    """The files with scores and, where there is a second one, the file with labels."""
    n_unusable: int
    """Samples of logs that were left out because their log gives them up."""

    @property
    def n_rows(self) -> int:
        """Return the number of rows of the files with scores."""
        return self.sources[0].ends[-1]


def imported_rows(files: Sequence[Path], settings: Import, also: Sequence[str] = ()) -> ImportedRows:
    """Read the files as the settings say; `also` are columns to read beside theirs.

    Raises `ConfigError` for settings that don't fit each other, `UserError` for what can't be read or where
    no row is left.
    """
    all_rows = read = read_files(files, settings, wanted_columns(settings, also))
    read, n_unusable = _usable(read, settings)
    for column, allowed in settings.where.items():
        read = _chosen(read, column, allowed)
    sources = [all_rows]
    if settings.labels is not None:
        read, labels = _labelled(read, settings.labels, settings)
        sources.append(labels)
    for name, columns in settings.columns.joined().items():
        read = read.with_column(name, _joined(read, columns))
    places: IntArray | None = None
    if settings.actions:
        read, places, _ = unnested(read, settings.actions)
    if settings.benign_places and places is not None:
        words = pa.array([settings.misbehavior_values[0], settings.benign_values[0]])
        is_benign = np.isin(places, settings.benign_places).astype(np.int64)
        read = read.with_column(BY_PLACE, words.take(pa.array(is_benign)))
        with_label = settings.columns.model_copy(update={"label": BY_PLACE})
        settings = settings.model_copy(update={"columns": with_label})
    return ImportedRows(read, settings, places, tuple(sources), n_unusable)


def _usable(read: ImportedFiles, settings: Import) -> tuple[ImportedFiles, int]:
    """The rows of samples that tell something, and how many do not; `UserError` where none does."""
    if settings.unusable == "take":
        return read, 0
    usable, left_out, first = usable_rows(read, "import.unusable=take")
    if n := len(left_out):
        message = "import: %d of %d samples are left out (import.unusable), the first: %s"
        _log.info(message, n, read.table.num_rows, first)
    return usable, n


def _chosen(read: ImportedFiles, column: str, allowed: Sequence[str]) -> ImportedFiles:
    """The rows that have one of the values in a column."""
    setting = f"import.where.{column}={','.join(allowed)}"
    if column not in read.table.column_names:
        raise UserError(absent_column(setting, column, read.present))
    values = texts(read, column, keeps_words=True)
    rows = np.flatnonzero(pc.is_in(values, value_set=pa.array(allowed)).to_numpy(zero_copy_only=False))
    if not len(rows):
        listing = ", ".join(map(repr, pc.unique(pc.drop_null(values)).to_pylist()[:8]))
        raise UserError(f"{setting}: no such row; {column} is {listing or 'empty'}")
    _log.info("import: %s: %s of %s rows", setting, f"{len(rows):,}", f"{len(values):,}")
    return read.taking(read.table.take(pa.array(rows)), rows)


def _labelled(read: ImportedFiles, file: Path, settings: Import) -> tuple[ImportedFiles, ImportedFiles]:
    """Join the columns of `file` (`import.labels`) to the log's rows, by sample.

    A column in which the log says anything stays the log's. Returns the rows whose sample has a label, and
    the file with labels; says how many rows have none, and which labels are of no row.

    Raises `ConfigError` where the log has labels of its own, `UserError` where a column is missing, the file
    can't be read or says two things of a sample, or where it has the label of no sample of the log.
    """
    labels_file = read_files([file], settings.model_copy(update={"format": "auto", "rows": ""}))
    labels, _ = _usable(labels_file, settings)
    own, theirs = (_column(source, "sample", settings) for source in (read, labels))
    label = _column(labels, "label", settings)
    if label in read.present:
        raise ConfigError(
            f"import.labels={file}: {read.files[0]} has a column {label!r} too; expected it in one of them"
        )
    samples, names = sample_ids(read, own), sample_ids(labels, theirs)
    _refuse_repeated(labels, names, theirs)
    label_flags = flags(labels, label, settings.misbehavior_values, settings.benign_values)
    of_labels = pc.if_else(pa.array(~np.isnan(label_flags)), names, pa.scalar(None, pa.string()))
    positions = pc.index_in(samples, value_set=of_labels)
    rows: IntArray = np.flatnonzero(pc.is_valid(positions).to_numpy(zero_copy_only=False))
    if not rows.size:
        raise UserError(
            f"import.labels={file}: no label of any sample of {read.files[0]}; expected the same ids in "
            f"{theirs!r} as there in {own!r}"
        )
    unmatched = pc.drop_null(of_labels.filter(pc.invert(pc.is_in(of_labels, value_set=samples))))
    n_labels = len(of_labels) - of_labels.null_count
    say_labels(labels, n_labels, len(rows), len(positions) - len(rows), unmatched.to_pylist())
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
    return both, labels_file


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


def _refuse_repeated(labels: ImportedFiles, names: pa.Array, column: str) -> None:
    of = pc.dictionary_encode(names).indices.to_numpy()
    first = np.unique(of, return_index=True)[1]
    if len(first) < len(of):
        row = int(np.setdiff1d(np.arange(len(of)), first)[0])
        refuse(labels, row, column, "is there before", "one row for each sample")


def _joined(read: ImportedFiles, columns: Sequence[str]) -> pa.Array:
    """The values of several columns as one text, null where one of them has none."""
    for name in columns:
        if name not in read.table.column_names:
            raise UserError(absent_column(f"import.columns: {name}", name, read.present))
    return pc.binary_join_element_wise(*(texts(read, name) for name in columns), "/")


class Unnested(NamedTuple):
    """Rows out of lists."""

    read: ImportedFiles
    places: IntArray
    """[rows]: the place of each in its list, from 0."""
    parents: IntArray
    """[rows]: the row of the former table that each is of."""


def unnested(read: ImportedFiles, names: Sequence[str], *, may_be_empty: bool = False) -> Unnested:
    """A row an entry of the lists in these columns; fields of entries become `name.field`.

    A list that is not there is as many missing values as the row's others have. Where a list `may_be_empty`,
    that holds of an empty one too, and each row is at least one; else a row without entries is a `UserError`,
    as is a column that is not there or holds no lists.
    """
    lists = [_lists(read, name) for name in names]
    own = [pc.fill_null(pc.list_value_length(one), 0).to_numpy(zero_copy_only=False) for one in lists]
    lengths = np.maximum.reduce(own)
    for name, column, entries in zip(names, lists, own, strict=True):
        is_nothing = np.full(len(entries), may_be_empty) | pc.is_null(column).to_numpy(zero_copy_only=False)
        if (wrong := np.flatnonzero((entries != lengths) & ~((entries == 0) & is_nothing))).size:
            row = int(wrong[0])
            longest = next(one for one, its in zip(names, own, strict=True) if its[row] == lengths[row])
            raise UserError(
                f"{read.where(row)}: {name} has {entries[row]} entries, {longest} {lengths[row]}; expected "
                "one each for every action"
            )
    empty = lengths == 0
    if empty.any() and not may_be_empty:
        row = int(np.flatnonzero(empty)[0])
        raise UserError(f"{read.where(row)}: {names[0]}: an empty list; expected an entry an action")
    n_rows = np.maximum(lengths, 1)
    parents = np.repeat(np.arange(len(n_rows)), n_rows)
    starts = np.cumsum(n_rows) - n_rows
    places = np.arange(len(parents)) - starts[parents]
    table = read.table.drop_columns(list(names)).take(pa.array(parents))
    for name, entries, n_own in zip(names, lists, own, strict=True):
        # An entry's place among all entries of its column; a null where the list has none.
        of_column = (np.cumsum(n_own) - n_own)[parents] + places
        entry = pa.array(of_column, mask=(n_own == 0)[parents], type=pa.int64())
        table = table.append_column(name, pc.list_flatten(entries).take(entry))
    return Unnested(read.taking(table.flatten(), parents), places, parents)


def _lists(read: ImportedFiles, name: str) -> pa.Array:
    if name not in read.table.column_names:
        raise UserError(absent_column("import.actions", name, read.present))
    column = read.table.column(name)
    if not is_list(column.type):
        raise UserError(f"import.actions: {name} holds {column.type}, no lists; expected an entry an action")
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def is_list(kind: pa.DataType) -> bool:
    """Whether a column holds lists of any form."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
