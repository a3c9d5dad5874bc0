"""A stage's progress on stderr: a bar in a terminal, a line now and then elsewhere.

A time left is said once it means something: after 5 s, and after 20 items or 5 % of what there was to do, but
never fewer than 5 items (`means_something`), by the speed of the last half minute. Until then it is a dash.
"""

import logging
import math
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, ProgressColumn, Task
from rich.table import Column
from rich.text import Text

from monitorbench.config.terminal import Console

SECONDS_BETWEEN_LINES = 15.0
_FEW_SECONDS = 5.0
_FEWEST, _FEW, _FEW_SHARE = 5, 20, 0.05
_WINDOW_SECONDS = 30.0
_SECONDS_BETWEEN_MARKS = 0.5
_log = logging.getLogger(__name__)


def means_something(done: int, of: int, seconds: float) -> bool:
    """Whether a time left can be said after `done` of the `of` items of this process, in `seconds`."""
    return seconds >= _FEW_SECONDS and done >= min(_FEW, max(_FEWEST, _FEW_SHARE * of))


class Speed:
    """How fast items are done, over the last half minute or so; what earlier processes did is no speed."""

    def __init__(self, total: int, done: int = 0, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`done` of `total` items were done before."""
        self.total, self.done, self._clock = total, done, clock
        self._done_before, self._began = done, clock()
        self._marks = deque([(self._began, done)])
        self._last, self._longest_wait = self._began, 0.0

    def add(self, items: int = 1) -> None:
        """Note that so many more are done."""
        self.done += items
        now = self._clock()
        self._longest_wait, self._last = max(self._longest_wait, now - self._last), now
        if now - self._marks[-1][0] >= _SECONDS_BETWEEN_MARKS:
            self._marks.append((now, self.done))
        # The oldest stays just outside the window, so that items in rare bursts have a speed too.
        while len(self._marks) > 2 and now - self._marks[1][0] >= _WINDOW_SECONDS:
            self._marks.popleft()

    @property
    def seconds(self) -> float:
        """Seconds since this process began."""
        return self._clock() - self._began

    @property
    def a_second(self) -> float | None:
        """Items a second; None before the first of this process."""
        began, done_then = self._marks[0]
        seconds = self._clock() - began
        return (self.done - done_then) / seconds if seconds > 0 and self.done > done_then else None

    @property
    def seconds_left(self) -> float | None:
        """Expected seconds to the end; None until it means something, 0 where nothing is left."""
        if self.done >= self.total:
            return 0.0
        here, n_left = self.done - self._done_before, self.total - self.done
        if not means_something(here, self.total - self._done_before, self.seconds):
            return None
        (began, done_then), now = self._marks[0], self._clock()
        waited = now - self._last
        # Items come in bursts: between two of them the time left falls, and only a stall lets it grow.
        until, since = (now, 0.0) if waited > 2 * self._longest_wait else (self._last, waited)
        return max(n_left * (until - began) / (self.done - done_then) - since, 1.0)


def time_left(seconds_left: float | None, seconds: float) -> str:
    """`ETA 0:01:20`, `ETA -` while it is not known, and at the end `in 0:02:03`, the time it took."""
    if seconds_left is None:
        return "ETA -"
    return f"ETA {clock_time(seconds_left)}" if seconds_left else f"in {clock_time(seconds)}"


def clock_time(seconds: float) -> str:
    """Hours, minutes and seconds; what is more than nothing is at least one second."""
    minutes, seconds_over = divmod(math.ceil(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds_over:02}"


class TextBeside(ProgressColumn):
    """A text beside a bar, asked for anew each time."""

    def __init__(self, text: Callable[[], str]) -> None:
        self._text = text
        super().__init__()

    def render(self, task: Task) -> Text:
        """Render the text on one line."""
        return Text(self._text(), no_wrap=True, overflow="ellipsis")


def numbers_bar(numbers: Callable[[], Sequence[str]], total: int, done: int, console: Console) -> Progress:
    """One line of a terminal: the numbers, and a bar in what they leave of its width."""
    rest = BarColumn(bar_width=None, table_column=Column(ratio=1))
    bar = Progress(rest, TextBeside(lambda: " ".join(numbers())), console=console, expand=True)
    bar.add_task("", total=total, completed=done)
    return bar


class NumbersDisplay:
    """Numbers of a stage as they change: with a bar in a terminal, elsewhere a plain line now and then."""

    def __init__(self, name: str, numbers: Callable[[], Sequence[str]], bar: Progress | None) -> None:
        self._name, self._numbers, self._bar = name, numbers, bar
        self._said_at = time.monotonic()

    def advance(self, by: int = 1, *, is_last: bool = False) -> None:
        """Note that so many more are done; the line of the last one is always written."""
        if self._bar is not None:
            self._bar.advance(self._bar.task_ids[0], by)
        elif is_last or time.monotonic() - self._said_at >= SECONDS_BETWEEN_LINES:
            self.say()

    def say(self) -> None:
        """Write the numbers as a line, where there is no terminal."""
        if self._bar is None:
            self._said_at = time.monotonic()
            _log.info("%s%s", self._name, ", ".join(self._numbers()))


@contextmanager
def numbers_display(
    name: str, numbers: Callable[[], Sequence[str]], total: int, done: int
) -> Iterator[NumbersDisplay]:
    """Show numbers while `total` items are worked on, `done` of them done before; `name` begins each line."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield NumbersDisplay(name, numbers, None)
        return
    bar = numbers_bar(numbers, total, done, console)
    with on_screen(bar):
        yield NumbersDisplay(name, numbers, bar)


def or_dash(value: float | None) -> str:
    """Three decimals of a number; a dash where there is none."""
    return "-" if value is None else f"{value:.3f}"


class Ticker:
    """Counts what is done; `advance` may be called as often as one likes."""

    display: NumbersDisplay

    def __init__(self, name: str, total: int) -> None:
        self._name, self._speed, self._doing = name, Speed(total), ""

    def numbers(self) -> list[str]:
        """The count, the time left, and what is being done."""
        speed = self._speed
        left = time_left(speed.seconds_left, speed.seconds)
        return [f"{self._name}: {speed.done}/{speed.total}", f"{left}{self._doing}"]

    def doing(self, text: str) -> None:
        """Say what is being done now, with the next numbers."""
        self._doing = text and f" ({text})"

    def advance(self, by: int = 1) -> None:
        """Note that so many more are done."""
        self._speed.add(by)
        self.display.advance(by, is_last=self._speed.done >= self._speed.total)


@contextmanager
def progress(name: str, total: int) -> Iterator[Ticker]:
    """Show how far a loop of `total` steps is."""
    ticker = Ticker(name, total)
    with numbers_display("", ticker.numbers, total, 0) as ticker.display:
        yield ticker


@contextmanager
def on_screen(bar: Progress) -> Iterator[None]:
    """Show a bar; lines that are logged meanwhile go above it instead of across it."""
    stderr = sys.stderr
    handlers = [
        handler
        for handler in logging.getLogger().handlers
        if isinstance(handler, logging.StreamHandler) and handler.stream is stderr
    ]
    with bar:
        for handler in handlers:
            handler.setStream(sys.stderr)  # which is the bar's now
        try:
            yield
        finally:
            for handler in handlers:
                handler.setStream(stderr)
