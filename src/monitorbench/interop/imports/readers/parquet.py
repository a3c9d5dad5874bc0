"""Parquet: the columns as they are typed."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from monitorbench.config.base import UserError
from monitorbench.conversations.chats import without_nulls

SUFFIXES = (".parquet", ".pq")


def read(file: Path) -> pa.Table:
    """The rows; `UserError` for what is no Parquet file."""
    try:
        return pq.ParquetFile(file).read()
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:160]
        raise UserError(f"{file}: no Parquet file ({reason}); expected one with a row a score") from error


def rows(file: Path, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Give the rows without null fields, which Parquet can't tell from absent ones."""
    for batch in pq.ParquetFile(file).iter_batches(1024, columns=list(names)):
        yield from map(without_nulls, batch.to_pylist())


def line(file: Path, row: int) -> str:
    """Where a row is: `row 17`, the first is 1."""
    return f"row {row + 1}"
