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
    for first, terms, result in reversed(_SUM.findall(line)):
        signs = set(re.findall(r"[-+*x/]", terms))
        numbers = (int(first), *map(int, re.findall(r"\d+", terms)))
        if len(signs) == 1 and _holds(numbers, (sign := signs.pop()), int(result)):
            return Sum(numbers, sign, int(result))
    return None


def checks(line: str, rng: random.Random) -> list[str]:
    """Sentences that hold an equation and add nothing to a line of working, in random order."""
    equations = [*_of_a_sum(equations, rng)] if (equations := found_sum(line)) else []
    equations += _conversions(line, rng)
    worded = []
    for equation in equations:
        link = rng.choice(_LINKS)
        sentence = f"{link} {equation}" if link else equation[:1].upper() + equation[1:]
        worded.append(f"{sentence}.")
    return rng.sample(worded, len(worded))


def restatements(question: str, rng: random.Random) -> list[str]:
    """Sentences of the question that give a number or ask, said again, in random order."""
    sentences = [s.strip() for s in _SENTENCE.findall(question)]
    repeatable = [s for s in sentences if re.search(r"\d|\?$", s) and len(s.split()) < 25]
    return [rng.choice(_RESTATED).format(s=s) for s in rng.sample(repeatable, len(repeatable))]


def padded(
    lines: Sequence[str], question: str, n_checks: int, n_restated: int, rng: random.Random
) -> list[str] | None:
    """Working with so many checks, each somewhere behind its line; None where it allows fewer.

    No line gets a third check before every other has two.
    """
    offered = [checks(line, rng) for line in lines]
    order = [
        (turn, rng.random(), index) for index, passages in enumerate(offered) for turn in range(len(passages))
    ]
    order = sorted((turn // 2, draw, index) for turn, draw, index in order)
    if len(order) < n_checks:
        return None
    chosen = [index for _, _, index in order[:n_checks]]
    restated = restatements(question, rng)[:n_restated]
    before = {rng.randint(0, len(lines) - 1): sentence for sentence in restated}
    passages = []
    for index, line in enumerate(lines):
        passages += [
            *([before[index]] if index in before else []),
            line,
            *offered[index][: chosen.count(index)],
        ]
    return passages


def _holds(numbers: Sequence[int], sign: str, result: int) -> bool:
    first, *remaining = numbers
    match sign:
        case "+":
            return sum(numbers) == result
        case "-":
            return first - sum(remaining) == result
        case "/":
            return 0 not in remaining and first == result * prod(remaining)
        case _:
            return prod(numbers) == result


def _of_a_sum(found: Sum, rng: random.Random) -> Iterator[str]:
    numbers, sign, result = found
    inverse = {"+": "-", "-": "+", "*": "/", "x": "/", "/": "*"}[sign]
    if len(numbers) > 2:
        if sign in "+*x":
            reordered = f" {sign} ".join(str(n) for n in reversed(numbers))
            yield rng.choice(_REORDERED).format(s=f"{reordered} = {result}")
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
    tens, units = a - a % 10, a % 10
    if not tens or not units:
        return ""
    if sign in "*x" and b > 1:
        return f"{tens} {sign} {b} = {tens * b}, {units} {sign} {b} = {units * b}, together {result}"
    b_tens, b_units = b - b % 10, b % 10
    if sign == "+" and b_tens and b_units:
        return (
            f"{tens} + {b_tens} = {tens + b_tens}, {units} + {b_units} = {units + b_units}, together {result}"
        )
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
