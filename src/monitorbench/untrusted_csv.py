"""CSV files that other people wrote: their layout, their header and their rows, each with its line.

Promises: `untrusted`'s limits hold; every value is the text that was written; what is no row is one
`UserError` with its line.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from monitorbench.config.base import UserError
from monitorbench.untrusted import MAX_LINE_BYTES, ForeignRow, no_utf8, text_lines

_STATED_MARK = re.compile(r'"?sep=([\t!$-&(-/:-@[-`{-~])"?', re.IGNORECASE)
_MOST_BEFORE = 100
_UNEXPECTED_END = "unexpected end of data in a quoted field that begins here"
_QUOTED = re.compile(r'"([^"]*(?:""[^"]*)*)("?)')


def header(file: Path) -> list[str]:
    """Return the names in a CSV's header, without blanks around them.

    Raises `UserError` for a file that is no CSV in UTF-8, has no such line, or has a name twice.
    """
    try:
        line, names = next(numbered(file, strict=False), (1, []))
    except UnicodeDecodeError as error:
        raise no_utf8(file) from error
    except (OSError, EOFError, csv.Error) as error:
        raise UserError(f"{file}: can't be read ({error}); expected CSV in UTF-8") from error
    if not names:
        raise UserError(f"{file}: nothing in it; expected a header line and a row a line")
    names = [name.strip() for name in names]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(f"{file}, line {line}: column {twice!r} is there twice; expected each name once")
    return names


class CsvLayout(NamedTuple):
    """Separator of a CSV, and what stands before its header."""

    delimiter: str
    n_before: int
    """Lines before the header: empty ones, comments, and the separator that a spreadsheet states."""


def layout(file: Path) -> CsvLayout:
    """Find where a CSV's header is, and what separates its names.

    The separator is the one that a first line `sep=;` states; else the tab of a `.tsv`; else the one of `,`,
    `;`, tab and `|` that makes most names of the header. Lines before it that begin with `#` are comments,
    but where the last of them has as many values as the line behind, it is the header.
    """
    csv.field_size_limit(MAX_LINE_BYTES)  # of the process: others may have set it
    mark = "\t" if ".tsv" in (suffix.lower() for suffix in file.suffixes) else ""
    comment: tuple[int, str] | None = None
    for number, text in enumerate(islice(text_lines(file, errors="replace"), _MOST_BEFORE)):
        if not text.strip():
            continue
        if stated := _STATED_MARK.fullmatch(text.strip(" \r\n")):
            mark = stated[1]
        elif text.startswith("#"):
            comment = number, text
        else:
            mark = mark or max(",;\t|", key=lambda other: _n_values(text, other))
            is_header = comment is not None and _n_values(comment[1], mark) == _n_values(text, mark)
            return CsvLayout(mark, comment[0] if comment is not None and is_header else number)
    return CsvLayout(mark or ",", 0)


def _n_values(line: str, mark: str) -> int:
    return len(next(csv.reader([line], delimiter=mark), ()))


def numbered(file: Path, *, strict: bool) -> Iterator[tuple[int, list[str]]]:
    """Yield each row of a CSV, the header first, with the line that it begins on.

    Empty lines are no rows. Raises `csv.Error` for a quote out of place where `strict`, and
    `UnicodeDecodeError` for what is no UTF-8.
    """
    delimiter, n_before = layout(file)
    reader = csv.reader(islice(text_lines(file), n_before, None), delimiter=delimiter, strict=strict)
    began = n_before + 1
    for values in reader:
        if values:
            yield began, values
        began = n_before + reader.line_num + 1


class RowLines:
    """The lines that a lenient `csv.reader` takes; refuses a quote that hides rows inside a field.

    Such a quote is open at the end of the file, or closes on a later line in front of more text.
    """

    def __init__(self, file: Path, lines: Iterable[str], delimiter: str) -> None:
        self._file, self._lines, self._delimiter = file, lines, delimiter
        self._row: list[str] = []

    def __iter__(self) -> Iterator[str]:
        """Yield the lines, and keep those of the row at hand; empty lines before it are none."""
        for line in self._lines:
            if self._row or line.strip("\r\n"):
                self._row.append(line)
            yield line

    def row_ends(self, line: int) -> None:
        """Take note that the reader has a row, which ends on this line."""
        if len(self._row) > 1 or (self._row and '"' in self._row[0]):
            self._refuse(line)
        self._row.clear()

    def row_breaks_off(self) -> None:
        """Take note that the reader gave a row up."""
        self._row.clear()

    def _refuse(self, line: int) -> None:
        row, start = "".join(self._row), 0
        while start < len(row):
            end = start
            if quoted := _QUOTED.match(row, start):
                end = quoted.end()
                stop = row.find(self._delimiter, end)
                behind = row[end : stop if stop >= 0 else None].strip()
                is_hidden = behind and ("\n" in quoted[1] or "\r" in quoted[1])
                if is_hidden or not quoted[2]:
                    what = "a quote that is not closed where its field ends" if quoted[2] else _UNEXPECTED_END
                    before = row[:start]
                    began = line - len(self._row) + 1 + (before.count("\n") or before.count("\r"))
                    raise UserError(
                        f"{self._file}, line {began}: {what}; close it, or put the field in quotes and "
                        "double each quote inside it"
                    )
            start = row.find(self._delimiter, end) + 1 or len(row)


def refuse_open_quotes(file: Path) -> None:
    """Raise `UserError` for the first quote of a CSV that hides rows inside a field."""
    delimiter, n_before = layout(file)
    lines = RowLines(file, islice(text_lines(file, errors="replace"), n_before, None), delimiter)
    reader = csv.reader(lines, delimiter=delimiter)
    began = n_before + 1
    try:
        for _ in reader:
            lines.row_ends(n_before + reader.line_num)
            began = n_before + reader.line_num + 1
    except csv.Error as error:
        raise UserError(f"{file}, line {began}: {error}; expected CSV in UTF-8") from error


def csv_rows(file: Path) -> Iterator[ForeignRow]:
    """Each row of a CSV under the header's names; raises `UserError` for one with more or fewer values."""
    names = header(file)
    began = 1
    try:
        for began, values in islice(numbered(file, strict=True), 1, None):
            if len(values) != len(names):
                header_line = layout(file).delimiter.join(names)[:60]
                raise UserError(
                    f"{file}, line {began}: {len(values)} values under {len(names)} names "
                    f"({header_line!r}); expected CSV in UTF-8, its first line the names, separated by `,`, "
                    "`;`, tab or `|`, or by what a line such as `sep=^` above it states"
                )
            yield ForeignRow(f"line {began}", dict(zip(names, values, strict=True)))
    except UnicodeDecodeError as error:
        raise no_utf8(file) from error
    except csv.Error as error:
        raise UserError(f"{file}, after line {began}: {error}; expected CSV in UTF-8") from error
