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
    """The rows; `UserError` with the line, or an array's entry, for what is no JSON object."""
    if is_array(file):
        return _of_rows(list(_objects(file)))
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
    """Where a row is: `line 17`, or `entry 17` of an array."""
    if is_array(file):
        return f"entry {row + 1}"
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


def is_array(file: Path) -> bool:
    """Whether a file's JSON is one array in place of an object a line."""
    if not file.name.lower().endswith((*SUFFIXES, ".json", ".json.gz")):
        return False
    try:
        with _opened(file) as stream:
            return stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"["
    except (OSError, EOFError):
        return False  # its reader says what is wrong


def _by_lines(file: Path) -> pa.Table:
    return _of_rows(list(_objects(file)))


def _of_rows(rows: list[dict[str, Any]]) -> pa.Table:
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: _column([row.get(name) for row in rows]) for name in names}
    return pa.table(columns) if columns else pa.table({"": pa.nulls(len(rows))}).select([])


def _objects(file: Path) -> Iterator[dict[str, Any]]:
    if is_array(file):
        yield from _entries(file)
        return
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


def _entries(file: Path) -> Iterator[dict[str, Any]]:
    try:
        with _opened(file) as stream:
            entries = strict_json.loads(stream.read())
    except (OSError, EOFError, ValueError, RecursionError) as error:
        raise UserError(
            f"{file}: {error}; expected an array of JSON objects, or one object a line"
        ) from error
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise UserError(f"{file}, entry {number}: no JSON object; expected an object an entry")
        yield entry


def _column(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return pa.array([one if one is None or isinstance(one, str) else json.dumps(one) for one in values])


def _opened(file: Path) -> io.BufferedIOBase:
    return gzip.GzipFile(file) if file.suffix == ".gz" else file.open("rb")
