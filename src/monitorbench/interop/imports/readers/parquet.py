"""Parquet: the columns as they are typed."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from monitorbench.config.base import UserError

SUFFIXES = (".parquet", ".pq")


def read(file: Path) -> pa.Table:
    """The rows; `UserError` for what is no Parquet file."""
    try:
        return pq.ParquetFile(file).read()
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:160]
        raise UserError(f"{file}: no Parquet file ({reason}); expected one with a row a score") from error


def line(file: Path, row: int) -> str:
    """Where a row is: `row 17`, the first is 1."""
    return f"row {row + 1}"
