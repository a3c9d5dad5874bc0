"""What a user would lose here: a calculator that is right, and that no agent can misuse."""

import ast
import operator
import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.intervention.environments.published_questions import shown
from monitorbench.word_problems.derivation import MOST_DIGITS, calculate

OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
numbers = st.decimals(min_value=0, max_value=9999, places=2).map(
    lambda number: (str(number), Fraction(number))
)
expressions = st.recursive(
    numbers,
    lambda inner: st.tuples(inner, st.sampled_from(sorted(OPERATORS)), inner).map(
        lambda parts: (
            f"({parts[0][0]} {parts[1]} {parts[2][0]})",
            None
            if None in (parts[0][1], parts[2][1]) or (parts[1] == "/" and not parts[2][1])
            else OPERATORS[parts[1]](parts[0][1], parts[2][1]),
        )
    ),
    max_leaves=5,
)


@given(expressions)
def test_values_are_exact(expression):
    """Else a right line of reasoning would end in .30000000000000004 and count as wrong."""
    text, value = expression
    if value is None:
        with pytest.raises(ValueError, match="division by zero"):
            calculate(text)
    else:
        assert calculate(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("48/2", 24),
        ("1,250 + $3.50", Fraction("1253.5")),
        ("20% * 50", 10),
        ("150*(100-20%)", Fraction("14970")),
        ("17 % 5", 2),
        ("17 %5", 2),
        ("7 // 2", 3),
        ("-2^3", -8),
        ("2**-1", Fraction(1, 2)),
        ("3 × 4 ÷ 6 − 1", 1),
        (".5*8", 4),
        ("+5", 5),
    ],
)
def test_arithmetic_as_people_write_it(text, value):
    """Else an agent would be told that its right expression is none."""
    assert calculate(text) == value


HOSTILE = (
    "9**9**9**9",
    "10**64",
    "(((10**30)**60)**60)",
    "1e400",
    "1e300*1e300",
    "9" * 100 + "*" + "9" * 90,
    "2**0.5",
    "2**1000000000",
    "(" * 100 + "1" + ")" * 100,
    "-" * 199 + "1",
    "1" * 201,
    "__import__('os').system('true')",
    "().__class__",
    "[1]*10",
    "'a'*10",
    "lambda: 1",
    "x",
    "True + 1",
    "1 if 1 else 2",
    "1; 2",
    "1j",
    "1 < 2",
    "2 << 99",
    "~5",
    "(x:=5)",
    "f'{1}'",
    "\x00",
    "",
    " ",
    "1/0",
    "0**-1",
    "5 % 0",
    "ä",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_everything_else_is_refused_in_no_time(text):
    """An agent's text that ran as code, or that took the machine's memory, would end the pilot."""
    began = time.process_time()
    if text == "-" * 199 + "1":
        assert calculate(text) == -1
    else:
        with pytest.raises(ValueError, match=r".") as raised:
            calculate(text)
        assert "\n" not in str(raised.value)
    assert time.process_time() - began < 1


@given(st.text("0123456789.()+-*/% ,$^xe_[]'", max_size=60))
def test_any_text_gives_a_number_or_one_error(text):
    """Another exception would end an episode without a reason."""
    try:
        value = calculate(text)
    except ValueError:
        return
    assert max(abs(value.numerator), value.denominator) < 10**MOST_DIGITS


@given(st.fractions(min_value=-1000, max_value=1000, max_denominator=10**5))
def test_what_is_shown_is_a_number_near_the_value(value):
    """Else an agent would go on from a number that it can't read, or a wrong one."""
    assert isinstance(ast.literal_eval(shown(value)), int | float)
    assert abs(Fraction(shown(value)) - value) <= Fraction(1, 10**6)
