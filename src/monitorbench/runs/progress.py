"""A stage's progress on stderr: a bar in a terminal, a line now and then elsewhere."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

SECONDS_BETWEEN_LINES = 15.0
_log = logging.getLogger(__name__)


class Ticker:
    """Counts what is done; `advance` may be called as often as one likes."""

    def __init__(self, name: str, total: int, bar: Progress | None) -> None:
        self._name, self._total, self._bar = name, total, bar
        self._task = bar.add_task(name, total=total) if bar else None
        self._done = 0
        self._said_at = time.monotonic()

    def advance(self, by: int = 1) -> None:
        """Note that so many more are done."""
        self._done += by
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, by)
        elif self._done >= self._total or time.monotonic() - self._said_at >= SECONDS_BETWEEN_LINES:
            self._said_at = time.monotonic()
            _log.info("%s: %d/%d", self._name, self._done, self._total)


@contextmanager
def progress(name: str, total: int) -> Iterator[Ticker]:
    """Show how far a loop of `total` steps is."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Ticker(name, total, None)
        return
    columns = (
        TextColumn("{task.description:<28}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        yield Ticker(name, total, bar)
