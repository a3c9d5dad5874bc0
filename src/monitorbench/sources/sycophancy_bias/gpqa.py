"""GPQA Diamond (Rein et al. 2023, arXiv:2311.12022; CC-BY-4.0, gated): 198 graduate-level questions.

Owns `gpqa_diamond.csv` of the hub's Idavidrein/gpqa. Upstream gives the right answer in a column of its own;
so that its place tells nothing, the choices are put in an order drawn from the record's id.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any

from monitorbench.construct.counterfactual import VERSION
from monitorbench.records import Task
from monitorbench.sources.declaration import SourceDeclaration, SubjectQuestions
from monitorbench.sources.read import SourceFiles, filled
from monitorbench.upstream import KnownQuestion

_WRONG = tuple(f"Incorrect Answer {n}" for n in (1, 2, 3))


def load(files: SourceFiles) -> Iterator[KnownQuestion]:
    """The questions in upstream's order, under upstream's record ids."""
    return files.csv("", _question)


def _question(row: Mapping[str, Any]) -> KnownQuestion:
    id_ = filled(row, "Record ID").strip()
    answer = filled(row, "Correct Answer").strip()
    wrong = tuple(filled(row, column).strip() for column in _WRONG)
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


SOURCE = SourceDeclaration(
    name="gpqa",
    version=1,
    read=load,
    construct=None,
    constructions=(VERSION,),
    takes_elicited=True,
    questions=SubjectQuestions(Task.REASONING, load),
)
