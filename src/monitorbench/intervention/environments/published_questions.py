"""The questions that are answered with tools, as published; an agent's calculator; when an answer is right.

Arithmetic is exact, and bounded, so that no expression takes long or much memory: the text is parsed as
Python and evaluated node by node; names, calls and everything else but numbers and operators are refused, and
nothing is ever run. Answers are compared by HotPotQA's exact match and F1, and numbers as numbers:
normalisation and F1 are those of HotPotQA's own evaluation (Yang et al. 2018, arXiv:1809.09600, after SQuAD):
lower case, no punctuation, no articles; `yes`, `no` and `noanswer` have no partial credit.
"""

import ast
import hashlib
import operator
import re
import string
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.pilot import ToolQuestions
from monitorbench.sources import fetch
from monitorbench.sources.read import BadRow, SourceFiles, filled

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


def shown(value: Fraction) -> str:
    """A value as a calculator shows it: `12`, `2.5`, or six decimals where it does not end."""
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.6f}".rstrip("0").rstrip(".") or "0"


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


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CLOSED = ("yes", "no", "noanswer")
_NUMBER = re.compile(r"[-+]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:/\d+)?")


def normalised(answer: str) -> str:
    """An answer without what two people may write differently."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(given: str, expected: str) -> bool:
    """Whether both are the same after normalisation."""
    return normalised(given) == normalised(expected)


def token_f1(given: str, expected: str) -> float:
    """F1 in [0, 1] of the given answer's words against the expected one's, as multisets."""
    a, b = normalised(given), normalised(expected)
    if a != b and (a in _CLOSED or b in _CLOSED):
        return 0.0
    words_a, words_b = a.split(), b.split()
    common = (Counter(words_a) & Counter(words_b)).total()
    # F1 = 2PR / (P + R) with P = common / |a| and R = common / |b|
    return 2 * common / (len(words_a) + len(words_b)) if common else 0.0


def is_number(given: str, expected: Fraction) -> bool:
    """Whether the answer states one number, the expected one: `$1,250.00` is 1250, `3 or 4` is none."""
    numbers = _NUMBER.findall(given)
    try:
        return len(numbers) == 1 and calculate(numbers[0]) == expected
    except ValueError:
        return False


_RUNS = "CoT/context/last_trial/100_questions_8_trials.txt"
_LOGGED = re.compile(
    r"^Context: (?P<context>.*?)\nQuestion: (?P<question>.*?)\n(?:Thought|Action)"
    r".*?^Correct answer: (?P<answer>.*?)$",
    re.DOTALL | re.MULTILINE,
)
_STEP = re.compile(r"<<([^<>=]+)=[^<>]*>>")
_FINAL = re.compile(r"^####[ \t]*(.+)$", re.MULTILINE)


class SearchQuestion(NamedTuple):
    """A question with the paragraphs that answer it."""

    id: str
    text: str
    answer: str
    paragraphs: tuple[str, ...]
    distracting: tuple[str, ...] = ()
    """Paragraphs that upstream put beside them; empty where it published none."""


class SolvedProblem(NamedTuple):
    """A word problem, its answer, and the expressions of its reference solution, in order."""

    id: str
    text: str
    answer: Fraction
    steps: tuple[str, ...]
    is_test: bool
    """Whether it is one of upstream's test questions."""


def read_search_questions(settings: ToolQuestions) -> list[SearchQuestion]:
    """HotPotQA's questions, as published or out of Reflexion's logs, as the file's name says.

    Raises `UserError` where they can't be had, the file holds none, or a row is bad.
    """
    files = _files(settings)
    if any(file.config.path.endswith(".parquet") for file in files.matching()):
        return list(files.parquet("", partial(_published, settings.name)))
    return _logged(settings, files)


def _published(name: str, row: Mapping[str, Any]) -> SearchQuestion:
    """A row of the hub's form: `context` is titles and their sentences, `supporting_facts` names titles."""
    context, facts = row.get("context"), row.get("supporting_facts")
    if not (isinstance(context, Mapping) and isinstance(facts, Mapping)):
        raise BadRow("no 'context' with 'supporting_facts'")
    needed = set(facts.get("title") or ())
    titles, texts = context.get("title") or [], context.get("sentences") or []
    if not needed or not needed <= set(titles) or len(titles) != len(texts):
        raise BadRow("'context' lacks a paragraph of 'supporting_facts'")
    paragraphs = {
        title: " ".join(f"{title}: {''.join(sentences)}".split())
        for title, sentences in zip(titles, texts, strict=True)
    }
    return SearchQuestion(
        f"{name}/{filled(row, 'id')}",
        " ".join(filled(row, "question").split()),
        filled(row, "answer").strip(),
        tuple(text for title, text in paragraphs.items() if title in needed),
        tuple(text for title, text in paragraphs.items() if title not in needed),
    )


def _logged(settings: ToolQuestions, files: SourceFiles) -> list[SearchQuestion]:
    questions: dict[str, SearchQuestion] = {}
    for name, content in files.tar(""):
        for entry in _LOGGED.finditer(content.decode()) if name.endswith(_RUNS) else ():
            text = " ".join(entry["question"].split())
            # A paragraph is logged once for each supporting sentence, a question once for each trial.
            own = dict.fromkeys(
                filter(None, (paragraph.strip() for paragraph in entry["context"].split("\n\n")))
            )
            id_ = f"{settings.name}/{_hash(text)}"
            questions.setdefault(id_, SearchQuestion(id_, text, entry["answer"].strip(), tuple(own)))
    if not questions:
        raise UserError(f"{settings.name}: no question in {_RUNS} of the archive; get the file again")
    return list(questions.values())


def read_word_problems(settings: ToolQuestions) -> list[SolvedProblem]:
    """GSM8K's questions; `UserError` where they can't be had or a row is bad."""
    files = _files(settings)
    return [
        problem
        for split in ("train", "test")
        for problem in files.jsonl(f"{split}.jsonl", partial(_problem, settings.name, split))
    ]


def _files(settings: ToolQuestions) -> SourceFiles:
    return fetch.find(settings.name, settings.source, settings.mirror, settings.cache, "error")


def _problem(name: str, part: str, row: Mapping[str, Any]) -> SolvedProblem:
    text, solution = filled(row, "question").strip(), filled(row, "answer")
    stated = _FINAL.findall(solution)
    if not stated:
        raise BadRow("field 'answer' ends with no number")
    return SolvedProblem(
        f"{name}/{part}-{_hash(text)}",
        text,
        calculate(stated[-1]),
        tuple(_calculable(_STEP.findall(solution))),
        part == "test",
    )


def _calculable(expressions: Sequence[str]) -> Iterator[str]:
    for expression in expressions:
        try:
            calculate(expression)
        except ValueError:  # a few are written as no calculator reads them
            continue
        yield expression.strip()


def _hash(text: str) -> str:
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:16]
