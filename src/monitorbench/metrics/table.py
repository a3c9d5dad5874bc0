"""The results table: the one form in which numbers travel from what computes them to what shows them.

A row is a number and its place: metric, monitor, prompt, part of the samples, operating point, split and what
it is set against; the value with its interval, how many samples and groups it is over, and why it is missing
where it is. Stages add rows; page, terminal, CSV, `metrics.json` and W&B look them up.

A *reference* (a baseline such as bag of words) reads no prompt, so it stands beside the monitors of every
prompt. An *adapter* is named `<base>+<what it was trained on>`.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from monitorbench.metrics.columns import OVERALL, WITH_THINKING, WITHOUT_THINKING
from monitorbench.records import Category, Split, Task

NO_PROMPT = "none"
BAG_OF_WORDS = "bag_of_words"
_SHORTCUTS = (BAG_OF_WORDS, "echo", "overlap", "form", "all_shortcuts")

MACRO = "macro:cells"
"""The part whose numbers are means over the `category/task` cells; no cell or slice has this name."""
SHARED = "shared:prompts"
"""The part that a monitor judged under each of several prompts."""
BASE = "base"
"""The monitor that a training began with, which it is set against over the same samples."""
CHANCE = "chance"
"""Guessing, an AUROC of .5, which a training is set against."""


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
    against: str = ""
    """Whom they are set against: `BASE`, `CHANCE`, another prompt or monitor; empty for its own numbers."""


class Row(NamedTuple):
    """One line of the tidy table."""

    metric: str
    monitor: str
    prompt: str
    point: str
    split: str
    part: str
    against: str
    value: float | None
    low: float | None
    high: float | None
    n: int | None
    n_groups: int | None
    missing: str


Answers = tuple[str, str, str, str, str]
"""Monitor, prompt, operating point, split and what they are set against."""
Compared = Mapping[str, Mapping[str, Mapping[str, Numbers]]]
"""Numbers by monitor, prompt and part."""


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
        for (monitor, prompt, point, split, against), parts in self._parts.items():
            for name, numbers in parts.items():
                for of in numbers.values():
                    yield Row(of.metric, monitor, prompt, point, split, name, against, *of[1:])

    def where(self, **fields: str) -> list[Row]:
        """Return the rows whose fields have these values."""
        return [
            row for row in self.rows() if all(getattr(row, name) == value for name, value in fields.items())
        ]

    def judged(self) -> list[tuple[str, str]]:
        """Return each monitor and prompt whose own answers have numbers over all samples."""
        return [
            (monitor, prompt)
            for (monitor, prompt, point, _, against), parts in self._parts.items()
            if not (point or against) and OVERALL in parts
        ]

    def parts(self, monitor: str, prompt: str) -> Mapping[str, Numbers]:
        """Return the numbers of a monitor's own answers by part."""
        return self._parts.get(_answers(Place(monitor, prompt)), {})

    def compared(self, other: str) -> Compared:
        """Return the numbers of all that is set against `other`."""
        found: dict[str, dict[str, Mapping[str, Numbers]]] = {}
        for (monitor, prompt, _, _, against), parts in self._parts.items():
            if against == other:
                found.setdefault(monitor, {})[prompt] = parts
        return found

    def prompts_apart(self, monitor: str, metric: str) -> list[tuple[str, str, Numbers]]:
        """Return each prompt with a metric that is set against another prompt: both, and their numbers."""
        return [
            (prompt, against, parts[SHARED])
            for (name, prompt, _, _, against), parts in self._parts.items()
            if name == monitor and against and metric in parts.get(SHARED, {})
        ]

    def lookup(self, monitor: str, prompt: str, part: str = OVERALL) -> Numbers | None:
        """Return a monitor's numbers in a part; a reference has the same under every prompt."""
        return self.parts(monitor, NO_PROMPT if self.is_reference(monitor) else prompt).get(part)

    def value(self, monitor: str, prompt: str, metric: str, part: str = OVERALL) -> float | None:
        """Return one number of a monitor; None where it is undefined, or not there."""
        numbers = self.lookup(monitor, prompt, part)
        return numbers[metric].value if numbers else None

    def prompts(self) -> list[str]:
        """Return the prompts that monitors were run with; only `none` where there are but references."""
        names = dict.fromkeys(prompt for _, prompt in self.judged())
        return [prompt for prompt in names if prompt != NO_PROMPT] or list(names)

    def prompts_of(self, monitor: str) -> list[str]:
        """Return the prompts that a monitor was run with."""
        return [prompt for name, prompt in self.judged() if name == monitor]

    def prompt_pairs(self, monitor: str) -> list[tuple[str, str]]:
        """Return a monitor's direct prompts, each with its evidence counterpart."""
        names = self.prompts_of(monitor)
        pairs = [(name, name.replace("direct", "evidence")) for name in names if "direct" in name]
        return [pair for pair in pairs if pair[1] in names]

    def is_reference(self, monitor: str) -> bool:
        """Return whether a monitor reads no prompt."""
        return self.prompts_of(monitor) == [NO_PROMPT]

    def monitors(self) -> list[str]:
        """Return the monitors as they are shown: a base before its adapters, references last."""

        def rank(name: str) -> tuple[bool, str, bool]:
            return self.is_reference(name), base_of(name), name != base_of(name)

        return sorted(dict.fromkeys(name for name, _ in self.judged()), key=rank)

    def in_order(self) -> list[tuple[str, str]]:
        """Return each monitor in the order of `monitors`, with each of its prompts."""
        return [(name, prompt) for name in self.monitors() for prompt in self.prompts_of(name)]

    def shown_in(self, cell: str) -> list[str]:
        """Return whose numbers are shown in a cell: but overall, of the baselines those that see a text."""
        names = self.monitors()
        if cell == OVERALL:
            return names
        return [name for name in names if name in _SHORTCUTS or not self.is_reference(name)]

    def drawn_in(self) -> list[str]:
        """Return whom figures of their own, or curves, are drawn of: bag of words is baseline enough."""
        return [name for name in self.monitors() if name == BAG_OF_WORDS or not self.is_reference(name)]

    def parts_under(self, prompt: str) -> set[str]:
        """Return the parts that some monitor has numbers for, under a prompt."""
        return {name for of in self.judged() if of[1] == prompt for name in self.parts(*of)}

    def cells_under(self, prompt: str) -> list[str]:
        """Return the cells that some monitor has numbers for, under a prompt."""
        return ordered_cells({name for name in self.parts_under(prompt) if is_cell(name)})

    def slices_under(self, prompt: str) -> list[str]:
        """Return the slices but strata that some monitor has numbers for, under a prompt."""
        parts = self.parts_under(prompt)
        return ordered_cells({name for name in parts if is_slice(name) and not is_stratum(name)})

    def inner_cells(self, cell: str) -> list[str]:
        """Return the `category/task` cells of the test split inside a cell."""
        names = {name for judged in self.judged() for name in self.parts(*judged) if is_cell(name)}
        return [
            name
            for name in ordered_cells(names)
            if "/" in name and (cell in (OVERALL, name) or name.startswith(f"{cell}/"))
        ]


def _answers(place: Place) -> Answers:
    return place.monitor, place.prompt, place.point, place.split, place.against


def is_slice(part: str) -> bool:
    """Return whether a part cuts across the cells, or is a stratum of one."""
    return (":" in part and part not in (MACRO, SHARED)) or part in (WITH_THINKING, WITHOUT_THINKING)


def is_cell(part: str) -> bool:
    """Return whether a part is `overall`, a category or a `category/task`."""
    return ":" not in part and not is_slice(part)


def is_stratum(part: str) -> bool:
    """Return whether a part is a stratum of a cell."""
    return "/" in part.partition(":")[0] and ":" in part


def base_of(monitor: str) -> str:
    """The model below an adapter; the name itself where there is no adapter."""
    return monitor.partition("+")[0] or monitor


def ordered_cells(names: set[str]) -> list[str]:
    """`overall`, each category before its tasks, slices by task and trace; other names last.

    The paper's categories and tasks come in their order, then a team's own by name.
    """
    return sorted(names, key=place_of)


def _rank(kind: type[StrEnum], name: str) -> tuple[int, str]:
    members = list(kind)
    return (members.index(kind(name)) if name in members else len(members), name)


def place_of(name: str) -> tuple[int, tuple[int, str], bool, tuple[int, str]]:
    """Return the key that puts parts in the order of `ordered_cells`."""
    nowhere = (0, "")
    if name == OVERALL:
        return 0, nowhere, False, nowhere
    if name.startswith("task:"):
        return 2, nowhere, False, _rank(Task, name.removeprefix("task:"))
    if name in (WITHOUT_THINKING, WITH_THINKING):
        return 3, (int(name == WITH_THINKING), ""), False, nowhere
    if ":" in name or name in ("trained", "held_out"):
        return 4, (0, name), False, nowhere
    category, slash, task = name.partition("/")
    return 1, _rank(Category, category), bool(slash), _rank(Task, task)
