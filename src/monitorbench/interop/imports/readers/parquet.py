"""Parquet: the columns as they are typed.

Promises: a column is decoded only as far as its rows and cells stay within what the file may unpack to.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from monitorbench.config.base import UserError
from monitorbench.conversations.chats import without_nulls
from monitorbench.interop.imports.readers.table import ReadTable, Wanted, built
from monitorbench.untrusted import most_bytes, refuse_rows

SUFFIXES = (".parquet", ".pq")
_CELL = 16
"""Bytes that are counted for a value of a fixed width, or for an entry of a list."""


def read(file: Path, wanted: Wanted) -> ReadTable:
    """The rows; `UserError` for what is no Parquet file, or would unpack to too much."""
    try:
        with pq.ParquetFile(file) as parquet:
            schema = parquet.schema_arrow
            texts = [field.name for field in schema if _is_text(field.type)]
        with pq.ParquetFile(file, read_dictionary=texts) as parquet:
            refuse_rows(file, parquet.metadata.num_rows)
            counts = Counter(schema.names)
            fields = [field for field in schema if counts[field.name] == 1 and wanted.holds(field.name)]
            names = [field.name for field in fields]
            _refuse_values(file, parquet, names)
            if any(pa.types.is_nested(field.type) for field in fields):
                read = built(str(file), _rows(file, parquet, names), wanted)
            else:
                batches = list(_batches(file, parquet, names))
                read = ReadTable(_table(batches, fields, parquet.metadata.num_rows), ())
            twice = {name for name, n in counts.items() if n > 1}
            present = tuple(dict.fromkeys((*_names(schema), *read.present)))
            return ReadTable(read.table, present, read.clashing | twice)
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:160]
        raise UserError(f"{file}: no Parquet file ({reason}); expected one with a row a score") from error


def line(file: Path, row: int) -> str:
    """Where a row is: `row 17`, the first is 1."""
    return f"row {row + 1}"


def _names(fields: pa.Schema | pa.StructType, prefix: str = "") -> Iterator[str]:
    for field in fields:
        name = f"{prefix}{field.name}"
        if pa.types.is_struct(field.type):
            yield from _names(field.type, f"{name}.")
        else:
            yield name


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _refuse_values(file: Path, parquet: pq.ParquetFile, names: Sequence[str]) -> None:
    """Raise `UserError` where the file says of itself that so many values can't be held."""
    metadata, n_values = parquet.metadata, 0
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            if column.path_in_schema.startswith(tuple(names)):
                n_values += column.num_values
    _refuse(file, n_values * _CELL)


def _batches(file: Path, parquet: pq.ParquetFile, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Batches with texts as words of a dictionary, as far as they may be written out."""
    unpacked, n_rows = 0, 65_536
    if any(pa.types.is_nested(parquet.schema_arrow.field(name).type) for name in names):
        n_rows = 256
    for batch in parquet.iter_batches(n_rows, columns=list(names)):
        for column in batch.columns:
            if pa.types.is_dictionary(column.type):
                lengths = pc.binary_length(column.dictionary).take(column.indices)
                unpacked += (pc.sum(lengths).as_py() or 0) + len(column)
            else:
                unpacked += column.nbytes
        _refuse(file, unpacked)
        yield batch


def _refuse(file: Path, unpacked: int) -> None:
    if unpacked > (most := most_bytes(file.stat().st_size)):
        raise UserError(
            f"{file}: unpacks to more than {most >> 20:,} MiB; expected fewer rows, or shorter texts in them"
        )


def _table(batches: Sequence[pa.RecordBatch], fields: Sequence[pa.Field], n_rows: int) -> pa.Table:
    if not fields:
        return pa.table({"": pa.nulls(n_rows)})
    columns = {}
    for number, field in enumerate(fields):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        columns[field.name] = pa.chunked_array([pc.cast(one.column(number), kind) for one in batches], kind)
    return pa.table(columns)


def _rows(file: Path, parquet: pq.ParquetFile, names: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows without null fields, which Parquet can't tell from absent ones."""
    number = 0
    for batch in _batches(file, parquet, names):
        for row in batch.to_pylist():
            number += 1
            yield f"row {number}", without_nulls(row)
