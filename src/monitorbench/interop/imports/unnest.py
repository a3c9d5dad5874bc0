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

    An empty list is one row without a value where it `may_be_empty`, else a `UserError`, as is a column that
    is not there or holds no lists.
    """
    lists = [_lists(read, name) for name in names]
    lengths = [pc.fill_null(pc.list_value_length(one), 0).to_numpy(zero_copy_only=False) for one in lists]
    for name, found in zip(names[1:], lengths[1:], strict=True):
        if (wrong := np.flatnonzero(found != lengths[0])).size:
            row = int(wrong[0])
            raise UserError(
                f"{read.where(row)}: {name} has {found[row]} entries, {names[0]} {lengths[0][row]}; expected "
                "one each for every action"
            )
    empty = lengths[0] == 0
    if empty.any() and not may_be_empty:
        row = int(np.flatnonzero(empty)[0])
        raise UserError(f"{read.where(row)}: {names[0]}: an empty list; expected an entry an action")
    n_rows = np.maximum(lengths[0], 1)
    parents = np.repeat(np.arange(len(n_rows)), n_rows)
    starts = np.cumsum(n_rows) - n_rows
    places = np.arange(len(parents)) - starts[parents]
    # An entry's place among all entries; a null where the list is empty.
    entry = pa.array(
        (np.cumsum(lengths[0]) - lengths[0])[parents] + places, mask=empty[parents], type=pa.int64()
    )
    table = read.table.drop_columns(list(names)).take(pa.array(parents))
    for name, found in zip(names, lists, strict=True):
        table = table.append_column(name, pc.list_flatten(found).take(entry))
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    return Unnested(read.taking(table, parents), places, parents)


def _lists(read: ImportedFiles, name: str) -> pa.Array:
    if name not in read.table.column_names:
        raise UserError(f"import.actions: no column {name!r}; there are {', '.join(read.table.column_names)}")
    column = read.table.column(name)
    if not is_list(column.type):
        raise UserError(f"import.actions: {name} holds {column.type}, no lists; expected an entry an action")
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def is_list(kind: pa.DataType) -> bool:
    """Whether a column holds lists of any form."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
