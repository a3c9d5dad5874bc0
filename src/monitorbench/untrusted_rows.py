"""Rows of files that other people wrote, each with its place: JSON, JSON lines, and any file by its ending.

Promises: `untrusted`'s limits hold; JSON is read as `strict_json` has it; what is no row is one `UserError`
with its line or entry.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from monitorbench import strict_json
from monitorbench.config.base import UserError
from monitorbench.untrusted import (
    DELIMITED,
    JSON,
    PARQUET,
    TABLES,
    UTF_16,
    ForeignRow,
    document,
    in_time,
    lines,
    no_utf8,
    opened,
    refuse_rows,
    where_looked,
)
from monitorbench.untrusted_csv import csv_rows

_BLANK = b"\xef\xbb\xbf \t\r\n"
_HEAD = 65_536


def rows(file: Path, setting: str = "") -> Iterator[ForeignRow]:
    """Each row of a file, read by its ending; `setting` names it in messages.

    Raises `UserError` for a file that can't be read, an unknown ending, no row at all, and a row that is
    none.
    """
    name = file.name.lower()
    if setting and not file.exists():
        raise UserError(f"{setting}={file}: no such file{where_looked(file)}; expected one with a row a line")
    opened(file).close()
    if name.endswith(DELIMITED):
        read = csv_rows(file)
    elif name.endswith(JSON):
        read = json_rows(file)
    elif name.endswith(PARQUET):
        from monitorbench.untrusted_parquet import parquet_rows  # pyarrow: not for who reads JSON alone

        read = parquet_rows(file)
    else:
        raise UserError(f"{file}: no ending that says what it is; expected one of {', '.join(TABLES)}")
    is_empty = True
    for row in in_time(file, read):
        is_empty = False
        yield row
    if is_empty:
        raise UserError(f"{file}: no row in it; expected a row a line")


def share(fields: Mapping[str, Any], name: str, where: str, *, optional: bool = False) -> float | None:
    """Return a number from 0 to 1, such as a score, None where it is null or a CSV's cell is empty.

    Raises `UserError` for anything else, and where a field that is not `optional` is not there.
    """
    value = fields.get(name)
    if isinstance(value, str):
        with suppress(ValueError):
            value = float(value) if value.strip() else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    if not (optional or name in fields) or not (value is None or is_number):
        there = f"{name}={value!r}" if name in fields else f"no {name} in it"
        raise UserError(f"{where}: {there}; expected a number from 0 to 1, or null where there is none")
    return None if value is None else float(value)


# --- JSON ----------------------------------------------------------------------------------------------


def json_rows(file: Path, list_at: str = "") -> Iterator[ForeignRow]:
    """Each object of JSON lines, of an array, or of an object with a row for each id; or the one object.

    An object of `columns` and `data`, as tables of Weights & Biases and pandas are written, has a row a list;
    one with a list a column, or with the values of each column by row, as pandas writes it otherwise, is that
    table. The index of pandas is the column `id`, unless it numbers the rows.
    With `list_at`, in dots as `results.results`, the rows are the objects of that list in each of these.

    Raises `UserError` with the line, or the entry, for what is no JSON object.
    """
    if not list_at:
        yield from _outer_rows(file)
        return
    n_rows = 0
    for place, fields in _outer_rows(file, is_table=False):
        value: Any = fields
        for key in list_at.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if not isinstance(value, list):
            lists = ", ".join(_lists_in(fields)) or "none"
            raise UserError(f"{file}, {place}: import.rows={list_at}: no such list; its lists: {lists}")
        for number, entry in enumerate(value, 1):
            if not isinstance(entry, dict):
                raise UserError(f"{file}, {place}: {list_at}, entry {number}: no JSON object")
            refuse_rows(file, n_rows := n_rows + 1)
            yield ForeignRow(f"{place}, entry {number}", entry)


def lists_of(file: Path) -> list[str]:
    """Names, in dots, of the lists of objects in the one object that a JSON file holds; else none."""
    outer = list(islice(_outer_rows(file, is_table=False), 2))
    return list(_lists_in(outer[0].fields)) if len(outer) == 1 else []


def _lists_in(fields: Mapping[str, Any], prefix: str = "", depth: int = 3) -> Iterator[str]:
    """Names, in dots, of the lists of objects inside an object."""
    for key, value in fields.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield f"{prefix}{key}"
        elif isinstance(value, dict) and depth:
            yield from _lists_in(value, f"{prefix}{key}.", depth - 1)


def _outer_rows(file: Path, *, is_table: bool = True) -> Iterator[ForeignRow]:
    """The rows of a file's outermost values; one object may be a table where `is_table`."""
    if not (content := _whole(file)):
        yield from _of_lines(file)
        return
    (value,) = content
    if is_table and isinstance(value, dict):
        _refuse_twice(file, value)
        value = _rows_of_table(value)
    for number, entry in enumerate(value if isinstance(value, list) else [value], 1):
        if not isinstance(entry, dict):
            raise UserError(f"{file}, entry {number}: no JSON object; expected an object an entry")
        yield ForeignRow(f"entry {number}", entry)


def _refuse_twice(file: Path, value: Mapping[str, Any]) -> None:
    """Raise `UserError` for a table of `columns` and `data` with a column that is named twice."""
    names = value.get("columns")
    if not (isinstance(names, list) and isinstance(value.get("data"), list)):
        return
    names = [*map(str, names)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(f"{file}: columns: column {twice!r} is there twice; expected each name once")


def _rows_of_table(value: dict[str, Any]) -> list[dict[str, Any]] | dict[str, Any]:
    """The rows of an object that is a table, in one of the forms of `json_rows`; else the object."""
    inner = [*value.values()]
    names, data, index = value.get("columns"), value.get("data"), value.get("index")
    if isinstance(names, list) and isinstance(data, list):
        if not all(isinstance(row, list) and len(row) == len(names) for row in data):
            return value
        rows = [dict(zip(map(str, names), row, strict=True)) for row in data]
        is_index = isinstance(index, list) and len(index) == len(rows)
        return _with_ids(index, rows) if is_index and isinstance(index, list) else rows
    if len(inner) > 1 and all(isinstance(column, list) and len(column) == len(inner[0]) for column in inner):
        if len(inner[0]) < 2 or {dict, list} & _kinds(entry for column in inner for entry in column):
            return value
        return [dict(zip(value, row, strict=True)) for row in zip(*inner, strict=True)]
    if not inner or not all(isinstance(row, dict) for row in inner):
        return value
    if not _are_columns(inner):
        return [{"id": key, **row} for key, row in value.items()]
    return _with_ids(inner[0], [{name: value[name][key] for name in value} for key in inner[0]])


def _are_columns(inner: Sequence[Mapping[str, Any]]) -> bool:
    """Whether objects with the same keys are columns, by row, and not rows.

    They are where the keys are numbers, and where each object has values of one kind, and others of another.
    """
    keys = list(inner[0])
    if not keys or not all(list(column) == keys for column in inner):
        return False
    kinds = [_kinds(column.values()) for column in inner]
    is_mixed = len(keys) > 1 and max(map(len, kinds)) == 1 and len(set().union(*kinds)) > 1
    return is_mixed or all(key.isdecimal() for key in keys)


def _kinds(values: Iterable[object]) -> set[type]:
    """Kinds of the values of a column; a whole number is no other kind than any number."""
    return {float if type(value) is int else type(value) for value in values if value is not None}


def _with_ids(index: Iterable[object], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with their labels in the index as `id`, where these say more than the rows' numbers."""
    ids = [*map(str, index)]
    if ids == [*map(str, range(len(rows)))]:
        return rows
    return [{"id": key, **row} for key, row in zip(ids, rows, strict=True)]


def head(file: Path) -> bytes:
    """Return the beginning of the file's text, without leading blanks; `UserError` where that is UTF-16."""
    with opened(file) as stream:
        text = stream.read(_HEAD)
    if text.startswith(UTF_16):
        raise no_utf8(file)
    return text.lstrip(_BLANK)


def _whole(file: Path) -> tuple[Any, ...]:
    """The file's one value where it is an array, or its ending promises one object; else nothing."""
    is_array = head(file)[:1] == b"["
    if not (is_array or ".json" in (suffix.lower() for suffix in file.suffixes)):
        return ()
    try:
        return (strict_json.loads(document(file)),)
    except ValueError as error:
        if not is_array and "Extra data" in str(error):
            return ()
        expected = "an array of JSON objects" if is_array else "one JSON object"
        raise UserError(f"{file}: {error}; expected {expected}, or one object a line") from error


def _of_lines(file: Path) -> Iterator[ForeignRow]:
    n_rows = 0
    for number, text in lines(file):
        if not text.strip():
            continue
        try:
            row = strict_json.loads(text)
        except ValueError as error:
            raise UserError(f"{file}, line {number}: {error}; expected one JSON object a line") from error
        if not isinstance(row, dict):
            raise UserError(f"{file}, line {number}: no JSON object; expected one object a line")
        n_rows += 1
        refuse_rows(file, n_rows)
        yield ForeignRow(f"line {number}", row)


def json_object(file: Path, expected: str) -> dict[str, Any]:
    """The one JSON object in a file; `UserError`, which ends with what was expected, where it holds none."""
    try:
        value = strict_json.loads(document(file), of_python=True)
    except ValueError as error:
        raise UserError(f"{file}: not JSON ({error}); expected {expected}") from error
    if not isinstance(value, dict):
        raise UserError(f"{file}: no JSON object; expected {expected}")
    return value
