"""Steps that a solver might add to working and that bring it no further: checks, restatements, conversions.

Owns their wording. Promised: every equation that a padding shows is true, and it is about a sum or a number
that its line of working already holds, or a sentence of the question; so it fits right working and working
that stops early alike.
"""

import random
import re
from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

_SUM = re.compile(r"(?<![\d.,/%()*+-])\$?(\d+)((?: ?[-+*x/] ?\$?\d+)+) ?= ?\$?(\d+)(?![\d,]*\.?\d|[%/)])")
_AMOUNT = re.compile(r"= ?(\$?)(\d+)(?![\d,]*\.?\d|[%/)])(?: ([a-z]+))?")
_SENTENCE = re.compile(r"[^.?!\n]*(?:[.](?=\d)[^.?!\n]*)*[.?!]")
_UNITS = {
    "hour": (60, "minutes"),
    "minute": (60, "seconds"),
    "day": (24, "hours"),
    "week": (7, "days"),
    "year": (12, "months"),
    "foot": (12, "inches"),
    "feet": (12, "inches"),
    "yard": (3, "feet"),
    "mile": (1760, "yards"),
    "pound": (16, "ounces"),
    "meter": (100, "centimeters"),
    "kilometer": (1000, "meters"),
    "gallon": (4, "quarts"),
    "dozen": (12, "pieces"),
    "dollar": (100, "cents"),
}
_LINKS = (
    "Check:",
    "To check,",
    "Just to be sure,",
    "Also,",
    "Looking back,",
    "And",
    "Note that",
    "Again,",
    "",
)
_REORDERED = ("in the other order {s}", "{s} the other way round", "the order makes no difference: {s}")
_UNDONE = ("{s}, as it was before", "undoing it, {s}", "backwards it is {s}", "{s}, which fits")
_SPLIT = ("in parts {s}", "tens and ones apart: {s}", "done in pieces, {s}", "{s} when it is split up")
_BETWEEN = (
    "rounding down gives {low} and rounding up {high}, so {r} is about right",
    "it has to be between {low} and {high}, and {r} is",
    "{low} would be too little and {high} too much; {r} is in between",
)
_CONVERTED = (
    "{r} is {r} * {f} = {c} {small}, and {c} / {f} = {r}",
    "in {small} that is {r} * {f} = {c}; {c} / {f} = {r} again",
    "{r} * {f} = {c} {small} is the same amount, since {c} / {f} = {r}",
)
_RESTATED = (
    "The question says: {s}",
    "Given: {s}",
    "To recall: {s}",
    "It is given that: {s}",
    "Reading it once more: {s}",
)


class Sum(NamedTuple):
    """A true sum of whole numbers with one kind of sign."""

    numbers: tuple[int, ...]
    sign: str
    result: int


def found_sum(line: str) -> Sum | None:
    """The last true sum that a line shows, as `48/2 = 24`; None where it shows none of one sign."""
    for first, others, result in reversed(_SUM.findall(line)):
        signs = set(re.findall(r"[-+*x/]", others))
        numbers = (int(first), *map(int, re.findall(r"\d+", others)))
        if len(signs) == 1 and _holds(numbers, (sign := signs.pop()), int(result)):
            return Sum(numbers, sign, int(result))
    return None


def checks(line: str, rng: random.Random) -> list[str]:
    """Sentences that hold an equation and add nothing to a line of working, in random order."""
    found = [*_of_a_sum(found, rng)] if (found := found_sum(line)) else []
    found += _conversions(line, rng)
    worded = []
    for said in found:
        link = rng.choice(_LINKS)
        sentence = f"{link} {said}" if link else said[:1].upper() + said[1:]
        worded.append(f"{sentence}.")
    return rng.sample(worded, len(worded))


def restatements(question: str, rng: random.Random) -> list[str]:
    """Sentences of the question that give a number or ask, said again, in random order."""
    sentences = [s.strip() for s in _SENTENCE.findall(question)]
    said = [s for s in sentences if re.search(r"\d|\?$", s) and len(s.split()) < 25]
    return [rng.choice(_RESTATED).format(s=s) for s in rng.sample(said, len(said))]


def padded(
    lines: Sequence[str], question: str, n_checks: int, n_restated: int, rng: random.Random
) -> list[str] | None:
    """Working with so many checks, each somewhere behind its line; None where it allows fewer.

    No line gets a third check before every other has two.
    """
    offered = [checks(line, rng) for line in lines]
    order = [(turn, rng.random(), at) for at, told in enumerate(offered) for turn in range(len(told))]
    order = sorted((turn // 2, draw, at) for turn, draw, at in order)
    if len(order) < n_checks:
        return None
    taken = [at for _, _, at in order[:n_checks]]
    restated = restatements(question, rng)[:n_restated]
    before = {rng.randint(0, len(lines) - 1): said for said in restated}
    told = []
    for at, line in enumerate(lines):
        told += [*([before[at]] if at in before else []), line, *offered[at][: taken.count(at)]]
    return told


def _holds(numbers: Sequence[int], sign: str, result: int) -> bool:
    first, *others = numbers
    match sign:
        case "+":
            return sum(numbers) == result
        case "-":
            return first - sum(others) == result
        case "/":
            return 0 not in others and first == result * prod(others)
        case _:
            return prod(numbers) == result


def _of_a_sum(found: Sum, rng: random.Random) -> Iterator[str]:
    numbers, sign, result = found
    inverse = {"+": "-", "-": "+", "*": "/", "x": "/", "/": "*"}[sign]
    if len(numbers) > 2:
        if sign in "+*x":
            turned = f" {sign} ".join(str(n) for n in reversed(numbers))
            yield rng.choice(_REORDERED).format(s=f"{turned} = {result}")
        return
    a, b = numbers
    if sign in "+*x" and a != b:
        yield rng.choice(_REORDERED).format(s=f"{b} {sign} {a} = {result}")
    if b:
        yield rng.choice(_UNDONE).format(s=f"{result} {inverse} {b} = {a}")
    if parts := _in_parts(a, b, sign, result):
        yield rng.choice(_SPLIT).format(s=parts)
    if (bounds := _bounds(a, b, sign)) and bounds[0] != bounds[1]:
        yield rng.choice(_BETWEEN).format(low=bounds[0], high=bounds[1], r=result)


def _in_parts(a: int, b: int, sign: str, result: int) -> str:
    tens, ones = a - a % 10, a % 10
    if not tens or not ones:
        return ""
    if sign in "*x" and b > 1:
        return f"{tens} {sign} {b} = {tens * b}, {ones} {sign} {b} = {ones * b}, together {result}"
    others, rest = b - b % 10, b % 10
    if sign == "+" and others and rest:
        return f"{tens} + {others} = {tens + others}, {ones} + {rest} = {ones + rest}, together {result}"
    return ""


def _bounds(a: int, b: int, sign: str) -> tuple[str, str] | None:
    if a < 11 or not a % 10:
        return None
    low, high = a - a % 10, a - a % 10 + 10
    if sign in "*x" and b > 1:
        return f"{low} {sign} {b} = {low * b}", f"{high} {sign} {b} = {high * b}"
    if sign == "+" or (sign == "-" and low > b):
        add = b if sign == "+" else -b
        return f"{low} {sign} {b} = {low + add}", f"{high} {sign} {b} = {high + add}"
    return None


def _conversions(line: str, rng: random.Random) -> Iterator[str]:
    for currency, amount, unit in _AMOUNT.findall(line)[-1:]:
        name = "dollar" if currency else unit if unit in _UNITS else unit.removesuffix("s")
        if name in _UNITS and int(amount):
            factor, small = _UNITS[name]
            value = int(amount) * factor
            yield rng.choice(_CONVERTED).format(r=amount, f=factor, c=value, small=small)
