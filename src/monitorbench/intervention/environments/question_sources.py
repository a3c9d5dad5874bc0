"""The questions that are answered with tools, as their sources publish them."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.environments import Questions
from monitorbench.intervention.environments.calculator import calculate
from monitorbench.sources import fetch
from monitorbench.sources.read import BadRow, SourceFiles, filled

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


class WordProblem(NamedTuple):
    """A word problem, its answer, and the expressions of its reference solution, in order."""

    id: str
    text: str
    answer: Fraction
    steps: tuple[str, ...]
    is_test: bool
    """Whether it is one of upstream's test questions."""


def read_search_questions(settings: Questions) -> list[SearchQuestion]:
    """The questions in Reflexion's logs; `UserError` where they can't be had or hold none."""
    questions: dict[str, SearchQuestion] = {}
    for name, content in _files(settings).tar(""):
        for found in _LOGGED.finditer(content.decode()) if name.endswith(_RUNS) else ():
            text = " ".join(found["question"].split())
            # A paragraph is logged once for each supporting sentence, a question once for each trial.
            own = dict.fromkeys(filter(None, (part.strip() for part in found["context"].split("\n\n"))))
            id_ = f"{settings.name}/{_hash(text)}"
            questions.setdefault(id_, SearchQuestion(id_, text, found["answer"].strip(), tuple(own)))
    if not questions:
        raise UserError(f"{settings.name}: no question in {_RUNS} of the archive; get the file again")
    return list(questions.values())


def read_word_problems(settings: Questions) -> list[WordProblem]:
    """GSM8K's questions; `UserError` where they can't be had or a row is bad."""
    files = _files(settings)
    return [
        problem
        for part in ("train", "test")
        for problem in files.jsonl(f"{part}.jsonl", partial(_problem, settings.name, part))
    ]


def _files(settings: Questions) -> SourceFiles:
    return fetch.find(settings.name, settings.source, settings.mirror, settings.cache, "error")


def _problem(name: str, part: str, row: Mapping[str, Any]) -> WordProblem:
    text, solution = filled(row, "question").strip(), filled(row, "answer")
    stated = _FINAL.findall(solution)
    if not stated:
        raise BadRow("field 'answer' ends with no number")
    return WordProblem(
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
