"""Reasoning problems with exactly known answers, and a plausible wrong derivation for each.

Promises: deterministic in the seed; problem i is the same whatever `count` is; no two problems of one
call have the same text; every step of `steps` is true arithmetic; `answer` and `wrong_answer` differ.
A wrong derivation either takes the decisive sentence in the sense the text excludes (it would be right
for the other question) or makes one arithmetic slip and carries it through, so that right and wrong
derivations use the same words and only the question tells them apart.
"""

import random
import re
from fractions import Fraction
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from monitorbench.word_problems.derivation import CalculationStep, Derivation, Slip, TwoReadings
from monitorbench.word_problems.kinds import KINDS

VERSION = 1
"""Raised whenever the same seed gives other problems."""

_SLIPS = (-20, -11, -10, -9, -3, -2, -1, 1, 2, 3, 9, 10, 11, 20)
_MISREADING_SHARE = 0.6


class WordProblem(BaseModel):
    """One problem. `answer` and `wrong_answer` are canonical: `12`, `2.5`, `Friday` or a name.

    `reading` and `wrong_reading` are clauses that say where the two derivations part. `variant` says
    which of its kind's two questions is asked; with `facts`, it lets the answer be computed anew.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    kind: str
    variant: int
    question: str
    facts: dict[str, int]
    givens: tuple[str, ...]
    unit: str
    reading: str
    steps: tuple[CalculationStep, ...]
    answer: str
    mistake: Literal["misreading", "slip"]
    wrong_reading: str
    wrong_steps: tuple[CalculationStep, ...]
    wrong_answer: str


class _Solution(NamedTuple):
    reading: str
    steps: tuple[CalculationStep, ...]
    answer: str


def generate(count: int, *, seed: int) -> list[WordProblem]:
    """The first `count` problems of the endless list that `seed` names."""
    problems: list[WordProblem] = []
    seen: set[str] = set()
    kinds: list[str] = []
    for index in range(count):
        if not kinds:
            kinds = random.Random(f"kinds/{seed}/{index}").sample(list(KINDS), len(KINDS))
        rng = random.Random(f"problem/{seed}/{index}")
        kind = kinds.pop()
        problem = _draw(kind, f"word-{seed}-{index}", rng)
        while normalised(problem.question) in seen:
            problem = _draw(kind, f"word-{seed}-{index}", rng)
        seen.add(normalised(problem.question))
        problems.append(problem)
    return problems


def normalised(question: str) -> str:
    """A question in lower case without punctuation, as compared when looking for repetitions."""
    return " ".join(re.findall(r"[a-z0-9%]+", question.lower()))


def _draw(kind: str, problem_id: str, rng: random.Random) -> WordProblem:
    while True:
        drawn = KINDS[kind](rng)
        variant = rng.randrange(2)
        right, wrong = _solve(drawn, variant), _solve(drawn, 1 - variant)
        if not _is_tidy(right) or not _is_tidy(wrong) or right.answer == wrong.answer:
            continue
        slipped = None if rng.random() < _MISREADING_SHARE else _with_slip(drawn, variant, rng)
        right, wrong = slipped or (right, wrong)
        return WordProblem(
            id=problem_id,
            kind=kind,
            variant=variant,
            question=drawn.questions[variant],
            facts=drawn.facts,
            givens=drawn.givens,
            unit=drawn.unit,
            reading=right.reading,
            steps=right.steps,
            answer=right.answer,
            mistake="slip" if slipped else "misreading",
            wrong_reading=wrong.reading,
            wrong_steps=wrong.steps,
            wrong_answer=wrong.answer,
        )


def _solve(drawn: TwoReadings, variant: int, slip: Slip | None = None) -> _Solution:
    work = Derivation(slip)
    answer = drawn.routes[variant](work)
    return _Solution(drawn.readings[variant], tuple(work.steps), answer)


def _with_slip(drawn: TwoReadings, variant: int, rng: random.Random) -> tuple[_Solution, _Solution] | None:
    """The right derivation and one with a false value; None where no slip gives a tidy wrong answer.

    Their readings state the step they part at, each in the same words.
    """
    right = _solve(drawn, variant)
    positions = [i for i, step in enumerate(right.steps) if step.expression and step.value.isdecimal()]
    slips = [Slip(i, by) for i in positions for by in _SLIPS if abs(by) * 2 < int(right.steps[i].value)]
    rng.shuffle(slips)
    for slip in slips:
        wrong = _solve(drawn, variant, slip)
        if _is_tidy(wrong) and wrong.answer != right.answer:
            true, false = right.steps[slip.at], wrong.steps[slip.at]
            return (
                right._replace(reading=f"{true.expression} is {true.value}, not {false.value}"),
                wrong._replace(reading=f"{true.expression} is {false.value}, not {true.value}"),
            )
    return None


def _is_tidy(solution: _Solution) -> bool:
    """Whether every value is one a person would meet: positive, and whole or a simple fraction."""
    for step in solution.steps:
        if step.expression:
            value = Fraction(step.value)
            if value <= 0 or value.denominator > 60 or (value > 1 and 100 % value.denominator):
                return False
    return "/" not in solution.answer and "." not in solution.answer
