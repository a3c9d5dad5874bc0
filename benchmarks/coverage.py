"""Do the guarantees hold? Coverage and error rates in simulations whose truth is known.

    python benchmarks/coverage.py [--seed 0] [--effort 1] [--only low_far,pilot] [--write docs/coverage.md]

Every file of `coverage_parts/` simulates one guarantee, two files at a time; all of them take at most 15
minutes on two cores. Prints the tables as Markdown and writes them, with the seed and how long each took, to
`runs/benchmarks/coverage/tables.md`; `--write` puts them below the marker of a page.
"""

import argparse
import importlib
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "runs" / "benchmarks" / "coverage"
PARTS = tuple(
    sorted(
        file.stem
        for file in (Path(__file__).parent / "coverage_parts").glob("*.py")
        if file.stem not in {"__init__", "table"}
    )
)
MARKER = "<!-- simulated -->"


class Done(NamedTuple):
    """A part's tables as Markdown."""

    part: str
    text: str
    seconds: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print, write."""
    asked = _asked(arguments)
    with ProcessPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        waiting = [pool.submit(simulated, part, asked.seed, asked.effort) for part in asked.only]
        done = [one.result() for one in waiting]
    text = "\n".join(one.text for one in done)
    took = ", ".join(f"{one.part} {one.seconds:.0f} s" for one in done)
    page = f"{text}\nSeed {asked.seed}, effort {asked.effort:g}; {took}.\n"
    print(page)
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / "tables.md").write_text(page)
    if asked.write:
        head, marker, _ = asked.write.read_text().partition(MARKER)
        if not marker:
            raise SystemExit(f"{asked.write}: has no line {MARKER}; expected one where the tables begin")
        asked.write.write_text(f"{head}{MARKER}\n\n{page}")


def simulated(part: str, seed: int, effort: float) -> Done:
    """One part, in a process of its own."""
    began = time.monotonic()
    module = importlib.import_module(f"coverage_parts.{part}")
    text = "\n".join(table.markdown() for table in module.tables(seed, effort))
    return Done(part, text, time.monotonic() - began)


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--effort", type=float, default=1.0)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(PARTS))
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args(arguments)
    if unknown := sorted(set(asked.only) - set(PARTS)):
        parser.error(f"--only: no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    return asked


if __name__ == "__main__":
    main()
