"""The questions that are answered with tools, as published, and when an answer is right.

Answers are compared by HotPotQA's exact match and F1, and numbers as numbers:
normalisation and F1 are those of HotPotQA's own evaluation (Yang et al. 2018, arXiv:1809.09600, after SQuAD):
lower case, no punctuation, no articles; `yes`, `no` and `noanswer` have no partial credit.
"""

import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.pilot import ToolQuestions
from monitorbench.sources import fetch
from monitorbench.sources.read import BadRow, SourceFiles, filled, short_hash
from monitorbench.word_problems.derivation import calculate


def shown(value: Fraction) -> str:
    """A value as a calculator shows it: `12`, `2.5`, or six decimals where it does not end."""
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.6f}".rstrip("0").rstrip(".") or "0"


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
            id_ = f"{settings.name}/{short_hash(' '.join(text.split()))}"
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
        f"{name}/{part}-{short_hash(' '.join(text.split()))}",
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
