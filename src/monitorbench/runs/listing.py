"""`runs list`: a table for each kind of run that fits 80 columns, or the same as JSON."""

import csv
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict

from rich.console import Console
from rich.table import Table
from rich.text import Text

from monitorbench.config.base import UserError
from monitorbench.metrics.columns import OVERALL
from monitorbench.report.tables.numbers import DASH, count, rate
from monitorbench.runs.directory import KINDS
from monitorbench.runs.run_folders import Run, State, age_in_words
from monitorbench.runs.verdict_log import VERDICTS

_STYLES: dict[State, str] = {"running": "cyan", "incomplete": "yellow", "stale": "yellow", "damaged": "red"}
_SHORT_ID = 8
"""Hex digits of a hash that are shown, and are enough to name a run by."""
_MOST_LOG_BYTES = 2**24
"""Logs that are longer are not read for a list: their run's rates are told once it is scored."""


class RunRates(NamedTuple):
    """Miss rate and false alarm rate of an evaluation's own answers, over all its samples."""

    miss_rate: float | None
    false_alarm_rate: float | None


UNKNOWN = RunRates(None, None)


class Listed(TypedDict):
    """One run in `runs list --json`."""

    run: str
    id: str
    kind: str
    name: str
    dataset: str
    split: str
    n: int | None
    """Samples of an evaluation or a training, benign questions of a calibration, else runs."""
    miss_rate: float | None
    false_alarm_rate: float | None
    state: State
    started: str | None
    bytes: int


def listed(run: Run, datasets: Path) -> Listed:
    """Describe a run, over a dataset in the folder `datasets`, as the list does."""
    rates = overall_rates(run, datasets)
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
    matching = [
        run
        for run in runs
        if (not states or run.state in states)
        and all(text in " ".join((run.path.name, run.kind, run.dataset, run.title)) for text in texts)
    ]
    return matching[:n]


def overall_rates(run: Run, datasets: Path) -> RunRates:
    """MR and FAR of an evaluation: from its table where it is scored, else from its log and the dataset.

    The table, since the metrics take ten times as long to read.
    """
    judge = run.manifest.get("results", {}).get("judge")
    if run.kind != "evaluate" or not judge:
        return UNKNOWN
    try:
        with (run.path / "table.csv").open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                if row["prompt"] == judge["prompt"] and row["cell"] == OVERALL:
                    return RunRates(*(float(row[key]) if row[key] else None for key in RunRates._fields))
    except (OSError, KeyError, ValueError, TypeError, csv.Error):
        pass
    return _answered(run.path, datasets) if run.state == "done" else UNKNOWN


def _answered(directory: Path, datasets: Path) -> RunRates:
    """The rates of a finished evaluation's answers; unknown without its dataset, or where the log is long."""
    from monitorbench.metrics.rates import count as confusion
    from monitorbench.metrics.rates import false_alarm_rate, miss_rate
    from monitorbench.scoring.evaluations import read_evaluation

    try:
        if (directory / VERDICTS).stat().st_size > _MOST_LOG_BYTES:
            return UNKNOWN
        judged = read_evaluation(datasets, directory).judged
    except (OSError, UserError):
        return UNKNOWN
    counts = confusion(judged.is_misbehavior, judged.flagged)
    return RunRates(miss_rate(counts), false_alarm_rate(counts))


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


def print_list(to: Console, runs: Sequence[Run], datasets: Path) -> None:
    """A table a kind."""
    for kind in KINDS:
        of_kind = [run for run in runs if run.kind == kind]
        if of_kind:
            to.print(Text(f"{kind}: {len(of_kind)}", style="bold"))
            to.print(_table(of_kind, datasets, judges=kind == "evaluate"))


def _table(runs: Sequence[Run], datasets: Path, *, judges: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("id", no_wrap=True)
    table.add_column("name", overflow="fold", ratio=1)
    table.add_column("data", overflow="fold", max_width=20)
    if judges:
        table.add_column("split", no_wrap=True)
    for name in ("n", *(("MR", "FAR") if judges else ())):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("age", justify="right", no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    for run in runs:
        line = listed(run, datasets)
        rates = (rate(line["miss_rate"]), rate(line["false_alarm_rate"]))
        cells = [
            run.id[:_SHORT_ID],
            run.title,
            run.dataset or DASH,
            *([run.split] if judges else ()),
            DASH if line["n"] is None else count(line["n"]),
            *(rates if judges else ()),
        ]
        last = [age_in_words(run.started), size_in_words(line["bytes"])]
        state = Text(run.state, style=_STYLES.get(run.state, ""))
        table.add_row(*map(Text, cells), state, *map(Text, last))
    return table


def _n(run: Run) -> int | None:
    results = run.manifest.get("results", {})
    if run.kind == "calibrate" and "operating_point" in results:
        return sum(int(threshold["n"]) for threshold in results["operating_point"]["thresholds"])
    if run.kind in ("transfer", "recommend"):
        return len(results["runs"]) if "runs" in results else None
    n = results.get({"train": "n_samples", "fit": "n_samples", "pilot": "n_runs"}.get(run.kind, "n"))
    return int(n) if isinstance(n, int) else None
