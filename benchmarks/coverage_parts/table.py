"""A table of simulated figures, as Markdown."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

Cell = str | int | float | None


class Table(NamedTuple):
    """Figures of one guarantee, and below them what they are of."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    """A float is shown with three digits; where it is something else, it comes as text."""
    note: str = ""
    """What was simulated, how often, and how to read it: a few sentences."""

    def markdown(self) -> str:
        """The title, the table, the note."""
        lines = [f"### {self.title}", "", _row(self.columns), _row(["---"] * len(self.columns))]
        lines += [_row([_text(cell) for cell in row]) for row in self.rows]
        return "\n".join([*lines, *(["", self.note] if self.note else [])]) + "\n"


class Part(Protocol):
    """A file of `coverage_parts`."""

    def tables(self, seed: int, effort: float) -> Iterator[Table]:
        """The tables of one guarantee."""
        ...


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(cell: Cell) -> str:
    if cell is None:
        return "–"
    return f"{cell:.3f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else cell
