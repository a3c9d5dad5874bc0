"""The printed forecast: a line for each kind of run, and below it how that was counted; 80 columns."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

from monitorbench.forecast.samples import Counter
from monitorbench.forecast.work import Run, Work, work_of


class Line(NamedTuple):
    """All runs of a kind, or of all; what is there already takes nothing."""

    kind: str
    runs: int
    there: int
    samples: int
    tokens: float
    """Those of validations included."""
    hours: float | None
    """One run after another; None where that of a run is not known."""
    gpu_hours: float | None
    cost: float | None
    """None: no run of it is paid for."""


def forecast(runs: Iterable[Run]) -> list[Work]:
    """What each run takes; nothing is started and nothing written. Raises what `work_of` raises."""
    counter = Counter()
    return [work_of(run, counter) for run in runs]


def lines(works: Sequence[Work]) -> list[Line]:
    """A line for each kind, in the order of their first runs, and one for all where there are several."""
    kinds = list(dict.fromkeys((work.monitor, work.kind) for work in works))
    several = len({monitor for monitor, _ in kinds}) > 1
    found = [
        _line(
            f"{monitor}: {kind}" if several else kind,
            [work for work in works if (work.monitor, work.kind) == (monitor, kind)],
        )
        for monitor, kind in kinds
    ]
    return [*found, _line("all", works)] if len(found) > 1 else found


def print_forecast(works: Sequence[Work]) -> None:
    """The table and its notes."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    monitors = list(dict.fromkeys(work.monitor for work in works))
    table.add_column(monitors[0] if len(monitors) == 1 else "monitor: runs", overflow="fold")
    for name in ("runs", "there", "samples", "tokens", "hours", "GPU-hours", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    for line in lines(works):
        table.add_row(
            line.kind,
            f"{line.runs}",
            f"{line.there}",
            f"{line.samples:,}",
            _large(line.tokens),
            _hours(line.hours),
            _hours(line.gpu_hours),
            "-" if line.cost is None else f"{line.cost:,.2f}",
        )
    console = Console(width=80, highlight=False)
    console.print(table)
    console.print(
        "samples to hours: of what is not there yet, one run after another, without loading models; a "
        "training that stops early takes less, a cost is at most."
    )
    for text in dict.fromkeys(text for work in works for text in (*work.counted, work.paced)):
        console.print(f"- {text}", soft_wrap=False)


def _line(kind: str, works: Sequence[Work]) -> Line:
    coming = [work for work in works if not work.is_there]
    seconds = [work.seconds for work in coming]
    known = [one for one in seconds if one is not None]
    is_known = len(known) == len(seconds)
    paid = [work.cost for work in coming if work.cost is not None]
    return Line(
        kind=kind,
        runs=len(works),
        there=len(works) - len(coming),
        samples=sum(work.samples for work in coming),
        tokens=sum(work.tokens + work.validation_tokens for work in coming),
        hours=sum(known) / 3600 if is_known else None,
        gpu_hours=sum((work.seconds or 0) * work.gpus for work in coming) / 3600 if is_known else None,
        cost=sum(paid) if paid else None,
    )


def _large(n: float) -> str:
    """Three digits of a number: `12.3M`."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if n >= size:
            return f"{n / size:.3g}{unit}" if n < 1000 * size else f"{n / size:,.0f}{unit}"
    return f"{n:.0f}"


def _hours(hours: float | None) -> str:
    if hours is None:
        return "?"
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.2g}" if hours < 1 else f"{hours:.1f}"
