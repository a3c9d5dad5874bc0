"""Tables and sentences on a terminal: columns of fixed widths, and characters that it has."""

import re
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from monitorbench.config.terminal import Console
from monitorbench.metrics.written import TO_ASCII

Columns = Sequence[tuple[str, int]]
"""Headings of a table, each with its column's width."""


def start_table(console: Console, title: str, columns: Columns) -> None:
    """Print a table's title and its headings."""
    say(console, "")
    say(console, title, "bold")
    print_rows(console, columns, [[name for name, _ in columns]], "dim")


def print_rows(
    console: Console,
    columns: Columns,
    rows: Sequence[Sequence[str]],
    style: str = "",
    *,
    gap: int = 2,
    last_number: int = 2,
) -> None:
    """Print rows in columns of fixed widths, so that blocks stand in line under one header.

    Narrow columns behind the first are of numbers up to the one of index `last_number`; `gap` parts columns.
    """
    table = Table.grid(padding=(0, gap, 0, 0))
    for i, (_, width) in enumerate(columns):
        numeric = 1 <= i <= last_number and width < 10
        table.add_column(width=width, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        cells = (
            _broken(_encoded(console, text), width) for text, (_, width) in zip(row, columns, strict=True)
        )
        table.add_row(*(Text(cell, style=style) for cell in cells))
    console.print(table)


def _broken(text: str, width: int) -> str:
    """Return a cell whose names, where too wide, go on in another line behind an underscore, not a letter."""
    indent = " " * (len(text) - len(text.lstrip()))
    lines = [indent]
    for part in re.split(r"(?<=[_/\s])(?=\S)|(?<=[+-])(?=[^\W\d_])", text.lstrip()):
        if len(lines[-1] + part.rstrip()) > width and lines[-1].strip():
            lines.append(indent)
        lines[-1] += part if lines[-1].strip() else part.lstrip()
    return "\n".join(lines)


def say_lines(console: Console, title: str, lines: Sequence[str]) -> None:
    """Print lines under a title; nothing without a line."""
    for i, line in enumerate(lines):
        if i == 0:
            say(console, "")
            say(console, title, "bold")
        say(console, line)


def say(console: Console, text: str, style: str = "") -> None:
    """One paragraph; in ASCII where the terminal has no more."""
    console.print(Text(_encoded(console, text), style=style), overflow="fold")


def _encoded(console: Console, text: str) -> str:
    """Name what a terminal would obey or hide, since names are other people's; ASCII where it has no more."""
    text = "".join(char if char.isprintable() else f"<U+{ord(char):04X}>" for char in text)
    if not console.options.ascii_only:
        return text
    return text.translate(TO_ASCII).encode("ascii", "replace").decode()
