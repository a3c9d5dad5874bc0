"""Guarantees, in simulations whose truth is known: how often they hold, and how often by a plainer method.

Every file of `benchmarks/coverage/` simulates some guarantees, two files at a time, in at most 15 minutes on
two cores. The same seed gives the same tables; `--effort` scales the number of simulated data sets, 1 is
what docs/coverage.md shows. Writes the tables as Markdown, with the seed and how long each part took, to
`tables.md`; `--page docs/coverage.md` puts them below the marker of a page.
"""

import importlib
import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from benchmarks.measuring import Result

PARTS = tuple(sorted(file.stem for file in Path(__file__).parent.glob("[!_]*.py")))
MARKER = "<!-- simulated -->"
Cell = str | int | float | None
T = TypeVar("T")


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


def means(draws: Iterable[Sequence[float]]) -> list[float]:
    """Average each figure over simulated data sets; a yes or no becomes the share of yes."""
    averages: list[float] = np.mean(list(draws), axis=0).tolist()
    return averages


def holds(intervals: Iterable[Sequence[float] | None], truth: float, within: float = 0.0) -> list[bool]:
    """Tell which intervals hold the truth, to a tolerance; an interval that is missing does not."""
    return [one is not None and one[0] <= truth + within and truth - within <= one[1] for one in intervals]


def given(figure: T | None) -> T:
    """Return a figure that every simulated data set has to have."""
    assert figure is not None
    return figure


def _text(cell: Cell) -> str:
    if cell is None:
        return "–"
    return f"{cell:.3f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else cell


def main(work: Path, *, seed: int, effort: float, only: str, page: str) -> Result:
    """Simulate the parts in `only` (all where it is empty), print the tables and write them."""
    parts = only.split(",") if only else list(PARTS)
    if unknown := sorted(set(parts) - set(PARTS)):
        raise SystemExit(f"--only: no part {', '.join(unknown)}; expected some of {', '.join(PARTS)}")
    head, marker, _ = Path(page).read_text().partition(MARKER) if page else ("", MARKER, "")
    if not marker:
        raise SystemExit(f"--page: {page} has no line {MARKER}; expected one where the tables begin")
    with ProcessPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        texts, seconds = zip(*pool.map(partial(_simulate, seed=seed, effort=effort), parts), strict=True)
    took = ", ".join(f"{part} {of_part:.0f} s" for part, of_part in zip(parts, seconds, strict=True))
    text = "\n".join(texts) + f"\nSeed {seed}, effort {effort:g}; processor time: {took}.\n"
    print(text)
    (work / "tables.md").write_text(text)
    if page:
        Path(page).write_text(f"{head}{MARKER}\n\n{text}")
    rows = {part: {"seconds": of_part} for part, of_part in zip(parts, seconds, strict=True)}
    return Result(rows, {}, {"seed": seed, "effort": effort})


def _simulate(part: str, seed: int, effort: float) -> tuple[str, float]:
    """Simulate one part, in a process of its own: its tables as Markdown, and its processor time, s."""
    began = time.process_time()
    module = importlib.import_module(f"benchmarks.coverage.{part}")
    text = "\n".join(table.markdown() for table in module.tables(seed, effort))
    return text, time.process_time() - began
