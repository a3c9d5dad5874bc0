"""JSON: one object a line, an array of objects, one object, or an object with a row for each id.

Promises: JSON as `strict_json` reads it, or refused with its place; a text stays the text that was written.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from monitorbench import strict_json
from monitorbench.config.base import UserError
from monitorbench.interop.imports.readers.table import ReadTable, WantedColumns, built
from monitorbench.untrusted import document, lines, opened, refuse_rows, with_compressed

SUFFIXES = with_compressed(".jsonl", ".ndjson", ".json")
_BLANK = b"\xef\xbb\xbf \t\r\n"
_HEAD = 65_536


def read(file: Path, wanted: WantedColumns) -> ReadTable:
    """Return the rows; raises `UserError` with the line, or the entry, for what is no JSON object."""
    return built(str(file), _rows(file), wanted)


def line(file: Path, row: int) -> str:
    """Name a row's place: `line 17`, or `entry 17` of an array or of an object of rows."""
    return next((place for place, _ in islice(_rows(file), row, None)), f"row {row + 1}")


def head(file: Path) -> bytes:
    """Return the beginning of the file's text, without leading blanks."""
    with opened(file) as stream:
        return stream.read(_HEAD).lstrip(_BLANK)


def _rows(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each object with its place."""
    if not (content := _whole(file)):
        yield from _of_lines(file)
        return
    (value,) = content
    if isinstance(value, dict) and value and all(isinstance(row, dict) for row in value.values()):
        value = [{"id": key, **row} for key, row in value.items()]
    for number, entry in enumerate(value if isinstance(value, list) else [value], 1):
        if not isinstance(entry, dict):
            raise UserError(f"{file}, entry {number}: no JSON object; expected an object an entry")
        yield f"entry {number}", entry


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


def _of_lines(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
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
        yield f"line {number}", row
