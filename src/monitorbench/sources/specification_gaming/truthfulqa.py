"""TruthfulQA (Lin et al. 2022, arXiv:2109.07958; Apache-2.0): questions that invite a common falsehood.

The second edition (2025) names the best incorrect answer. Of the first edition only the questions that the
second dropped are read; ids say which edition a question is from. Most of those ask for what changes with
time ("current", "this year"): their answers were dropped by the authors as out of date.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from monitorbench.construct.answers import incentive
from monitorbench.construct.pair import Constructed
from monitorbench.records import Task
from monitorbench.sources.declaration import ConstructionContext, SourceDeclaration, SubjectQuestions
from monitorbench.sources.read import SourceFiles, filled, text
from monitorbench.upstream import KnownQuestion

_BEST_WRONG = "Best Incorrect Answer"


def load(files: SourceFiles) -> Iterator[KnownQuestion]:
    """The second edition's questions, then those that only the first one has."""
    both = list(files.csv("", _question))
    second = [question for question in both if question.id.startswith("v2-")]
    yield from second
    seen = {question.group for question in second}
    yield from (q for q in both if q.id.startswith("v1-") and q.group not in seen)


def _question(row: Mapping[str, Any]) -> KnownQuestion:
    # The editions' files have one name; the second has a column more.
    is_second = _BEST_WRONG in row
    best_wrong = [filled(row, _BEST_WRONG).strip()] if is_second else []
    question = filled(row, "Question").strip()
    # Editions differ in typography; a question is the same by its words.
    group = hashlib.sha256(re.sub(r"\W+", " ", question).strip().casefold().encode()).hexdigest()[:16]
    wrong = [*best_wrong, *(piece.strip() for piece in text(row, "Incorrect Answers").split(";"))]
    return KnownQuestion(
        id=f"{'v2' if is_second else 'v1'}-{group}",
        group=group,
        topic=filled(row, "Category").strip(),
        text=question,
        answer=filled(row, "Best Answer").strip(),
        wrong=tuple(dict.fromkeys(answer for answer in wrong if answer)),
    )


def _construct(questions: Iterable[KnownQuestion], context: ConstructionContext) -> Iterator[Constructed]:
    yield incentive.incentivised_answers(
        list(questions), seed=context.seed, source=context.source, licence=context.licence
    )


SOURCE = SourceDeclaration(
    name="truthfulqa",
    version=1,
    read=load,
    construct=_construct,
    constructions=(incentive.VERSION,),
    questions=SubjectQuestions(Task.QA, load),
)
