"""Worked derivations: what a step is, how its expression is evaluated exactly, how one slips.

Promises: a value is never written by hand. `Work.calc` evaluates the expression it shows with
rational arithmetic, so a step is true unless a slip was asked for, and a slip is carried through
all later steps as a solver who made it would.

Arithmetic is bounded, so that no expression takes long or much memory, an agent's own neither: the text is
parsed as Python and evaluated node by node; names, calls and everything else but numbers and operators are
refused, and nothing is ever run.
"""

import ast
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple


class CalculationStep(NamedTuple):
    """One line of a derivation: `subject` is a noun phrase whose value is `expression` = `value`.

    Where `expression` is empty, `subject` is a whole clause and `value` the result it states.
    """

    subject: str
    expression: str
    value: str


class Slip(NamedTuple):
    """An arithmetic mistake: the value of step `at` comes out `by` too large."""

    at: int
    by: int


MOST_CHARACTERS = 200
MOST_DIGITS = 30
"""Digits that the numerator and the denominator of a value may have."""
_MOST_POWER = 64

_OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: lambda a, b: Fraction(a // b),
    ast.Mod: operator.mod,
}
_SPELLING = {"×": "*", "÷": "/", "−": "-", "^": "**", "$": "", ",": ""}
_PERCENT = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*%(?!\s*[\d(.])")


def calculate(expression: str) -> Fraction:
    """The exact value of an expression in + - * / // % ** ( ), decimals, thousands with commas, and `20%`.

    Raises `ValueError`, whose text an agent may read, for anything else, for a division by zero, and where
    the expression, or a value on the way, is too large.
    """
    if len(expression) > MOST_CHARACTERS:
        raise ValueError(f"more than {MOST_CHARACTERS} characters")
    for symbol, python in _SPELLING.items():
        expression = expression.replace(symbol, python)
    try:
        tree = ast.parse(_PERCENT.sub(r"(\1/100)", expression).strip(), mode="eval")
        return _value(tree.body)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError("not an arithmetic expression") from error
    except ZeroDivisionError as error:
        raise ValueError("division by zero") from error


def _value(node: ast.expr) -> Fraction:
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float()):
            return _bounded(Fraction(str(node.value)))
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand)
        case ast.UnaryOp(op=ast.UAdd()):
            return _value(node.operand)
        case ast.BinOp(op=ast.Pow()):
            return _power(_value(node.left), _value(node.right))
        case ast.BinOp(op=op) if type(op) in _OPERATORS:
            return _bounded(_OPERATORS[type(op)](_value(node.left), _value(node.right)))
    raise ValueError("only numbers, + - * / // % ** and parentheses")


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or abs(exponent) > _MOST_POWER:
        raise ValueError(f"a power has to be a whole number up to {_MOST_POWER}")
    return _bounded(base ** int(exponent))


def _bounded(value: Fraction) -> Fraction:
    if max(abs(value.numerator), value.denominator) >= 10**MOST_DIGITS:
        raise ValueError(f"a number of more than {MOST_DIGITS} digits")
    return value


def evaluate(expression: str) -> Fraction:
    """As `calculate`, also of `a% of b`."""
    return calculate(expression.replace(" of ", " * "))


def show(value: Fraction) -> str:
    """Canonical text of a value: `12`, `2.5` where two decimals are exact, else `7/12`."""
    if value.denominator == 1:
        return str(value.numerator)
    if 100 % value.denominator == 0:
        return f"{float(value):.2f}".rstrip("0")
    return f"{value.numerator}/{value.denominator}"


class Derivation:
    """Collects the steps of one derivation, making the slip it was given (if any) on the way."""

    def __init__(self, slip: Slip | None = None) -> None:
        self.steps: list[CalculationStep] = []
        self._slip = slip

    def calc(self, subject: str, expression: str) -> str:
        """Add a computed step; returns its value as text, to be used in later expressions."""
        value = evaluate(expression)
        if self._slip is not None and self._slip.at == len(self.steps):
            value += self._slip.by
        return self._add(subject, expression, show(value))

    def say(self, clause: str, result: str) -> str:
        """Add a step that is a statement, not a computation; returns its result."""
        return self._add(clause, "", result)

    def _add(self, subject: str, expression: str, value: str) -> str:
        self.steps.append(CalculationStep(subject, expression, value))
        return value


@dataclass(frozen=True)
class TwoReadings:
    """One situation with two questions, where the derivation right for one is wrong for the other.

    Index 0 and 1 of `questions`, `readings` and `routes` belong together. A reading is a clause that
    says how the decisive sentence is understood, and names the other reading in its negative, so that
    its words alone do not tell which is right. `facts` are the numbers the questions are made of.
    """

    facts: dict[str, int]
    questions: tuple[str, str]
    readings: tuple[str, str]
    routes: tuple[Callable[[Derivation], str], Callable[[Derivation], str]]
    givens: tuple[str, ...]
    unit: str = ""
