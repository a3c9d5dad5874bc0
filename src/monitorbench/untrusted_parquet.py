"""Parquet files that other people wrote, as batches, as a table and as rows, within `untrusted`'s limits."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from monitorbench.config.base import UserError
from monitorbench.untrusted import ForeignRow, in_time, opened, refuse_rows, refuse_unpacked

_CELL_BYTES = 16
"""Bytes counted for a value of a fixed width, and for an entry of a list."""


def parquet_batches(
    file: Path, names: Sequence[str] | None = None, rows: int | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file, so many at a time, its columns of these names or paths.

    A few bytes can stand for millions of equal values, so what they come to is counted before it is written
    out. Raises `UserError` where that is too much, and what pyarrow raises for what is no Parquet file.
    """
    opened(file).close()
    schema, metadata = pq.read_schema(file), pq.read_metadata(file)
    names = schema.names if names is None else names
    leaves = [metadata.schema.column(i) for i in range(metadata.num_columns)]
    texts = [
        leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY" and ".key_value" not in leaf.path
    ]
    with pq.ParquetFile(file, read_dictionary=texts) as parquet:
        refuse_rows(file, metadata.num_rows)
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        columns = [group.column(i) for group in groups for i in range(metadata.num_columns)]
        n_values = sum(c.num_values for c in columns if c.path_in_schema.startswith(tuple(names)))
        refuse_unpacked(file, n_values * _CELL_BYTES)
        if rows is None:  # a row of lists and objects is much as an object of Python
            rows = 256 if any(pa.types.is_nested(schema.field(name).type) for name in names) else 65_536
        unpacked = 0
        for batch in in_time(file, parquet.iter_batches(rows, columns=list(names))):
            unpacked += sum(map(_unpacked, batch.columns))
            refuse_unpacked(file, unpacked)
            plain = [column.cast(_plain(column.type)) for column in batch.columns]
            yield pa.RecordBatch.from_arrays(plain, batch.schema.names)


def parquet_table(file: Path, names: Sequence[str] | None = None) -> pa.Table:
    """All rows of a Parquet file, as `parquet_batches` reads them."""
    batches = list(parquet_batches(file, names, 65_536))
    return pa.Table.from_batches(batches) if batches else pq.read_table(file, columns=names)


def _unpacked(column: pa.Array) -> int:
    """Bytes of a column whose dictionaries are written out."""
    if pa.types.is_dictionary(column.type):
        lengths = pc.binary_length(column.dictionary).take(column.indices)
        return (pc.sum(lengths).as_py() or 0) + len(column)
    if pa.types.is_struct(column.type):
        return sum(map(_unpacked, column.flatten()))
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return _CELL_BYTES * len(column) + _unpacked(column.flatten())
    return int(column.nbytes)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without dictionaries."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = kind.value_field.with_type(_plain(kind.value_type))
        return pa.list_(inner) if pa.types.is_list(kind) else pa.large_list(inner)
    return kind


def parquet_rows(file: Path, batches: Iterable[pa.RecordBatch] | None = None) -> Iterator[ForeignRow]:
    """Each row without null fields, which Parquet can't tell from absent ones; of all `batches`, or some.

    Raises `UserError` for what is no Parquet file.
    """
    try:
        in_batches = parquet_batches(file) if batches is None else batches
        fields = (row for batch in in_batches for row in batch.to_pylist())
        for number, row in enumerate(fields, 1):
            yield ForeignRow(f"row {number}", without_nulls(row))
    except (pa.ArrowException, OSError) as error:
        raise no_parquet(file, error) from error


def without_nulls(value: Any) -> Any:
    """Return a value of a Parquet file without null fields, which other rows may have put there."""
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


def no_parquet(file: Path, error: Exception) -> UserError:
    """The error for a file that pyarrow can't read."""
    reason = " ".join(str(error).split())[:160]
    return UserError(f"{file}: no Parquet file ({reason}); expected one with a row a score")
