"""Rows of files that other people wrote, each with its place: CSV, JSON lines and JSON.

Promises: `untrusted`'s limits hold; JSON is read as `strict_json` has it, every value of a CSV is the text
that was written; what is no row is one `UserError` with its line or entry.
"""

import csv
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench import strict_json
from monitorbench.config.base import UserError
from monitorbench.untrusted import (
    DELIMITED,
    JSON,
    MAX_LINE_BYTES,
    PARQUET,
    TABLES,
    document,
    in_time,
    lines,
    opened,
    refuse_rows,
    text_lines,
)

_BLANK = b"\xef\xbb\xbf \t\r\n"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_NO_TEXT = (b"PK\x03\x04", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1")
_HEAD = 65_536


class ForeignRow(NamedTuple):
    """A row as it was written."""

    place: str
    """`line 17`, or `row` and `entry` where a file has no lines; the first is 1."""
    fields: dict[str, Any]


def rows(file: Path, setting: str = "") -> Iterator[ForeignRow]:
    """Each row of a file, read by its ending; `setting` names it in messages.

    Raises `UserError` for a file that can't be read, an unknown ending, no row at all, and a row that is
    none.
    """
    name = file.name.lower()
    if setting and not file.exists():
        raise UserError(f"{setting}={file}: no such file; expected one with a row a line")
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


# --- CSV -----------------------------------------------------------------------------------------------


def header(file: Path) -> list[str]:
    """Return the names in a CSV's first line that is not empty, without blanks around them.

    Raises `UserError` for a file that is no CSV in UTF-8, has no such line, or has a name twice.
    """
    try:
        _, names = next(numbered(file, strict=False), (1, []))
    except UnicodeDecodeError as error:
        raise no_utf8(file) from error
    except (OSError, EOFError, csv.Error) as error:
        raise UserError(f"{file}: can't be read ({error}); expected CSV in UTF-8") from error
    if not names:
        raise UserError(f"{file}: nothing in it; expected a header line and a row a line")
    names = [name.strip() for name in names]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(f"{file}, line 1: column {twice!r} is there twice; expected each name once")
    return names


def delimiter(file: Path) -> str:
    """The tab of a `.tsv`; else the one of `,`, `;`, tab and `|` that makes most names of the header."""
    if ".tsv" in (suffix.lower() for suffix in file.suffixes):
        return "\t"
    first = next((text for text in islice(text_lines(file), 100) if text.strip()), "")
    return max(",;\t|", key=lambda mark: len(next(csv.reader([first], delimiter=mark), ())))


def numbered(file: Path, *, strict: bool) -> Iterator[tuple[int, list[str]]]:
    """Yield each row of a CSV, the header among them, with the line that it begins on.

    Empty lines are no rows. Raises `csv.Error` for a quote out of place where `strict`, and
    `UnicodeDecodeError` for what is no UTF-8.
    """
    csv.field_size_limit(MAX_LINE_BYTES)  # of the process: others may have set it
    reader = csv.reader(text_lines(file), delimiter=delimiter(file), strict=strict)
    began = 1
    for values in reader:
        if values:
            yield began, values
        began = reader.line_num + 1


def csv_rows(file: Path) -> Iterator[ForeignRow]:
    """Each row of a CSV under the header's names; raises `UserError` for one with more or fewer values."""
    names = header(file)
    began = 1
    try:
        for began, values in islice(numbered(file, strict=True), 1, None):
            if len(values) != len(names):
                header_line = delimiter(file).join(names)[:60]
                raise UserError(
                    f"{file}, line {began}: {len(values)} values under {len(names)} names "
                    f"({header_line!r}); expected CSV in UTF-8, the columns' names in its first line"
                )
            yield ForeignRow(f"line {began}", dict(zip(names, values, strict=True)))
    except UnicodeDecodeError as error:
        raise no_utf8(file) from error
    except csv.Error as error:
        raise UserError(f"{file}, after line {began}: {error}; expected CSV in UTF-8") from error


# --- JSON ----------------------------------------------------------------------------------------------


def json_rows(file: Path, list_at: str = "") -> Iterator[ForeignRow]:
    """Each object of JSON lines, of an array, or of an object with a row for each id; or the one object.

    An object of `columns` and `data`, as tables of Weights & Biases and pandas are written, has a row a list;
    one with the values of each column by row number, as pandas writes it otherwise, is that table.
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
    if is_table and isinstance(value, dict) and isinstance(names := value.get("columns"), list):
        data = value.get("data")
        if isinstance(data, list) and all(isinstance(row, list) and len(row) == len(names) for row in data):
            value = [dict(zip(map(str, names), row, strict=True)) for row in data]
    if (
        is_table
        and isinstance(value, dict)
        and value
        and all(isinstance(row, dict) for row in value.values())
    ):
        numbers = [str(i) for i in range(len(next(iter(value.values()))))]
        if numbers and all(list(column) == numbers for column in value.values()):
            value = [{name: column[i] for name, column in value.items()} for i in numbers]
        else:
            value = [{"id": key, **row} for key, row in value.items()]
    for number, entry in enumerate(value if isinstance(value, list) else [value], 1):
        if not isinstance(entry, dict):
            raise UserError(f"{file}, entry {number}: no JSON object; expected an object an entry")
        yield ForeignRow(f"entry {number}", entry)


def head(file: Path) -> bytes:
    """Return the beginning of the file's text, without leading blanks; `UserError` where that is UTF-16."""
    with opened(file) as stream:
        text = stream.read(_HEAD)
    if text.startswith(_UTF_16):
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


def no_utf8(file: Path) -> UserError:
    """The error for a text in another encoding: its first byte that is no UTF-8, by line and column."""
    with opened(file) as stream:
        for number, line in enumerate(iter(partial(stream.readline, MAX_LINE_BYTES), b""), 1):
            if number == 1 and line.startswith(_UTF_16):
                return UserError(f"{file}: UTF-16; save it as UTF-8")
            if number == 1 and line.startswith(_NO_TEXT):
                return UserError(f"{file}: packed (zip, gzip, zstd or Parquet), no text; unpack or rename it")
            try:
                line.decode()
            except UnicodeDecodeError as error:
                column, byte = len(line[: error.start].decode()) + 1, line[error.start]
                return UserError(
                    f"{file}, line {number}, column {column}: the byte 0x{byte:02X} is no UTF-8; save the "
                    "file as UTF-8 (`iconv -f latin1 -t utf8`, or a spreadsheet's 'CSV UTF-8')"
                )
    return UserError(f"{file}: not UTF-8; save it as UTF-8")
