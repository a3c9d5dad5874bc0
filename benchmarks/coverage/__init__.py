"""Guarantees, in simulations whose truth is known: how often they hold, and how often by a plainer method.

Every file of `benchmarks/coverage/` simulates some guarantees, two files at a time, in at most 15 minutes on
two cores. The same seed gives the same tables; `--effort` scales the number of simulated data sets, 1 is
what docs/coverage.md shows. Writes the tables as Markdown, with the seed and how long each part took, to
`tables.md`; `--page docs/coverage.md` puts them below the marker of a page.
"""

import importlib
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from benchmarks.measuring import Result

PARTS = tuple(sorted(file.stem for file in Path(__file__).parent.glob("[!_]*.py") if file.stem != "table"))
MARKER = "<!-- simulated -->"


class Simulated(NamedTuple):
    """A part's tables as Markdown, and how long they took."""

    part: str
    text: str
    seconds: float


def main(work: Path, *, seed: int, effort: float, only: str, page: str) -> Result:
    """Simulate the parts in `only` (all where it is empty), print the tables and write them."""
    parts = only.split(",") if only else list(PARTS)
    if unknown := sorted(set(parts) - set(PARTS)):
        raise SystemExit(f"--only: no part {', '.join(unknown)}; expected some of {', '.join(PARTS)}")
    head, marker, _ = Path(page).read_text().partition(MARKER) if page else ("", MARKER, "")
    if not marker:
        raise SystemExit(f"--page: {page} has no line {MARKER}; expected one where the tables begin")
    with ProcessPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        waiting = [pool.submit(simulate, part, seed, effort) for part in parts]
        done = [one.result() for one in waiting]
    took = ", ".join(f"{one.part} {one.seconds:.0f} s" for one in done)
    text = "\n".join(one.text for one in done) + f"\nSeed {seed}, effort {effort:g}; {took}.\n"
    print(text)
    (work / "tables.md").write_text(text)
    if page:
        Path(page).write_text(f"{head}{MARKER}\n\n{text}")
    return Result({one.part: {"seconds": one.seconds} for one in done}, {}, {"seed": seed, "effort": effort})


def simulate(part: str, seed: int, effort: float) -> Simulated:
    """Simulate one part, in a process of its own."""
    began = time.monotonic()
    module = importlib.import_module(f"benchmarks.coverage.{part}")
    text = "\n".join(table.markdown() for table in module.tables(seed, effort))
    return Simulated(part, text, time.monotonic() - began)
