"""CSV and Parquet as tables, read column by column.

Promises: what is written in a CSV is what is there, so that `007` stays an id and `1e-3` is read where a
number is expected, and only the empty value is null; Parquet's columns are as they are typed. A line with too
few or too many values is refused by its number, and so is a quote that hides rows inside a field.
"""

import io
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from monitorbench.config.base import UserError
from monitorbench.interop.imports.readers.table import ReadTable, WantedColumns, built
from monitorbench.untrusted import opened, refuse_rows
from monitorbench.untrusted_csv import csv_rows, header, layout, numbered, refuse_open_quotes
from monitorbench.untrusted_parquet import no_parquet, parquet_batches, parquet_rows

_BLOCK = 2**23


def read_csv(file: Path, wanted: WantedColumns) -> ReadTable:
    """The rows of the wanted columns; `UserError` for what is no CSV in UTF-8, with the line."""
    names = header(file)
    delimiter, n_before = layout(file)
    try:
        with opened(file) as stream:
            counted = _Counted(stream)
            table = pa_csv.read_csv(
                counted,
                read_options=pa_csv.ReadOptions(block_size=_BLOCK, column_names=names, skip_rows=n_before),
                parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                convert_options=pa_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    include_columns=[name for name in names if name in wanted] or names[:1],
                    strings_can_be_null=True,
                    null_values=[""],
                ),
            )
        refuse_rows(file, table.num_rows)
        if counted.may_hide_rows(n_before + table.num_rows):
            refuse_open_quotes(file)
        return ReadTable(table.slice(1), tuple(names))
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, pa.ArrowInvalid):
            refuse_open_quotes(file)
        deque(csv_rows(file), maxlen=0)  # says which line it is
        reason = " ".join(str(error).split())[:160]
        raise UserError(f"{file}: {reason}; expected CSV in UTF-8") from error


class _Counted:
    """A stream for pyarrow whose lines and quotes are counted as they are read."""

    closed = False

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream = stream
        self._n_quotes, self._n_ends, self._n_returns, self._last = 0, 0, 0, b""

    def read(self, size: int = -1) -> bytes:
        part = self._stream.read(size)
        self._n_quotes += part.count(b'"')
        self._n_ends += part.count(b"\n")
        self._n_returns += part.count(b"\r")
        self._last = part[-1:] or self._last
        return part

    def may_hide_rows(self, n_rows: int) -> bool:
        """Whether a quoted field may hold more than its own text, where so many rows were found."""
        n_lines = max(self._n_ends, self._n_returns) + (self._last not in b"\r\n")
        return self._n_quotes > 0 and (self._n_quotes % 2 == 1 or n_lines > n_rows)


def csv_line(file: Path, row: int) -> str:
    """Name the line on which a row begins: `line 17`; rows count from 0 behind the header."""
    began = next(islice(numbered(file, strict=False), row + 1, None), None)
    return f"row {row + 1}" if began is None else f"line {began[0]}"


def read_parquet(file: Path, wanted: WantedColumns) -> ReadTable:
    """The rows; `UserError` for what is no Parquet file, or would unpack to too much."""
    opened(file).close()
    try:
        schema = pq.read_schema(file)
        counts = Counter(schema.names)
        fields = [field for field in schema if counts[field.name] == 1 and wanted.holds(field.name)]
        batches = parquet_batches(file, [field.name for field in fields])
        if any(pa.types.is_nested(field.type) for field in fields):
            read = built(file, parquet_rows(file, batches), wanted)
        else:
            read = ReadTable(_table(list(batches), fields, pq.read_metadata(file).num_rows), ())
    except (pa.ArrowException, OSError) as error:
        raise no_parquet(file, error) from error
    twice = {name for name, n in counts.items() if n > 1}
    present = tuple(dict.fromkeys((*_names(schema), *read.present)))
    return ReadTable(read.table, present, read.clashing | twice)


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
        columns[field.name] = pa.chunked_array([batch.column(number).cast(kind) for batch in batches], kind)
    return pa.table(columns)
