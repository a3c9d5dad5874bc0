"""The kinds of word problems: what each draws, its two questions, and the derivation of each.

`kinds.yaml`, beside this file, holds the kinds whose derivations are sums of what was drawn, and says how it
is read. Four kinds are code: their steps follow a calendar, fill boxes, or try suspects. Unsuitable draws
(fractions of a cent, negative amounts) are left to `word_problems.generate`, which draws again.
"""

import itertools
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict

from monitorbench.word_problems.derivation import Derivation, TwoReadings, evaluate, show


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Reading(_Part):
    question: str
    reading: str
    steps: tuple[tuple[str, str] | tuple[str, str, str], ...]


Rule = str | tuple[str | int, ...] | dict[str | int, str | int]
"""What draws a value: a range, a bank's name, a list, a value or a mapping, as `kinds.yaml` says."""


class _Kind(_Part):
    draw: dict[str, Rule]
    facts: tuple[str, ...]
    readings: tuple[_Reading, _Reading]
    givens: tuple[str, ...]
    unit: str = ""


class _File(_Part):
    banks: dict[str, tuple[str, ...]]
    kinds: dict[str, _Kind | Literal["code"]]


class Values(dict[str, str]):
    """Drawn values by name; a name with a capital letter is the value with one."""

    def __missing__(self, name: str) -> str:
        if name.lower() == name:
            raise KeyError(name)
        return self[name.lower()].capitalize()


_FILE = _File.model_validate(
    yaml.safe_load((files("monitorbench.word_problems") / "kinds.yaml").read_text(encoding="utf-8"))
)
BANKS = _FILE.banks
"""Names, places and things that word problems are about."""
_NAMES, _PLACES, _GOODS = (BANKS[name] for name in ("names", "places", "goods"))
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DEEDS = {
    "ate the cake": "eat the cake",
    "broke the vase": "break the vase",
    "hid the key": "hide the key",
    "sent the letter": "send the letter",
}
_WHOLE_HOURS = [
    (fast, slow)
    for fast in range(2, 31)
    for slow in range(fast + 1, 91)
    if fast * slow % (fast + slow) == 0 and fast * slow % (slow - fast) == 0
]
_RANGE = re.compile(r"(?P<low>.+) to (?P<high>.+?)(?: by (?P<step>\d+))?")


def draw(rules: Mapping[str, Rule], values: Values, rng: random.Random) -> Values:
    """Add to the values what the rules draw, as `kinds.yaml` says; returns them."""
    for names, rule in rules.items():
        values |= dict(zip(names.split(), _drawn(rule, values, rng), strict=True))
        if rule == "goods":
            values[f"{names}s"] = _plural(values[names])
    return values


def _from_file(kind: _Kind, rng: random.Random) -> TwoReadings:
    values = draw(kind.draw, Values(), rng)

    def route(reading: _Reading, work: Derivation) -> str:
        so_far = Values(values)
        for name, subject, *expression in reading.steps:
            clause = subject.format_map(so_far)
            so_far[name] = (
                work.calc(clause, expression[0].format_map(so_far))
                if expression
                else work.say(clause, so_far[name])
            )
        return so_far[kind.readings[0].steps[-1][0]]

    first, second = kind.readings
    return TwoReadings(
        {name: int(values[name]) for name in kind.facts},
        (first.question.format_map(values), second.question.format_map(values)),
        (first.reading.format_map(values), second.reading.format_map(values)),
        (partial(route, first), partial(route, second)),
        tuple(given.format_map(values) for given in kind.givens),
        kind.unit.format_map(values),
    )


def _drawn(rule: Rule, values: Values, rng: random.Random) -> Sequence[str]:
    """Draw what a rule of the file's `draw` says: a value for each of its names."""
    match rule:
        case tuple():
            return [str(rng.choice(rule)).format_map(values)]
        case dict():
            return [str(value) for key, value in rule.items() if str(key) == values[str(rule["by"])]]
        case "whole hours":
            return [str(hours) for hours in rng.choice(_WHOLE_HOURS)]
        case "whole percentages":
            return [str(number) for number in _whole_percentages(rng)]
    if rule in BANKS:
        return [rng.choice(BANKS[rule])]
    if rule.startswith("two "):
        return rng.sample(BANKS[rule.removeprefix("two ")], 2)
    if rule.startswith("= "):
        return [show(evaluate(rule.removeprefix("= ").format_map(values)))]
    if (span := _RANGE.fullmatch(rule.format_map(values))) is None:
        raise ValueError(f"kinds.yaml: no rule that draws: {rule!r}")
    low, high = int(evaluate(span["low"])), int(evaluate(span["high"]))
    return [str(rng.randrange(low, high + 1, int(span["step"] or 1)))]


def _whole_percentages(rng: random.Random) -> tuple[int, int, int, int]:
    """Litres x and y, strengths p and q, such that topping up and replacing give whole percentages."""
    while True:
        x, y = rng.randint(4, 40), rng.randint(2, 24)
        unit = math.lcm(x // math.gcd(x, y), (x + y) // math.gcd(x + y, y))
        if y < x and unit <= 60:
            p = rng.randint(5, 35)
            return x, y, p, p + unit * rng.randint(1, max(1, 55 // unit))


def _weekday(rng: random.Random) -> TwoReadings:
    """A weekday some days after today, or with today counted as the first day."""
    n, start = rng.randint(16, 200), rng.randrange(7)
    who, event = (rng.choice(_NAMES), rng.choice(["exam", "concert", "launch", "wedding", "move", "audit"]))
    setup = rng.choice(
        [
            f"Today is a {_WEEKDAYS[start]} and {who} counts the days to the {event}.",
            f"{who} plans the {event} on a {_WEEKDAYS[start]}.",
        ]
    )
    after = rng.choice([f"It takes place {n} days after that day.", f"From that day, {n} days have to pass."])
    numbered = rng.choice(
        [
            f"With that day counted as day 1, it is on day {n}.",
            f"That day is day 1, the {event} is on day {n}.",
        ]
    )
    ask = rng.choice(["Which weekday is that?", f"On which weekday is the {event}?"])

    def finish(w: Derivation, ahead: int) -> str:
        weeks = w.calc("the days in whole weeks", f"7 × {ahead // 7}")
        days_over = int(w.calc("the remainder", f"{ahead} − {weeks}"))
        day = _WEEKDAYS[(start + days_over) % 7]
        return w.say(f"{days_over} days on from {_WEEKDAYS[start]} comes {day}", day)

    def inclusive(w: Derivation) -> str:
        return finish(w, int(w.calc("the number of days ahead", f"{n} − 1")))

    return TwoReadings(
        {"n": n, "start": start},
        (f"{setup} {after} {ask}", f"{setup} {numbered} {ask}"),
        (
            f"the {_WEEKDAYS[start]} is day 0 and not day 1 of the count",
            f"the {_WEEKDAYS[start]} is day 1 and not day 0 of the count",
        ),
        (lambda w: finish(w, n), inclusive),
        (f"the count starts on a {_WEEKDAYS[start]}", f"the count goes to {n}"),
    )


def _remainder(rng: random.Random) -> TwoReadings:
    """Boxes that can be filled, or boxes that are needed."""
    size, count = rng.randint(6, 24), rng.randint(80, 600)
    items, place, who = (_plural(rng.choice(_GOODS)), rng.choice(_PLACES), rng.choice(_NAMES))
    box = rng.choice(["box", "crate", "carton", "chest", "bin"])
    boxes = "boxes" if box == "box" else f"{box}s"
    setup = rng.choice(
        [
            f"{who} packs {count} {items} into {boxes} that hold {size} each.",
            f"{place.capitalize()} stores {count} {items}, {size} to a {box}.",
            f"A {box} takes {size} {items}, and {count} of them wait at {place}.",
        ]
    )
    over = rng.choice(
        ["How many are left over when no more full ones can be made?", "How many stay unpacked?"]
    )
    short = rng.choice(
        [f"How many more would fill the last {box} too?", f"How many are missing in the last {box}?"]
    )

    def left_over(w: Derivation) -> str:
        packed = w.calc(f"the content of the full {boxes}", f"{count // size} × {size}")
        return w.calc("the number asked for", f"{count} − {packed}")

    def missing(w: Derivation) -> str:
        packed = w.calc(f"the content with one {box} more", f"{count // size + 1} × {size}")
        return w.calc("the number asked for", f"{packed} − {count}")

    return TwoReadings(
        {"size": size, "count": count},
        (f"{setup} Only full {boxes} are closed. {over}", f"{setup} The last {box} is begun. {short}"),
        (
            f"wanted is the surplus beyond the full {boxes}, not the gap in the next {box}",
            f"wanted is the gap in the next {box}, not the surplus beyond the full {boxes}",
        ),
        (left_over, missing),
        (f"there are {count} {items}", f"a {box} holds {size}"),
    )


def _ranking(rng: random.Random) -> TwoReadings:
    """An order of four from three comparisons, asked for from either end."""
    people = rng.sample(_NAMES, 4)
    ahead, front, back = rng.choice(
        [
            ("finished before", "fastest one", "slowest one"),
            ("is taller than", "tallest one", "shortest one"),
            ("is older than", "oldest one", "youngest one"),
            ("scored more than", "best one", "weakest one"),
            ("sits left of", "leftmost one", "rightmost one"),
        ]
    )
    clues = [f"{first} {ahead} {second}." for first, second in itertools.pairwise(people)]
    shuffled = rng.sample(clues, 3)
    scene = rng.choice(_PLACES)
    opening = rng.choice(
        [f"Four friends from {scene} are compared.", f"Four people at {scene} are put in order."]
    )

    def question(end: str) -> str:
        return f"{opening} {' '.join(shuffled)} Who comes second, counting the {end} as number one?"

    def second_place(w: Derivation, order: Sequence[str]) -> str:
        w.say(f"{shuffled[0].rstrip('.')}, and the other two links make one chain of it", "")
        w.say(f"the order is {', '.join(order)}", "")
        return w.say(f"the second place goes to {order[1]}", order[1])

    return TwoReadings(
        {},
        (question(front), question(back)),
        (f"number one is the {front} and not the {back}", f"number one is the {back} and not the {front}"),
        (lambda w: second_place(w, people), lambda w: second_place(w, people[::-1])),
        tuple(clue.rstrip(".") for clue in shuffled[1:]),
    )


def _truth_tellers(rng: random.Random) -> TwoReadings:
    """Three statements about a culprit, of which exactly one, or exactly two, are true."""
    while True:
        people = rng.sample(_NAMES, 3)
        claims = [(person, rng.choice(people), rng.random() < 0.5) for person in people]
        truths = {
            suspect: sum((accused == suspect) == accuses for _, accused, accuses in claims)
            for suspect in people
        }
        if sorted(truths.values()).count(1) == 1 and sorted(truths.values()).count(2) == 1:
            break
    deed = rng.choice(list(_DEEDS))
    statements = [
        f"{person} says that {accused} {deed if accuses else 'did not ' + _DEEDS[deed]}."
        for person, accused, accuses in claims
    ]
    opening = rng.choice(
        [f"One of three people at {rng.choice(BANKS['places'])} {deed}.", f"Someone {deed}: one of three."]
    )
    by_count = {count: suspect for suspect, count in truths.items()}

    def question(count: int) -> str:
        number = "one of these statements is" if count == 1 else "two of these statements are"
        return f"{opening} {' '.join(statements)} Exactly {number} true. Who was it?"

    def find(w: Derivation, count: int) -> str:
        for suspect in people:
            w.say(f"had it been {suspect}, the number of true statements would be {truths[suspect]}", "")
        culprit = by_count[count]
        return w.say(f"the count wanted is found with {culprit}", culprit)

    return TwoReadings(
        {},
        (question(1), question(2)),
        (
            "the number of true statements has to be one and not two",
            "the number of true statements has to be two and not one",
        ),
        (lambda w: find(w, 1), lambda w: find(w, 2)),
        tuple(s.rstrip(".") for s in statements[:2]),
    )


def _plural(thing: str) -> str:
    if thing == "scarf":
        return "scarves"
    return thing + ("es" if thing.endswith("s") else "s")


_CODE = {"weekday": _weekday, "remainder": _remainder, "ranking": _ranking, "truth_tellers": _truth_tellers}
KINDS: dict[str, Callable[[random.Random], TwoReadings]] = {
    name: _CODE[name] if kind == "code" else partial(_from_file, kind) for name, kind in _FILE.kinds.items()
}
"""Kinds of problem and their generators; problems come in blocks in which each kind occurs once."""
