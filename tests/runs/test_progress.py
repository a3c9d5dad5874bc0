"""How long a loop still takes: said once it means something, and then not far from the truth."""

import io
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from monitorbench.runs import progress as shown_progress
from monitorbench.runs.progress import Speed, clock_time, means_something, progress, time_left


class Clock:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now = 500.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("done", "of", "seconds", "known"),
    [
        (100, 1000, 4.9, False),  # a burst from a warm cache
        (19, 1000, 60, False),
        (20, 1000, 5, True),
        (5, 100, 5, True),  # 5 %
        (4, 14, 20, False),  # a single item of 14 is 7 %, and says nothing
        (5, 14, 20, True),
        (0, 0, 60, False),
    ],
)
def test_when_a_time_left_means_something(done: int, of: int, seconds: float, known: bool) -> None:
    """A first value of an hour for a run of a minute: people stop runs for it."""
    assert means_something(done, of, seconds) is known


def test_bursts_count_down_and_a_stall_counts_up() -> None:
    """A batch of 8 every 4 s: just before the next one the time left said three times the truth."""
    clock = Clock()
    speed = Speed(80, clock=clock)
    for batch in range(1, 10):
        clock.now += 4
        for _ in range(8):
            speed.add()
        for waited in range(4):
            clock.now += 1
            left = speed.seconds_left
            truth = (10 - batch) * 4 - waited - 1
            assert left is None if clock.now - 500 < 5 else left == pytest.approx(max(truth, 1), rel=0.35)
        clock.now -= 4
    clock.now += 40
    stalled = speed.seconds_left
    assert stalled is not None
    assert stalled > 4


@given(st.lists(st.floats(0.01, 50), min_size=1, max_size=80), st.integers(0, 100))
def test_never_nothing_before_the_end(waits: list[float], before: int) -> None:
    """`ETA 0:00:00` beside a bar that stands still for minutes."""
    clock = Clock()
    speed = Speed(before + len(waits), before, clock=clock)
    for i, wait in enumerate(waits, 1):
        clock.now += wait
        speed.add()
        said = time_left(speed.seconds_left, speed.seconds)
        assert said.startswith("in " if i == len(waits) else "ETA ")
        assert "0:00:00" not in said


def test_what_was_done_before_is_no_speed() -> None:
    """A training resumed at step 900 of 1000 would be done in a second."""
    clock = Clock()
    speed = Speed(1000, 900, clock=clock)
    clock.now += 30
    assert (speed.a_second, speed.seconds_left) == (None, None)
    for _ in range(50):
        clock.now += 1
        speed.add()
    assert speed.seconds_left == pytest.approx(50, rel=0.1)


def test_how_times_read() -> None:
    """A minute of 60 seconds looks like a fault."""
    assert [clock_time(s) for s in (0.2, 59.5, 3599.4)] == ["0:00:01", "0:01:00", "1:00:00"]
    assert [time_left(None, 9), time_left(61, 9), time_left(0, 9)] == ["ETA -", "ETA 0:01:01", "in 0:00:09"]


def test_lines_without_a_terminal(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A cluster's log of an hour has to say how long the rest takes; one that hangs, at which source."""
    clock = Clock()
    monkeypatch.setattr(shown_progress.time, "monotonic", clock)
    monkeypatch.setattr(Speed.__init__, "__kwdefaults__", {"clock": clock})
    caplog.set_level(logging.INFO, "monitorbench")
    with progress("data: audit", 40) as ticker:
        for _ in range(40):
            clock.now += 1
            ticker.advance()
    with progress("data: construct", 2) as ticker:
        for what in ("juliet-3of8, gsm8k", ""):
            ticker.doing(what)
            clock.now += 20
            ticker.advance()
    assert caplog.messages == [
        "data: audit: 15/40, ETA 0:00:25",
        "data: audit: 30/40, ETA 0:00:10",
        "data: audit: 40/40, in 0:00:40",
        "data: construct: 1/2, ETA - (juliet-3of8, gsm8k)",
        "data: construct: 2/2, in 0:00:40",
    ]


def test_a_bar_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar that wraps scrolls the screen at every refresh."""
    out = io.StringIO()
    screen: Any = Console(file=out, width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr(shown_progress, "Console", lambda stderr: screen)
    with progress("data: construct candidates", 153581) as ticker:
        ticker.doing("school_of_reward_hacks, cot_transparency")
        ticker.advance(153581)
    lines = [line for line in out.getvalue().replace("\r", "\n").splitlines() if "153581/153581" in line]
    assert lines
    assert "in 0:00:01" in lines[-1]
