"""Columns that hold conversations, as JSON text row by row.

Arrow gives all rows of a column one type: a field that one row has is a null in the others, and a whole
number becomes a float where another row has one. As text, what other rows hold changes nothing.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from monitorbench.conversations.chats import AROUND, resembles_chat
from monitorbench.conversations.read import as_json

_TELLING = AROUND | {"role", "type"}
"""Fields of which a message, or an object around messages, has one."""


def may_hold_chats(kind: pa.DataType) -> bool:
    """Whether values of a type may be messages, or lists of them."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    return pa.types.is_struct(kind) and not _TELLING.isdisjoint(field.name for field in kind)


def chats_as_text(values: Sequence[Any]) -> pa.Array | None:
    """Return the JSON of each value that is no text; None where no value is a chat."""
    if not any(resembles_chat(value) for value in values):
        return None
    return pa.array(
        [value if value is None or isinstance(value, str) else as_json(value) for value in values],
        pa.string(),
    )


def without_nulls(value: object) -> object:
    """Return a value of a Parquet file without null fields, which it can't tell from absent ones."""
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [without_nulls(inner) for inner in value]
    return value
