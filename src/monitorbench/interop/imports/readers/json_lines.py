"""JSON lines: one object a line, nested fields under dotted names.

Promises: JSON as `strict_json` reads it, or refused with its line; a text stays the text that was written,
even where it looks like a time. Fields that hold unlike things are text,
so that what nobody asked for can't stand in the way.
"""

import gzip
import io
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pa_json

from monitorbench import strict_json
from monitorbench.config.base import UserError

SUFFIXES = (".jsonl", ".ndjson", ".jsonl.gz")
_BLOCK = 2**24


def read(file: Path) -> pa.Table:
    """The rows; `UserError` with the line for what is no JSON object."""
    try:
        table = _by_columns(file, None)
        plain = pa.schema([pa.field(one.name, _without_times(one.type)) for one in table.schema])
        return table if plain == table.schema else _by_columns(file, plain)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return _by_lines(file)  # it names the line, or takes what has no one type
    except OSError as error:
        raise UserError(f"{file}: can't be read ({error})") from error


def rows(file: Path, _: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Give the objects as they are written; raises `UserError` with the line for what is none."""
    return _objects(file)


def line(file: Path, row: int) -> str:
    """Where a row is: `line 17`."""
    with _opened(file) as stream:
        number = next(islice((n for n, text in enumerate(stream, 1) if text.strip()), row, None), row + 1)
    return f"line {number}"


def _by_columns(file: Path, schema: pa.Schema | None) -> pa.Table:
    with pa.input_stream(str(file), compression="detect") as stream:
        return pa_json.read_json(
            stream,
            read_options=pa_json.ReadOptions(block_size=_BLOCK),
            parse_options=pa_json.ParseOptions(explicit_schema=schema),
        )


def _without_times(kind: pa.DataType) -> pa.DataType:
    """The type with text in the place of times, which Arrow takes some texts for."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, _without_times(one.type)) for one in kind])
    if pa.types.is_list(kind):
        return pa.list_(_without_times(kind.value_type))
    return pa.string() if pa.types.is_temporal(kind) else kind


def _by_lines(file: Path) -> pa.Table:
    rows = list(_objects(file))
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: _column([row.get(name) for row in rows]) for name in names}
    return pa.table(columns) if columns else pa.table({"": pa.nulls(len(rows))}).select([])


def _objects(file: Path) -> Iterator[dict[str, Any]]:
    with _opened(file) as stream:
        for number, text in enumerate(stream, 1):
            if not text.strip():
                continue
            where = f"{file}, line {number}"
            try:
                found = strict_json.loads(text)
            except (ValueError, RecursionError) as error:
                raise UserError(f"{where}: {error}; expected one JSON object a line") from error
            if not isinstance(found, dict):
                raise UserError(f"{where}: no JSON object; expected one object a line")
            yield found


def _column(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return pa.array([one if one is None or isinstance(one, str) else json.dumps(one) for one in values])


def _opened(file: Path) -> io.BufferedIOBase:
    return gzip.GzipFile(file) if file.suffix == ".gz" else file.open("rb")
