"""Upstream data sets of questions with known answers, which a subject model can be asked."""

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from monitorbench.records import Task
from monitorbench.sources.declaration import INCENTIVISED_ANSWERS, SourceDeclaration, SubjectQuestions
from monitorbench.sources.read import BadRow, SourceFiles, filled, short_hash, text
from monitorbench.upstream import KnownQuestion


def read_aime(files: SourceFiles) -> Iterator[KnownQuestion]:
    """The problems in upstream's order; `answer` without leading zeros, no choices."""
    return files.parquet("", _aime_question)


def _aime_question(row: Mapping[str, Any]) -> KnownQuestion:
    answer = str(row.get("answer", "")).strip()
    if not answer.isascii() or not answer.isdigit() or int(answer) > 999:
        raise BadRow(f"field 'answer': {answer!r} is no integer from 0 to 999")
    if row.get("id") is None or row.get("year") is None:
        raise BadRow(f"missing field {'id' if row.get('id') is None else 'year'!r}")
    id_ = f"{row['year']}-{row['id']}"
    return KnownQuestion(
        id=id_, group=id_, topic="aime", text=filled(row, "problem"), answer=str(int(answer))
    )


AIME = SourceDeclaration(
    name="aime", version=1, read=read_aime, questions=SubjectQuestions(Task.REASONING, read_aime)
)
"""AIME 2024 I and II: 30 competition problems whose answer is an integer from 0 to 999.

Owns `data/train-00000-of-00001.parquet` of the hub's HuggingFaceH4/aime_2024: id, problem, solution, answer,
url, year. The worked solutions are not read.
"""


_GPQA_WRONG = tuple(f"Incorrect Answer {n}" for n in (1, 2, 3))


def read_gpqa(files: SourceFiles) -> Iterator[KnownQuestion]:
    """The questions in upstream's order, under upstream's record ids."""
    return files.csv("", _gpqa_question)


def _gpqa_question(row: Mapping[str, Any]) -> KnownQuestion:
    id_ = filled(row, "Record ID").strip()
    answer = filled(row, "Correct Answer").strip()
    wrong = tuple(filled(row, column).strip() for column in _GPQA_WRONG)
    choices = [answer, *wrong]
    random.Random(f"gpqa/{id_}").shuffle(choices)
    return KnownQuestion(
        id=id_,
        group=id_,
        topic=filled(row, "High-level domain").strip(),
        text=filled(row, "Question").strip(),
        answer=answer,
        choices=tuple(choices),
        wrong=wrong,
    )


GPQA = SourceDeclaration(
    name="gpqa", version=1, read=read_gpqa, questions=SubjectQuestions(Task.REASONING, read_gpqa)
)
"""GPQA Diamond (Rein et al. 2023, arXiv:2311.12022; CC-BY-4.0, gated): 198 graduate-level questions.

Owns `gpqa_diamond.csv` of the hub's Idavidrein/gpqa. Upstream gives the right answer in a column of its own;
so that its place tells nothing, the choices are put in an order drawn from the record's id.
"""


MMLU_SUBJECTS = ("moral_disputes", "moral_scenarios")


def read_mmlu(files: SourceFiles) -> Iterator[KnownQuestion]:
    """The questions of `MMLU_SUBJECTS` in upstream's order; ids count within a subject."""
    seen: Counter[str] = Counter()

    def question(row: Mapping[str, Any]) -> KnownQuestion | None:
        subject = filled(row, "subject")
        if subject not in MMLU_SUBJECTS:
            return None
        number = seen[subject]
        seen[subject] += 1
        text, choices, answer = filled(row, "question"), row.get("choices"), row.get("answer")
        if not isinstance(choices, list) or len(choices) != 4 or not all(isinstance(c, str) for c in choices):
            raise BadRow("field 'choices' is no list of four texts")
        if not isinstance(answer, int) or not 0 <= answer < 4:
            raise BadRow(f"field 'answer': {answer!r} is no index of a choice")
        return KnownQuestion(
            id=f"{subject}-{number:04d}",
            group=short_hash(text.strip()),
            topic=subject,
            text=text,
            answer=choices[answer],
            choices=tuple(choices),
            wrong=tuple(choice for i, choice in enumerate(choices) if i != answer),
        )

    return files.parquet("", question)


MMLU = SourceDeclaration(
    name="mmlu", version=1, read=read_mmlu, questions=SubjectQuestions(Task.QA, read_mmlu)
)
"""The two moral subjects of MMLU's test set (Hendrycks et al. 2021, arXiv:2009.03300; MIT).

Owns `all/test-00000-of-00001.parquet` of the hub's cais/mmlu: question, subject, choices (four texts) and
answer (an index). The rows of other subjects are passed over.
"""


def read_dfir_metric(files: SourceFiles) -> Iterator[KnownQuestion]:
    """The questions in upstream's order; ids are their numbers (`mcq-0000`)."""
    numbers = count()

    def question(row: Mapping[str, Any]) -> KnownQuestion:
        number = next(numbers)
        text, letter, options = filled(row, "question"), filled(row, "answer").strip(), row.get("options")
        if not isinstance(options, Mapping) or not all(isinstance(o, str) for o in options.values()):
            raise BadRow("field 'options' is no set of texts by letter")
        if letter not in options:
            raise BadRow(f"field 'answer': {letter!r} is none of the options {', '.join(options)}")
        return KnownQuestion(
            id=f"mcq-{number:04d}",
            group=short_hash(text.strip()),
            topic="incident_response",
            text=text,
            answer=options[letter],
            choices=tuple(options[key] for key in sorted(options)),
            wrong=tuple(options[key] for key in sorted(options) if key != letter),
        )

    return files.json("", question)


DFIR_METRIC = SourceDeclaration(
    name="dfir_metric",
    version=1,
    read=read_dfir_metric,
    construct=INCENTIVISED_ANSWERS,
    questions=SubjectQuestions(Task.QA, read_dfir_metric),
)
"""DFIR-Metric's multiple-choice module (Cherif et al. 2025, arXiv:2505.19973): incident response.

Owns `DFIR-MCQ.json`: an array of objects with question, options (texts by letter) and answer (a letter).
"""


_BEST_WRONG = "Best Incorrect Answer"


def read_truthfulqa(files: SourceFiles) -> Iterator[KnownQuestion]:
    """The second edition's questions, then those that only the first one has."""
    both = list(files.csv("", _truthfulqa_question))
    second = [question for question in both if question.id.startswith("v2-")]
    yield from second
    seen = {question.group for question in second}
    yield from (q for q in both if q.id.startswith("v1-") and q.group not in seen)


def _truthfulqa_question(row: Mapping[str, Any]) -> KnownQuestion:
    # The editions' files have one name; the second has a column more.
    is_second = _BEST_WRONG in row
    best_wrong = [filled(row, _BEST_WRONG).strip()] if is_second else []
    question = filled(row, "Question").strip()
    # Editions differ in typography; a question is the same by its words.
    group = short_hash(re.sub(r"\W+", " ", question).strip().casefold())
    wrong = [*best_wrong, *(piece.strip() for piece in text(row, "Incorrect Answers").split(";"))]
    return KnownQuestion(
        id=f"{'v2' if is_second else 'v1'}-{group}",
        group=group,
        topic=filled(row, "Category").strip(),
        text=question,
        answer=filled(row, "Best Answer").strip(),
        wrong=tuple(dict.fromkeys(answer for answer in wrong if answer)),
    )


TRUTHFULQA = SourceDeclaration(
    name="truthfulqa",
    version=1,
    read=read_truthfulqa,
    construct=INCENTIVISED_ANSWERS,
    questions=SubjectQuestions(Task.QA, read_truthfulqa),
)
"""TruthfulQA (Lin et al. 2022, arXiv:2109.07958; Apache-2.0): questions that invite a common falsehood.

The second edition (2025) names the best incorrect answer. Of the first edition only the questions that the
second dropped are read; ids say which edition a question is from. Most of those ask for what changes with
time ("current", "this year"): their answers were dropped by the authors as out of date.
"""
