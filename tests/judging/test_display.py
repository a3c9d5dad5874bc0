"""The numbers of an evaluation while it runs, and how they look."""

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_verdicts import made_verdict
from rich.console import Console

from monitorbench.judging import display as shown_while_judging
from monitorbench.judging.display import JudgingNumbers, VerdictCounter, judging, shown
from monitorbench.metrics import rates
from monitorbench.metrics.columns import columns
from monitorbench.records import Category, Label, Task
from monitorbench.runs import progress as shown_progress
from monitorbench.runs.keyed_log import open_verdict_log
from monitorbench.runs.tracking import Track


class Clock:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


ANSWERS = st.lists(
    st.tuples(st.sampled_from(Label), st.sampled_from([*Label, None]), st.sampled_from([0.0, 0.25, 1.5])),
    max_size=60,
)
"""(true label, answer, cost)."""


@given(ANSWERS, st.integers(0, 60))
def test_running_rates_are_the_metrics(rows: list[tuple[Label, Label | None, float]], n_reused: int) -> None:
    """What one watched for an hour and what `score.py` then says of the same verdicts have to agree."""
    verdicts = [(label, made_verdict(answer, cost=cost)) for label, answer, cost in rows]
    counts = VerdictCounter(len(rows), verdicts[:n_reused], priced=True)
    for label, one in verdicts[n_reused:]:
        counts.add(label, one)
    held = columns(
        [
            rates.Judged(str(i), "", "", Category.SYCOPHANCY_BIAS, Task.QA, label, answer, None)
            for i, (label, answer, _) in enumerate(rows)
        ]
    )
    expected = rates.count(held.is_misbehavior, held.flagged)
    numbers = counts.numbers()
    assert numbers.miss_rate == rates.miss_rate(expected)
    assert numbers.false_alarm_rate == rates.false_alarm_rate(expected)
    assert (numbers.n_unscored, numbers.done) == (expected.n_unscored, expected.n)
    assert numbers.cost == sum(cost for _, _, cost in rows)
    assert counts.n_reused == min(n_reused, len(rows))


@given(st.lists(st.floats(0.001, 40), min_size=1, max_size=400))
def test_speed_is_that_of_the_recent_window(waits: list[float]) -> None:
    """An endpoint that slowed down would still promise the end at its first minute's speed."""
    clock = Clock()
    counts = VerdictCounter(1000, clock=clock)
    times = [clock.now]
    for wait in waits:
        clock.now += wait
        times.append(clock.now)
        counts.add(Label.BENIGN, made_verdict(Label.BENIGN))
    speed = counts.numbers().verdicts_per_second
    assert speed is not None
    # The window begins at one of the verdicts' times, at most half a second from where it should.
    began = [i for i, t in enumerate(times[:-1]) if abs((len(waits) - i) / (clock.now - t) - speed) < 1e-9]
    assert began
    recent = [i for i in began if i == 0 or clock.now - times[i] >= 29.5 - 0.5]
    assert recent
    # Nothing that the next mark after it would have covered as well is dragged along.
    after = [t for t in times if t >= times[max(recent)] + 0.5]
    assert not after or clock.now - after[0] <= 30 + 0.5 + 40


def test_reused_verdicts_are_no_speed() -> None:
    """A resumed run would promise to be done at once."""
    clock = Clock()
    counts = VerdictCounter(100, [(Label.BENIGN, made_verdict(Label.BENIGN))] * 80, clock=clock)
    clock.now += 2
    assert counts.numbers().verdicts_per_second is None
    assert counts.numbers().eta_seconds is None
    for _ in range(4):
        counts.add(Label.BENIGN, made_verdict(Label.BENIGN))
    numbers = counts.numbers()
    assert (numbers.done, numbers.verdicts_per_second, numbers.eta_seconds) == (84, 2.0, None)  # too early
    clock.now += 6
    for _ in range(4):
        counts.add(Label.BENIGN, made_verdict(Label.BENIGN))
    numbers = counts.numbers()
    assert (numbers.done, numbers.verdicts_per_second, numbers.eta_seconds) == (88, 1.0, 12.0)


def test_slowing_down_shows() -> None:
    """1000 verdicts in the first 10 s, then one a second: after two minutes it is one a second."""
    clock = Clock()
    counts = VerdictCounter(2000, clock=clock)
    for _ in range(1000):
        clock.now += 0.01
        counts.add(Label.BENIGN, made_verdict(Label.BENIGN))
    assert counts.numbers().verdicts_per_second == pytest.approx(100)
    for _ in range(120):
        clock.now += 1
        counts.add(Label.BENIGN, made_verdict(Label.BENIGN))
    assert counts.numbers().verdicts_per_second == pytest.approx(1)
    clock.now += 270
    assert counts.numbers().verdicts_per_second == pytest.approx(0.1)  # stalled: it falls without verdicts


def test_cost_only_where_there_are_prices() -> None:
    """`cost 0.0000` would say that an endpoint without prices is free."""
    assert "cost" not in " ".join(shown(VerdictCounter(3).numbers()))
    assert "cost 0.0000" in shown(VerdictCounter(3, priced=True).numbers())


@pytest.mark.parametrize(
    "numbers",
    [
        JudgingNumbers(0, 2, None, None, None, 0, None, None, 0.0),
        JudgingNumbers(118, 300, 9.81, 0.412, 0.083, 3, 0.0123, 18.6, 12.0),
        JudgingNumbers(153581, 153581, 99.96, 1.0, 1.0, 12345, 9999.99, 35999.7, 1.0),
    ],
)
def test_a_line_fits_a_terminal(numbers: JudgingNumbers) -> None:
    """The time left would fall off the end of an 80-column terminal first."""
    line = " ".join(shown(numbers))
    assert len(line) <= 78
    assert line.isascii()
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system=None)
    bar = shown_progress.numbers_bar(lambda: shown(numbers), numbers.total, numbers.done, console)
    console.print(bar.get_renderable())
    (drawn,) = out.getvalue().splitlines()
    assert drawn.endswith(line)
    assert len(drawn) <= 80


def test_how_numbers_read() -> None:
    """Read by people over hours; a rounded minute of 60 seconds looks like a fault."""
    assert " ".join(shown(JudgingNumbers(118, 300, 9.81, 0.412, 0.0826, 3, 0.01234, 18.6, 12.0))) == (
        "118/300 9.8/s MR 0.412 FAR 0.083 3 unscored cost 0.0123 ETA 0:00:19"
    )
    assert shown(JudgingNumbers(1, 9, 250.4, None, None, 0, 12.345, 3599.7, 1.0))[1:] == [
        "250/s", "MR -", "FAR -", "0 unscored", "cost 12.35", "ETA 1:00:00",
    ]  # fmt: skip


class Recorder(Track):
    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[int, dict[str, Any]]] = []

    def log(self, numbers: Any, step: int) -> None:
        self.rows.append((step, dict(numbers)))


def run_judging(tmp_path: Path, make_sample: Any, clock: Clock, fail: bool = False) -> Recorder:
    """60 samples, 20 of them in the log already, one a second; every third answer is a miss or alarm."""
    samples = [make_sample(response=f"r{i}", label=list(Label)[i % 2]) for i in range(60)]
    keys = [f"k{i}" for i in range(60)]
    answers = [list(Label)[(i + (i % 3 == 0)) % 2] for i in range(60)]
    track = Recorder()
    with open_verdict_log(tmp_path / "verdicts.jsonl") as log:
        for key, answer in list(zip(keys, answers, strict=True))[:20]:
            log.append(made_verdict(answer, key=key))
        with judging("monitor, direct", samples, keys, log, track) as display:
            for sample, key, answer in list(zip(samples, keys, answers, strict=True))[20:]:
                clock.now += 1
                display.add(sample.label, made_verdict(answer, key=key))
                if fail and key == "k29":
                    raise KeyboardInterrupt
    return track


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    ticking = Clock()
    monkeypatch.setattr(shown_while_judging.time, "monotonic", ticking)
    monkeypatch.setattr(VerdictCounter.__init__, "__kwdefaults__", {"priced": False, "clock": ticking})
    return ticking


def test_lines_where_there_is_no_terminal(
    tmp_path: Path, make_sample: Any, clock: Clock, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    """A cluster's log file of control characters can't be read, and one line a verdict buries the rest."""
    caplog.set_level(logging.INFO, "monitorbench")
    run_judging(tmp_path, make_sample, clock)
    assert caplog.messages == [
        "monitor, direct: 35/60, 1.0/s, MR 0.333, FAR 0.353, 0 unscored, ETA 0:00:25",
        "monitor, direct: 50/60, 1.0/s, MR 0.360, FAR 0.320, 0 unscored, ETA 0:00:10",
        "monitor, direct: 60/60, 1.0/s, MR 0.333, FAR 0.333, 0 unscored, in 0:00:40",
    ]
    assert "".join(capfd.readouterr()) == ""


def test_tracked_numbers_are_those_shown(tmp_path: Path, make_sample: Any, clock: Clock) -> None:
    """W&B's curve would end before the last verdict, or say something else than the terminal."""
    rows = run_judging(tmp_path, make_sample, clock).rows
    assert [step for step, _ in rows] == [*range(22, 61, 2), 60]
    assert rows[-1][1] == {
        "done": 60,
        "total": 60,
        "verdicts_per_second": 1.0,
        "miss_rate": pytest.approx(1 / 3),
        "false_alarm_rate": pytest.approx(1 / 3),
        "n_unscored": 0,
        "cost": None,
        "eta_seconds": 0.0,
        "seconds": 40.0,
    }
    json.dumps(rows)


def test_interrupted_run_says_how_far_it_was(
    tmp_path: Path, make_sample: Any, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """After Ctrl-C one wants to know what is owed."""
    caplog.set_level(logging.INFO, "monitorbench")
    with pytest.raises(KeyboardInterrupt):
        run_judging(tmp_path, make_sample, clock, fail=True)
    assert "30/60" in caplog.messages[-1]


def test_in_a_terminal_a_bar(
    tmp_path: Path, make_sample: Any, clock: Clock, caplog: pytest.LogCaptureFixture, monkeypatch: Any
) -> None:
    """The last state stays on the screen, with all numbers on one line."""
    caplog.set_level(logging.INFO, "monitorbench")
    out = io.StringIO()
    screen = Console(file=out, width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr(shown_progress, "Console", lambda stderr: screen)
    run_judging(tmp_path, make_sample, clock)
    drawn = out.getvalue()
    assert "━ 60/60 1.0/s MR 0.333 FAR 0.333 0 unscored in 0:00:40" in drawn
    assert not caplog.messages  # no plain lines besides
