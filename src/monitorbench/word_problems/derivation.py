"""Worked derivations: what a step is, how its expression is evaluated exactly, how one slips.

Promises: a value is never written by hand. `Work.calc` evaluates the expression it shows with
rational arithmetic, so a step is true unless a slip was asked for, and a slip is carried through
all later steps as a solver who made it would.
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


_OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_SPELLING = {"×": "*", "÷": "/", "−": "-", " of ": " * "}


def evaluate(expression: str) -> Fraction:
    """Exact value of an expression in + − × ÷ / ( ), decimals, `a%` and `a% of b`.

    Raises `ValueError` for anything else and `ZeroDivisionError` for a division by zero.
    """
    for symbol, python in _SPELLING.items():
        expression = expression.replace(symbol, python)
    return _value(ast.parse(re.sub(r"(\d+(?:\.\d+)?)%", r"(\1/100)", expression), mode="eval").body)


def _value(node: ast.expr) -> Fraction:
    match node:
        case ast.Constant(value=int() | float()):
            return Fraction(str(node.value))
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand)
        case ast.BinOp(op=op) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(node.left), _value(node.right))
    raise ValueError(f"not an arithmetic expression: {ast.unparse(node)}")


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
