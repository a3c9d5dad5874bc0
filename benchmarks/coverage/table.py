"""A table of simulated figures, as Markdown."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

Cell = str | int | float | None


class Table(NamedTuple):
    """Figures of one guarantee, and a note on what they are of."""

    title: str
    columns: str
    """Names with ` | ` between them."""
    rows: Iterable[Sequence[Cell]]
    """A float is shown with three digits; where it is something else, it comes as text."""
    note: str
    """A few sentences: the simulation, how often it was run, and how to read its figures."""

    def markdown(self) -> str:
        """Return the title, the table and the note."""
        n_columns = self.columns.count(" | ") + 1
        rows = [self.columns, " | ".join(["---"] * n_columns)]
        rows += [" | ".join(map(_text, row)) for row in self.rows]
        return "\n".join([f"### {self.title}", "", *(f"| {row} |" for row in rows), "", self.note, ""])


def _text(cell: Cell) -> str:
    if cell is None:
        return "–"
    return f"{cell:.3f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else cell
