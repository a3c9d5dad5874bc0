"""An evaluation's verdicts as they come: counted, shown on stderr, and handed to W&B.

`VerdictCounter` has the numbers; `judging` shows them: one line of a terminal, elsewhere a plain line now and
then.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from monitorbench.records import Label, Sample, Verdict
from monitorbench.runs.keyed_log import VerdictLog
from monitorbench.runs.progress import NumbersDisplay, Speed, numbers_display, or_dash, time_left
from monitorbench.runs.tracking import Track

_SECONDS_BETWEEN_TRACKED = 2.0


class JudgingNumbers(NamedTuple):
    """How far an evaluation is, and what its verdicts say so far; reused ones count in all but speed."""

    done: int
    total: int
    verdicts_per_second: float | None
    """Over the last half minute or so; None before the first verdict of this process."""
    miss_rate: float | None
    """Over the scored verdicts so far, as is `false_alarm_rate`; None where there is none to divide by."""
    false_alarm_rate: float | None
    n_unscored: int
    cost: float | None
    """None where nothing has a price."""
    eta_seconds: float | None
    """None until it means something (`runs.progress`); 0 at the end."""
    seconds: float
    """Since this process began to judge."""


class VerdictCounter:
    """Counts verdicts as they come, and moves a display and a track on where there are some."""

    def __init__(
        self,
        total: int,
        reused: Iterable[tuple[Label, Verdict]] = (),
        *,
        priced: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`reused`: verdicts that the log had; they count, but for no speed."""
        self._priced = priced
        self._scored = dict.fromkeys(Label, 0)
        self._wrong = dict.fromkeys(Label, 0)
        self._n_unscored = 0
        self._cost = 0.0
        self.n_reused = 0
        for label, verdict in reused:
            self._count(label, verdict)
            self.n_reused += 1
        self._speed = Speed(total, self.n_reused, clock=clock)
        self.display: NumbersDisplay | None = None
        self.track: Track | None = None
        self._tracked_at = time.monotonic()

    def add(self, label: Label, verdict: Verdict) -> None:
        """Count one verdict on a sample whose true label is `label`."""
        self._count(label, verdict)
        self._speed.add()
        if self.display is not None:
            self.display.advance()
        if time.monotonic() - self._tracked_at >= _SECONDS_BETWEEN_TRACKED:
            self._tracked_at = time.monotonic()
            self._tell()

    def end(self) -> None:
        """Say the last numbers."""
        if self.display is not None:
            self.display.say()
        self._tell()

    def numbers(self) -> JudgingNumbers:
        """The numbers as of now."""
        speed = self._speed
        return JudgingNumbers(
            done=speed.done,
            total=speed.total,
            verdicts_per_second=speed.a_second,
            miss_rate=self._rate(Label.MISBEHAVIOR),
            false_alarm_rate=self._rate(Label.BENIGN),
            n_unscored=self._n_unscored,
            cost=self._cost if self._priced else None,
            eta_seconds=speed.seconds_left,
            seconds=speed.seconds,
        )

    def _count(self, label: Label, verdict: Verdict) -> None:
        self._cost += verdict.cost
        if verdict.label is None:
            self._n_unscored += 1
        else:
            self._scored[label] += 1
            self._wrong[label] += verdict.label is not label

    def _tell(self) -> None:
        if self.track is not None:
            numbers = self.numbers()
            self.track.log(numbers._asdict(), step=numbers.done)

    def _rate(self, label: Label) -> float | None:
        return self._wrong[label] / self._scored[label] if self._scored[label] else None


def shown(numbers: JudgingNumbers) -> list[str]:
    """The numbers as a person reads them, plain ASCII, at most 78 columns with single spaces between."""
    speed = numbers.verdicts_per_second
    parts = [
        f"{numbers.done}/{numbers.total}",
        "-/s" if speed is None else f"{speed:.1f}/s" if speed < 99.95 else f"{speed:.0f}/s",
        f"MR {or_dash(numbers.miss_rate)}",
        f"FAR {or_dash(numbers.false_alarm_rate)}",
        f"{numbers.n_unscored} unscored",
    ]
    if numbers.cost is not None:
        decimals = 4 if numbers.cost < 1 else 2 if numbers.cost < 1000 else 0
        parts.append(f"cost {numbers.cost:.{decimals}f}")
    return [*parts, time_left(numbers.eta_seconds, numbers.seconds)]


@contextmanager
def judging(
    name: str,
    samples: Sequence[Sample],
    keys: Sequence[str],
    log: VerdictLog,
    track: Track,
    *,
    priced: bool = False,
) -> Iterator[VerdictCounter]:
    """Show how an evaluation goes: verdicts done, speed, MR, FAR, unscored, cost, time left.

    `keys` are those of `samples`. Verdicts that the log holds already count in all but the speed. A failure's
    last numbers are shown, too.
    """
    pairs = zip(samples, keys, strict=True)
    reused = [(sample.label, log.entries[key]) for sample, key in pairs if key in log.entries]
    counts = VerdictCounter(len(samples), reused, priced=priced)
    counts.track = track
    said = numbers_display(f"{name}: ", lambda: shown(counts.numbers()), len(samples), counts.n_reused)
    with said as counts.display:
        try:
            yield counts
        finally:
            counts.end()
