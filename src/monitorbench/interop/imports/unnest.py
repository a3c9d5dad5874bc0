"""Rows that hold lists: a trajectory with an entry an action, a score with an entry a draw; a row an entry.

Promises: the order stays, and a row knows the line that it came from. Lists of one row that belong together
and differ in length are refused with the line.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from monitorbench.config.base import UserError
from monitorbench.interop.imports.columns import absent_column
from monitorbench.interop.imports.readers.open import ImportedFiles
from monitorbench.metrics.bootstrap import IntArray


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
