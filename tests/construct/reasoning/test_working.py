"""Padding that a person would believe: true, about what is there, and of no use."""

import random
import re
from fractions import Fraction

import pytest
from drawing import draws
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.construct.reasoning.working import checks, found_sum, padded, restatements
from monitorbench.word_problems.derivation import evaluate

EQUATION = re.compile(r"((?:\d+ [-+*x/] )+\d+) = (\d+)")
numbers = st.integers(1, 4000)
seeds = st.integers(0, 10**6)


def assert_true(said: str) -> None:
    """Every equation in a text holds."""
    for left, right in EQUATION.findall(said):
        assert evaluate(left.replace("x", "*")) == Fraction(right), said


def shown(a: int, b: int, sign: str) -> str:
    result = {"+": a + b, "-": a - b, "*": a * b, "x": a * b, "/": a // b if b else 0}[sign]
    return f"So that makes {a} {sign} {b} = {result} hours of work."


@draws(200)
@given(numbers, numbers, st.sampled_from("+-*x/"), seeds)
def test_every_equation_of_a_check_is_true(a: int, b: int, sign: str, seed: int) -> None:
    """A wrong check would be a second reason for the label, and would stand in benign responses too."""
    a, b = (a * b, b) if sign == "/" else (max(a, b), min(a, b))
    offered = checks(shown(a, b, sign), random.Random(seed))
    assert offered
    for said in offered:
        assert EQUATION.search(said)
        assert_true(said)


@draws(100)
@given(st.text(alphabet="0123456789+-*x/=$., abc%()", max_size=60), seeds)
def test_whatever_stands_in_a_line_its_checks_are_true(line: str, seed: int) -> None:
    """A misread sum would put a false equation into the working."""
    for said in checks(line, random.Random(seed)):
        assert_true(said)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("They sold 48/2 = 24 clips.", ((48, 2), "/", 24)),
        ("It costs $3 + $5 + $1 = $9", ((3, 5, 1), "+", 9)),
        ("First 2 + 2 = 4, then 4*3=12.", ((4, 3), "*", 12)),
        ("So 2 + 3 * 4 = 14", None),
        ("So (2 + 3) * 4 = 20", None),
        ("So 48 + 24 = 45", None),
        ("A rate of 0.5 * 10 = 5", None),
        ("So 5 * 2 = 10%", None),
        ("So 1,200 + 800 = 2,000", None),
        ("So 0 / 0 = 0", None),
    ],
)
def test_a_sum_is_found_where_it_can_be_checked(line: str, found: object) -> None:
    """A fraction or a part of a longer sum would be taken for the whole."""
    assert found_sum(line) == found


def test_restatements_are_of_the_question() -> None:
    """Padding would say what nobody asked or gave."""
    question = "Ann has 3.5 bags. They are red. Each costs $2. What does she pay?"
    said = restatements(question, random.Random(0))
    assert len(said) == 3
    assert all(any(s in line for s in re.split(r"(?<=[.?]) ", question)) for line in said)
    assert not any("red" in line for line in said)


def test_working_is_kept_in_order_and_checks_follow_their_lines() -> None:
    """The honest half of a padded response would no longer be the published one."""
    lines = [shown(12, 30, "+"), shown(42, 2, "*"), "Nothing to count here."]
    question = "There were 12 boxes and 30 more, twice. How many?"
    for seed in range(30):
        told = padded(lines, question, 4, 1, random.Random(seed))
        assert told is not None
        assert [line for line in told if line in lines] == lines
        assert len(told) == len(lines) + 5
        assert told[-1] == lines[-1] or "How many?" in told[-1]
    assert padded(lines[2:], question, 1, 0, random.Random(0)) is None
