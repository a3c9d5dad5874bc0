"""Parquet: the columns as they are typed."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from monitorbench.config.base import UserError
from monitorbench.conversations.chats import without_nulls
from monitorbench.interop.imports.readers.table import ReadTable, WantedColumns, built
from monitorbench.untrusted import parquet_batches

SUFFIXES = (".parquet", ".pq")


def read(file: Path, wanted: WantedColumns) -> ReadTable:
    """The rows; `UserError` for what is no Parquet file, or would unpack to too much."""
    try:
        schema = pq.read_schema(file)
        counts = Counter(schema.names)
        fields = [field for field in schema if counts[field.name] == 1 and wanted.holds(field.name)]
        batches = parquet_batches(file, [field.name for field in fields])
        if any(pa.types.is_nested(field.type) for field in fields):
            read = built(str(file), _rows(batches), wanted)
        else:
            read = ReadTable(_table(list(batches), fields, pq.read_metadata(file).num_rows), ())
        twice = {name for name, n in counts.items() if n > 1}
        present = tuple(dict.fromkeys((*_names(schema), *read.present)))
        return ReadTable(read.table, present, read.clashing | twice)
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:160]
        raise UserError(f"{file}: no Parquet file ({reason}); expected one with a row a score") from error


def line(file: Path, row: int) -> str:
    """Name a row's place: `row 17`; the first is 1."""
    return f"row {row + 1}"


def _names(fields: pa.Schema | pa.StructType, prefix: str = "") -> Iterator[str]:
    for field in fields:
        name = f"{prefix}{field.name}"
        if pa.types.is_struct(field.type):
            yield from _names(field.type, f"{name}.")
        else:
            yield name


def _table(batches: Sequence[pa.RecordBatch], fields: Sequence[pa.Field], n_rows: int) -> pa.Table:
    if not fields:
        return pa.table({"": pa.nulls(n_rows)})
    columns = {}
    for number, field in enumerate(fields):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        columns[field.name] = pa.chunked_array(
            [pc.cast(batch.column(number), kind) for batch in batches], kind
        )
    return pa.table(columns)


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows without null fields, which Parquet can't tell from absent ones."""
    rows = (row for batch in batches for row in batch.to_pylist())
    return ((f"row {number}", without_nulls(row)) for number, row in enumerate(rows, 1))
