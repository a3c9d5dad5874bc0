"""Parquet: the columns as they are typed, those with conversations as JSON text."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from monitorbench.config.base import UserError
from monitorbench.interop.imports.readers.chat_columns import (
    chats_as_text,
    may_hold_chats,
    without_nulls,
)

SUFFIXES = (".parquet", ".pq")


def read(file: Path) -> pa.Table:
    """The rows; `UserError` for what is no Parquet file."""
    try:
        table = pq.ParquetFile(file).read()
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:160]
        raise UserError(f"{file}: no Parquet file ({reason}); expected one with a row a score") from error
    for place, field in enumerate(table.schema):
        if may_hold_chats(field.type):
            chats = chats_as_text([without_nulls(value) for value in table.column(place).to_pylist()])
            table = table if chats is None else table.set_column(place, field.name, chats)
    return table


def line(file: Path, row: int) -> str:
    """Where a row is: `row 17`, the first is 1."""
    return f"row {row + 1}"
