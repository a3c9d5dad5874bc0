"""CSV and TSV with a header line, every value as text; commas, semicolons or tabs.

Promises: what is written is what is there, so that `007` stays an id and `1e-3` is read where a number is
expected; only the empty value is null. A line with too few or too many values is refused by its number.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv

from monitorbench.config.base import UserError
from monitorbench.interop.imports.readers.table import ReadTable, WantedColumns
from monitorbench.untrusted import MAX_LINE_BYTES, opened, refuse_rows, text_lines, with_compressed

SUFFIXES = with_compressed(".csv", ".tsv")
_BLOCK = 2**23
csv.field_size_limit(
    MAX_LINE_BYTES
)  # Arrow has a limit of its own; lines are counted again with Python's reader


def read(file: Path, wanted: WantedColumns) -> ReadTable:
    """The rows of the wanted columns; `UserError` for what is no CSV in UTF-8, with the line."""
    names = _header(file)
    if not names:
        raise UserError(f"{file}: nothing in it; expected a header line and a row a score")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(f"{file}, line 1: column {twice!r} is there twice; expected each name once")
    try:
        with opened(file) as stream:
            table = pa_csv.read_csv(
                stream,
                read_options=pa_csv.ReadOptions(block_size=_BLOCK),
                parse_options=pa_csv.ParseOptions(delimiter=_delimiter(file), newlines_in_values=True),
                convert_options=pa_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    include_columns=[name for name in names if name in wanted] or names[:1],
                    strings_can_be_null=True,
                    null_values=[""],
                ),
            )
            refuse_rows(file, table.num_rows)
            return ReadTable(table, tuple(names))
    except (pa.ArrowInvalid, OSError) as error:
        place = _place(file, names) or f": {_reason(error)}"
        raise UserError(f"{file}{place}; expected CSV in UTF-8") from error


def line(file: Path, row: int) -> str:
    """Name the line on which a row begins: `line 17`; rows count from 0 behind the header."""
    began = next(islice(_beginnings(text_lines(file), _delimiter(file)), row + 1, None), None)
    return f"row {row + 1}" if began is None else f"line {began[0]}"


def _beginnings(stream: Iterable[str], delimiter: str) -> Iterator[tuple[int, int]]:
    """Yield the line on which each row, the header among them, begins and how many values it has.

    Empty lines are no rows, here and in `read`.
    """
    rows = csv.reader(stream, delimiter=delimiter)
    began = 1
    for values in rows:
        if values:
            yield began, len(values)
        began = rows.line_num + 1


def _header(file: Path) -> list[str]:
    try:
        rows = csv.reader(text_lines(file), delimiter=_delimiter(file))
        return next((row for row in islice(rows, 100) if row), [])
    except UnicodeDecodeError as error:
        raise UserError(f"{file}, line 1: not UTF-8; expected CSV in UTF-8") from error
    except (OSError, EOFError, csv.Error) as error:
        raise UserError(f"{file}: can't be read ({error})") from error


def _delimiter(file: Path) -> str:
    """The tab of a `.tsv`; else a comma, or a semicolon or tab where the header has that and no comma."""
    if ".tsv" in (suffix.lower() for suffix in file.suffixes):
        return "\t"
    header = next((text for text in islice(text_lines(file), 100) if text.strip()), "")
    return next((mark for mark in (",", ";", "\t") if mark in header), ",")


def _place(file: Path, names: list[str]) -> str:
    """`, line 17` of the first row that has not as many values as there are names, or is no text."""
    began = 0
    try:
        for began, n in _beginnings(text_lines(file), _delimiter(file)):
            if n != len(names):
                return f", line {began}: {n} values under {len(names)} names"
    except UnicodeDecodeError:
        return f", after line {began}: not UTF-8"
    except (OSError, EOFError, csv.Error):
        return f", after line {began}"
    return ""


def _reason(error: Exception) -> str:
    return re.sub(r"^CSV parse error: (Row #\d+: )?", "", " ".join(str(error).split()))[:160]
