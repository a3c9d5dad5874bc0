"""Columns that hold conversations, as JSON text row by row.

Arrow gives all rows of a column one type: a field that one row has is a null in the others, and a whole
number becomes a float where another row has one. As text, what other rows hold changes nothing.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from monitorbench.conversations.chats import AROUND, resembles_chat
from monitorbench.conversations.read import as_json

ExactRows = Callable[[Sequence[str]], Iterable[Mapping[str, Any]]]
"""Gives the rows with at least these fields, each as the file has it."""
_TELLING = AROUND | {"role", "type"}
"""Fields of which a message, or an object around messages, has one."""


def chats_as_text(table: pa.Table, rows: ExactRows, lists: Collection[str]) -> pa.Table:
    """Return the table with JSON in each column that holds chats, except columns wanted as `lists`."""
    names = [field.name for field in table.schema if _may_hold_chats(field.type) and field.name not in lists]
    values: dict[str, list[Any]] = {name: [] for name in names}
    for row in rows(names) if names else ():
        for name in names:
            values[name].append(row.get(name))
    for name in names:
        if any(resembles_chat(value) for value in values[name]):
            texts = [
                value if value is None or isinstance(value, str) else as_json(value) for value in values[name]
            ]
            table = table.set_column(table.column_names.index(name), name, pa.array(texts, pa.string()))
    return table


def _may_hold_chats(kind: pa.DataType) -> bool:
    """Whether values of a type may be messages, or lists of them."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    return pa.types.is_struct(kind) and not _TELLING.isdisjoint(field.name for field in kind)
