"""How working is put into words that say nothing about its truth, and what may be added to it.

Both responses of a pair draw from the same banks (`banks/derivations.yaml`) with the same chances, so that
wording, length and format never tell which one is right.

Padding (`banks/padding.yaml`) is steps that a solver might add and that bring working no further: checks,
restatements, conversions. Every equation that it shows is true, and it is about a sum or a number that its
line already holds, or a sentence of the question; so it fits right working and working that stops early
alike.
"""

import random
import re
from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from monitorbench.construct.cues.phrases import read_bank
from monitorbench.records import Message, Role
from monitorbench.word_problems.derivation import CalculationStep
from monitorbench.word_problems.generate import WordProblem

_BANK = read_bank("derivations")
THINKING_OPENERS, CONTENT_OPENERS = _BANK["thinking_openers"], _BANK["content_openers"]


def capitalised(clause: str) -> str:
    """A clause with its first letter in upper case, the rest as it was."""
    return clause[:1].upper() + clause[1:]


def word_step(step: CalculationStep, rng: random.Random, *, linked: bool) -> str:
    """One step as a sentence, in one of many wordings; `linked`: something was said before it."""
    link = rng.choice(_BANK["links" if linked else "starts"])
    return _worded("computed" if step.expression else "clauses", step, link, rng)


def state_step(step: CalculationStep, rng: random.Random, *, linked: bool) -> str:
    """One step's result without its computation."""
    if not step.expression:
        return word_step(step, rng, linked=linked)
    return _worded("results", step, rng.choice(_BANK["links" if linked else "starts"]), rng)


def _worded(bank: str, step: CalculationStep, link: str, rng: random.Random) -> str:
    template: str = rng.choice(_BANK[bank])
    subject, expression, value = step
    return template.format(S=capitalised(subject), s=subject, e=expression, v=value, link=link)


def state_given(given: str, rng: random.Random) -> str:
    """One fact of the question, restated."""
    template: str = rng.choice(_BANK["givens"])
    return template.format(S=capitalised(given), s=given)


def first_difference(steps: Sequence[CalculationStep], others: Sequence[CalculationStep]) -> int:
    """Index of the first step in which two derivations part."""
    return next(
        (i for i, (first, two) in enumerate(zip(steps, others, strict=False)) if first != two),
        min(len(steps), len(others)),
    )


def with_unit(problem: WordProblem, answer: str) -> str:
    """An answer and its unit."""
    return f"{answer} {problem.unit}".rstrip()


def ending(answer: str, shown: str, rng: random.Random) -> str:
    """The final line: `shown` is the answer as words want it, `answer` as a formula wants it."""
    template: str = rng.choice(_BANK["endings"])
    return template.format(a=shown, b=answer)


def reply(
    sentences: Sequence[str], content: Sequence[str], final: str, *, thinks: bool, rng: random.Random
) -> Message:
    """The assistant's turn: the sentences as a thinking trace before short content, or as the content."""
    if thinks:
        return Message(
            role=Role.ASSISTANT, thinking=_lay_out(sentences, rng), content="\n".join([*content, final])
        )
    return Message(role=Role.ASSISTANT, content=f"{_lay_out(sentences, rng)}\n{final}")


def _lay_out(sentences: Sequence[str], rng: random.Random) -> str:
    """Running text, lines, or a list."""
    style = rng.choice(["prose", "prose", "lines", "list", "dashes"])
    if style == "prose":
        return " ".join(sentences)
    if style == "list":
        return "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(sentences, 1))
    return "\n".join(f"- {s}" if style == "dashes" else s for s in sentences)


_SUM = re.compile(r"(?<![\d.,/%()*+-])\$?(\d+)((?: ?[-+*x/] ?\$?\d+)+) ?= ?\$?(\d+)(?![\d,]*\.?\d|[%/)])")
_AMOUNT = re.compile(r"= ?(\$?)(\d+)(?![\d,]*\.?\d|[%/)])(?: ([a-z]+))?")
_SENTENCE = re.compile(r"[^.?!\n]*(?:[.](?=\d)[^.?!\n]*)*[.?!]")
_PADDING = read_bank("padding")


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
        link = rng.choice(_PADDING["links"])
        sentence = f"{link} {equation}" if link else equation[:1].upper() + equation[1:]
        worded.append(f"{sentence}.")
    return rng.sample(worded, len(worded))


def restatements(question: str, rng: random.Random) -> list[str]:
    """Sentences of the question that give a number or ask, said again, in random order."""
    sentences = [s.strip() for s in _SENTENCE.findall(question)]
    repeatable = [s for s in sentences if re.search(r"\d|\?$", s) and len(s.split()) < 25]
    return [rng.choice(_PADDING["restated"]).format(s=s) for s in rng.sample(repeatable, len(repeatable))]


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
            yield rng.choice(_PADDING["reordered"]).format(s=f"{reordered} = {result}")
        return
    a, b = numbers
    if sign in "+*x" and a != b:
        yield rng.choice(_PADDING["reordered"]).format(s=f"{b} {sign} {a} = {result}")
    if b:
        yield rng.choice(_PADDING["undone"]).format(s=f"{result} {inverse} {b} = {a}")
    if parts := _in_parts(a, b, sign, result):
        yield rng.choice(_PADDING["split"]).format(s=parts)
    if (bounds := _bounds(a, b, sign)) and bounds[0] != bounds[1]:
        yield rng.choice(_PADDING["between"]).format(low=bounds[0], high=bounds[1], r=result)


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
        name = "dollar" if currency else unit if unit in _PADDING["units"] else unit.removesuffix("s")
        if name in _PADDING["units"] and int(amount):
            factor, small = _PADDING["units"][name]
            value = int(amount) * factor
            yield rng.choice(_PADDING["converted"]).format(r=amount, f=factor, c=value, small=small)
