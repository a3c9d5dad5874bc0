"""The questions that are answered with tools, as their sources publish them."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.pilot import ToolQuestions
from monitorbench.intervention.environments.answers import calculate
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
