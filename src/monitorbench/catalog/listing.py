"""`runs list`: a table for each kind of run that fits 80 columns, or the same as JSON."""

import csv
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict

from rich.console import Console
from rich.table import Table
from rich.text import Text

from monitorbench.catalog.found import KINDS, Run, State, age_in_words
from monitorbench.metrics.columns import OVERALL
from monitorbench.report.tables.numbers import DASH, count, rate

WIDTH = 80
_STYLES: dict[State, str] = {"running": "cyan", "incomplete": "yellow", "stale": "yellow", "damaged": "red"}
_SHORT_ID = 8
"""Hex digits of a hash that are shown, and are enough to name a run by."""


class Rates(NamedTuple):
    """Of a scored evaluation, over all its samples."""

    miss_rate: float | None
    false_alarm_rate: float | None


UNKNOWN = Rates(None, None)


class Listed(TypedDict):
    """One run in `runs list --json`."""

    run: str
    id: str
    kind: str
    name: str
    dataset: str
    split: str
    n: int | None
    """Samples of an evaluation or a training; of a calibration benign questions; else runs."""
    miss_rate: float | None
    false_alarm_rate: float | None
    state: State
    started: str | None
    bytes: int


def listed(run: Run) -> Listed:
    """What the list says of a run."""
    rates = overall_rates(run)
    return Listed(
        run=str(run.path),
        id=run.id,
        kind=run.kind,
        name=run.title,
        dataset=run.dataset,
        split=run.split,
        n=_n(run),
        miss_rate=rates.miss_rate,
        false_alarm_rate=rates.false_alarm_rate,
        state=run.state,
        started=run.started.isoformat() if run.started else None,
        bytes=size(run.path),
    )


def chosen(
    runs: Iterable[Run], texts: Sequence[str] = (), states: Sequence[str] = (), n: int | None = None
) -> list[Run]:
    """The runs of some states whose folder, kind, dataset or name holds all of some texts; the first n."""
    found = [
        run
        for run in runs
        if (not states or run.state in states)
        and all(text in " ".join((str(run.path.name), run.kind, run.dataset, run.title)) for text in texts)
    ]
    return found[:n]


def overall_rates(run: Run) -> Rates:
    """MR and FAR of a scored evaluation, from its table: the metrics take ten times as long to read."""
    judge = run.manifest.get("results", {}).get("judge")
    if run.kind != "evaluate" or not judge:
        return UNKNOWN
    try:
        with (run.path / "table.csv").open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                if row["prompt"] == judge["prompt"] and row["cell"] == OVERALL:
                    return Rates(*(float(row[key]) if row[key] else None for key in Rates._fields))
    except (OSError, KeyError, ValueError, TypeError, csv.Error):
        return UNKNOWN  # not scored yet, or by another version
    return UNKNOWN


def size(path: Path) -> int:
    """The bytes of a folder's files; what it links to is not followed."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(f"{folder}/{name}").st_size
            except FileNotFoundError:  # a run that is being written
                continue
    return total


def size_in_words(n: int) -> str:
    """`512`, `46k`, `1.2M`, `3.0G` bytes."""
    for factor, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= factor:
            return f"{n / factor:.1f}{unit}" if n < 10 * factor and unit != "k" else f"{n / factor:.0f}{unit}"
    return str(n)


def console(*, stderr: bool = False) -> Console:
    """A terminal's own width, else 80 columns."""
    found = Console(stderr=stderr)
    return found if found.is_terminal else Console(stderr=stderr, width=WIDTH)


def print_list(to: Console, runs: Sequence[Run]) -> None:
    """A table a kind."""
    for kind in KINDS:
        of_kind = [run for run in runs if run.kind == kind]
        if not of_kind:
            continue
        to.print(Text(f"{kind}: {len(of_kind)}", style="bold"))
        to.print(_table(of_kind, with_rates=kind == "evaluate"))


def _table(runs: Sequence[Run], *, with_rates: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("id", no_wrap=True)
    table.add_column("name", overflow="fold", ratio=1)
    table.add_column("data", overflow="fold", max_width=20)
    for name in ("n", *(("MR", "FAR") if with_rates else ())):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("age", justify="right", no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    for run in runs:
        rates = overall_rates(run)
        n = _n(run)
        row = [
            run.id[:_SHORT_ID],
            run.title,
            "/".join(part for part in (run.dataset, run.split) if part) or DASH,
            DASH if n is None else count(n),
            *((rate(rates.miss_rate), rate(rates.false_alarm_rate)) if with_rates else ()),
        ]
        last = [age_in_words(run.started), size_in_words(size(run.path))]
        state = Text(run.state, style=_STYLES.get(run.state, ""))
        table.add_row(*map(Text, row), state, *map(Text, last))
    return table


def _n(run: Run) -> int | None:
    results = run.manifest.get("results", {})
    if run.kind == "calibrate" and "operating_point" in results:
        return sum(int(one["n"]) for one in results["operating_point"]["thresholds"])
    if run.kind in ("transfer", "recommend"):
        return len(results["runs"]) if "runs" in results else None
    found = results.get({"train": "n_samples", "fit": "n_samples", "pilot": "n_runs"}.get(run.kind, "n"))
    return int(found) if isinstance(found, int) else None
