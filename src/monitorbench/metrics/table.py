"""The results table: the one form in which numbers travel from what computes them to what shows them.

A row is a number and its place: metric, monitor, prompt, part of the samples, operating point and split; the
value with its interval, how many samples and groups it is over, and why it is missing where it is. Stages add
rows; page, terminal, CSV, `metrics.json` and W&B look them up.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from monitorbench.metrics.columns import OVERALL, WITH_THINKING, WITHOUT_THINKING
from monitorbench.records import Split

MACRO = "macro:cells"
"""The part whose numbers are means over the `category/task` cells; no cell or slice has this name."""
SHARED = "shared:prompts"
"""The part that a monitor judged under each of several prompts."""


class Number(NamedTuple):
    """A metric's value in one place, with what a reader has to know of it."""

    metric: str
    value: float | None
    low: float | None = None
    """The interval's ends, both or none."""
    high: float | None = None
    n: int | None = None
    """Samples, pairs or quotes that it is over; None of what is a count itself."""
    n_groups: int | None = None
    """Groups (questions) in the part."""
    missing: str = ""
    """Why there is no value."""

    @property
    def interval(self) -> list[float] | None:
        """The interval as JSON has it."""
        return None if self.low is None or self.high is None else [self.low, self.high]

    @property
    def whole(self) -> int:
        """The value of a count."""
        return int(self.value or 0)


Numbers = Mapping[str, Number]
"""All numbers of one place, by metric."""


class Place(NamedTuple):
    """Which answers a number is of."""

    monitor: str
    prompt: str
    part: str = OVERALL
    """A cell, a slice, `MACRO` or `SHARED`."""
    point: str = ""
    """Name of the operating point; empty for the judge's own answers."""
    split: str = Split.TEST.value


class Row(NamedTuple):
    """One line of the tidy table."""

    metric: str
    monitor: str
    prompt: str
    point: str
    split: str
    part: str
    value: float | None
    low: float | None
    high: float | None
    n: int | None
    n_groups: int | None
    missing: str


Answers = tuple[str, str, str, str]
"""Monitor, prompt, operating point and split."""


class Table:
    """Numbers by their place, in the order in which they were added."""

    def __init__(self) -> None:
        self._parts: dict[Answers, dict[str, dict[str, Number]]] = {}

    def add(self, place: Place, numbers: Numbers) -> None:
        """Add the numbers of a place to those that are there."""
        self._parts.setdefault(_answers(place), {}).setdefault(place.part, {}).update(numbers)

    def update(self, other: "Table") -> None:
        """Add all numbers of another table."""
        for answers, parts in other._parts.items():
            self._parts.setdefault(answers, {}).update(parts)

    def numbers(self, place: Place) -> Numbers | None:
        """Return the numbers of one place by metric; None where there are none."""
        return self._parts.get(_answers(place), {}).get(place.part)

    def rows(self) -> Iterator[Row]:
        """Yield every number as a line of the tidy table."""
        for (monitor, prompt, point, split), parts in self._parts.items():
            for name, numbers in parts.items():
                for of in numbers.values():
                    yield Row(of.metric, monitor, prompt, point, split, name, *of[1:])

    def where(self, **fields: str) -> list[Row]:
        """Return the rows whose fields have these values."""
        return [
            row for row in self.rows() if all(getattr(row, name) == value for name, value in fields.items())
        ]

    def judged(self) -> list[tuple[str, str]]:
        """Return each monitor and prompt whose own answers have numbers over all samples."""
        return [
            (monitor, prompt)
            for (monitor, prompt, point, _), parts in self._parts.items()
            if not point and OVERALL in parts
        ]

    def parts(self, monitor: str, prompt: str) -> Mapping[str, Numbers]:
        """Return the numbers of a monitor's own answers by part."""
        return self._parts.get((monitor, prompt, "", Split.TEST.value), {})


def _answers(place: Place) -> Answers:
    return place.monitor, place.prompt, place.point, place.split


def is_slice(part: str) -> bool:
    """Return whether a part cuts across the cells, or is a stratum of one."""
    return (":" in part and part not in (MACRO, SHARED)) or part in (WITH_THINKING, WITHOUT_THINKING)


def is_cell(part: str) -> bool:
    """Return whether a part is `overall`, a category or a `category/task`."""
    return ":" not in part and not is_slice(part)
