"""Tables and sentences on a terminal: columns of fixed widths, and characters that it has."""

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


def print_rows(console: Console, columns: Columns, rows: Sequence[Sequence[str]], style: str = "") -> None:
    """Print rows in columns of fixed widths, so that blocks stand in line under one header."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for i, (_, width) in enumerate(columns):
        numeric = 1 <= i <= 2 and width < 10
        table.add_column(width=width, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_encoded(console, text), style=style) for text in row))
    console.print(table)


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
    if not console.options.ascii_only:
        return text
    return text.translate(TO_ASCII).encode("ascii", "replace").decode()
