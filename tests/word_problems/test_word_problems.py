"""Known answers must be right: every label of the reasoning cells rests on them."""

import datetime
import itertools
import math
import re
from collections.abc import Callable
from fractions import Fraction

import pytest
from drawing import draws
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.word_problems.derivation import Derivation, Slip, evaluate, show
from monitorbench.word_problems.generate import WordProblem, generate, normalised
from monitorbench.word_problems.kinds import KINDS

seeds = st.integers(min_value=0, max_value=10**9)


def _walk(facts: dict[str, int], variant: int) -> Fraction:
    """Minute by minute until the gap is closed."""
    speed = facts["quick"] + (facts["slow"] if variant == 0 else -facts["slow"])
    minutes = 0
    while Fraction(minutes * speed, 60) < facts["gap"]:
        minutes += 1
    return Fraction(minutes)


def _overlap(f: dict[str, int], variant: int) -> int:
    people = range(f["total"])
    one = set(people[: f["a"]])
    two = set(people[f["a"] - f["both"] : f["a"] - f["both"] + f["b"]])
    assert len(one & two) == f["both"]
    return len(set(people) - (one | two if variant == 0 else one ^ two))


def _border(f: dict[str, int], variant: int) -> int:
    s, reach = f["strip"], f["strip"] if variant == 0 else 0
    tiles = itertools.product(range(-reach, f["length"] + reach), range(-reach, f["width"] + reach))
    inner = 0 if variant == 0 else s
    return sum(not (inner <= x < f["length"] - inner and inner <= y < f["width"] - inner) for x, y in tiles)


def _weekday(f: dict[str, int], variant: int) -> str:
    monday = datetime.date(2024, 1, 1)
    start = monday + datetime.timedelta(days=f["start"])
    dates = [start + datetime.timedelta(days=k) for k in range(f["n"] + 1)]
    return f"{dates[f['n'] - variant]:%A}"


def _average(f: dict[str, int], variant: int) -> Fraction:
    if variant == 0:
        scores = [*[f["mean"]] * f["n"], f["score"]]
    else:
        scores = [Fraction(f["mean"] * f["n"] - f["score"], f["n"] - 1)] * (f["n"] - 1)
        assert (sum(scores) + f["score"]) / f["n"] == f["mean"]
    return Fraction(sum(scores)) / len(scores)


def _tank(f: dict[str, int], variant: int) -> int:
    sign = 1 if variant == 0 else -1
    return next(t for t in range(1, 10**4) if t * f["slow"] + sign * t * f["fast"] == f["fast"] * f["slow"])


def _mixture(f: dict[str, int], variant: int) -> Fraction:
    kept = f["x"] - variant * f["y"]
    parts = [Fraction(f["p"])] * kept + [Fraction(f["q"])] * f["y"]
    return sum(parts, Fraction(0)) / len(parts)


def _age(f: dict[str, int], variant: int) -> int:
    shift = f["years"] if variant == 0 else -f["years"]
    return next(age for age in range(200) if age + shift == f["times"] * (f["young"] + shift))


def _discount(f: dict[str, int], variant: int) -> Fraction:
    after = Fraction(f["price"]) * (1 - Fraction(f["a"], 100))
    return after - Fraction(f["b"], 100) * (after if variant == 0 else f["price"])


def _cancel(f: dict[str, int], variant: int) -> Fraction:
    booked = Fraction(f["seats"] * f["a"], 100)
    return (
        booked * (1 - Fraction(f["b"], 100))
        if variant == 0
        else Fraction(f["seats"] * (f["a"] - f["b"]), 100)
    )


def _price(f: dict[str, int], variant: int) -> int:
    def profit_is_right(price: int) -> bool:
        return 100 * (price - f["cost"]) == f["share"] * (f["cost"] if variant == 0 else price)

    return next(price for price in range(f["cost"], 100 * f["cost"]) if profit_is_right(price))


def _meetings(f: dict[str, int], variant: int) -> int:
    ways = itertools.combinations if variant == 0 else itertools.permutations
    return sum(1 for _ in ways(range(f["n"]), 2)) + f["extra"]


def _sequence(f: dict[str, int], variant: int) -> int:
    day = list(itertools.accumulate([f["start"]] + [f["rise"]] * f["n"]))
    return day[f["n"] - 1 + variant]


ORACLES: dict[str, Callable[[dict[str, int], int], Fraction | int | str]] = {
    "order": lambda f, v: sum(f["price"] - v * f["off"] for _ in range(f["n"])) - (1 - v) * f["off"],
    "discounts": _discount,
    "cancellations": _cancel,
    "exchange": lambda f, v: sum(f["rate"] for _ in range(f["amount"] - (1 - v) * f["fee"])) - v * f["fee"],
    "margin": _price,
    "work_rates": _tank,
    "mixture": _mixture,
    "relative_speed": _walk,
    "ages": _age,
    "average": _average,
    "sequence": _sequence,
    "weekday": _weekday,
    "remainder": lambda f, v: f["count"] % f["size"] if v == 0 else -f["count"] % f["size"],
    "overlap": _overlap,
    "border": _border,
    "posts": lambda f, v: len(range(0, f["length"] + 1 - v, f["gap"])) * f["price"],
    "meetings": _meetings,
}


def _ranking(question: str) -> str:
    ahead = "finished before|is taller than|is older than|scored more than|sits left of"
    clues = re.findall(rf"([A-Z]\w+) (?:{ahead}) ([A-Z]\w+)", question)
    people = sorted({name for pair in clues for name in pair})
    fits = [p for p in itertools.permutations(people) if all(p.index(a) < p.index(b) for a, b in clues)]
    assert len(fits) == 1, question
    from_back = re.search(r"(slowest|shortest|youngest|weakest|rightmost) one as number one", question)
    return fits[0][-2 if from_back else 1]


def _culprit(question: str) -> str:
    claims = re.findall(r"([A-Z]\w+) says that ([A-Z]\w+) (did not )?", question)
    wanted = 1 if "Exactly one of" in question else 2
    fits = [
        suspect
        for suspect, _, _ in claims
        if sum((named == suspect) != bool(negated) for _, named, negated in claims) == wanted
    ]
    assert len(fits) == 1, question
    return fits[0]


def _answer_again(problem: WordProblem) -> str:
    if problem.kind == "ranking":
        return _ranking(problem.question)
    if problem.kind == "truth_tellers":
        return _culprit(problem.question)
    answer = ORACLES[problem.kind](problem.facts, problem.variant)
    return answer if isinstance(answer, str) else show(Fraction(answer))


@draws(15)
@given(seeds)
def test_answers_agree_with_a_second_way_of_getting_them(seed: int) -> None:
    """A user would train and score monitors on wrong labels."""
    for problem in generate(2 * len(KINDS), seed=seed):
        assert _answer_again(problem) == problem.answer, problem
        assert problem.wrong_answer != problem.answer


@draws(15)
@given(seeds)
def test_right_derivations_are_true_and_wrong_ones_have_one_fault(seed: int) -> None:
    """A benign trace with a false line in it, or a faultless misbehaving one, would mislabel the pair."""
    for problem in generate(2 * len(KINDS), seed=seed):
        assert problem.steps[-1].value == problem.answer
        assert problem.wrong_steps[-1].value == problem.wrong_answer
        assert all(show(evaluate(s.expression)) == s.value for s in problem.steps if s.expression)
        false = [s for s in problem.wrong_steps if s.expression and show(evaluate(s.expression)) != s.value]
        assert len(false) == (1 if problem.mistake == "slip" else 0)
        assert problem.reading != problem.wrong_reading


@draws(15)
@given(seeds)
def test_every_fact_stands_in_the_question(seed: int) -> None:
    """A problem that does not tell its numbers cannot be judged by anyone."""
    ratios = {2: "twice", 3: "three times", 4: "four times", 5: "five times"}
    for problem in generate(2 * len(KINDS), seed=seed):
        for name, value in problem.facts.items():
            if name == "start" and problem.kind == "weekday":
                continue
            shown = ratios[value] if name == "times" else str(value)
            assert re.search(rf"(?<!\d){shown}(?!\d)", problem.question), (name, problem.question)


def test_no_two_problems_are_alike_and_all_kinds_occur() -> None:
    """Repeated questions would be dropped as overlap and leave splits smaller than asked for."""
    problems = generate(600, seed=4)
    assert len({normalised(p.question) for p in problems}) == 600
    assert {p.kind for p in problems[: len(KINDS)]} == set(KINDS)
    assert len(KINDS) >= 12
    assert {p.variant for p in problems} == {0, 1}
    assert {p.mistake for p in problems} == {"slip", "misreading"}


@draws(10)
@given(seeds, st.integers(1, 40), st.integers(0, 40))
def test_a_longer_list_begins_with_the_shorter_one(seed: int, count: int, more: int) -> None:
    """A study that asks for more problems would silently get other ones."""
    assert generate(count + more, seed=seed)[:count] == generate(count, seed=seed)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("60% of 940", Fraction(564)),
        ("1 ÷ (1/12 − 1/60)", Fraction(15)),
        ("12.5% of 8 + 0.1", Fraction(11, 10)),
        ("7 × (7 − 1)", Fraction(42)),
    ],
)
def test_shown_expressions_mean_what_they_say(expression: str, value: Fraction) -> None:
    """Steps a reader recomputes would not come out."""
    assert evaluate(expression) == value


@pytest.mark.parametrize("text", ["__import__('os')", "2 ** 3 ** 9", "x + 1"])
def test_only_arithmetic_is_evaluated(text: str) -> None:
    """Text from a data set would be run as code."""
    with pytest.raises(ValueError, match=r"only numbers|a power has to be"):
        evaluate(text)


def test_a_slip_is_carried_through() -> None:
    """A wrong derivation would contradict itself, which tells it from a right one at a glance."""
    work = Derivation(Slip(0, 10))
    assert work.calc("the sum", f"{work.calc('the product', '6 × 7')} + 1") == "53"


@given(st.fractions(min_value=0, max_value=10**6, max_denominator=100))
def test_shown_values_are_exact(value: Fraction) -> None:
    """A rounded value would make a right answer compare as wrong."""
    assert evaluate(show(value)) == value
    assert math.isclose(float(evaluate(show(value))), float(value))
