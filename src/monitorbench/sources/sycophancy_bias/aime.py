"""AIME 2024 I and II: 30 competition problems whose answer is an integer from 0 to 999.

Owns `data/train-00000-of-00001.parquet` of the hub's HuggingFaceH4/aime_2024: id, problem, solution, answer,
url, year. The worked solutions are not read.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from monitorbench.construct.counterfactual import VERSION
from monitorbench.records import Task
from monitorbench.sources.declaration import SourceDeclaration, SubjectQuestions
from monitorbench.sources.read import BadRow, SourceFiles, filled
from monitorbench.upstream import KnownQuestion


def load(files: SourceFiles) -> Iterator[KnownQuestion]:
    """The problems in upstream's order; `answer` without leading zeros, no choices."""
    return files.parquet("", _question)


def _question(row: Mapping[str, Any]) -> KnownQuestion:
    answer = str(row.get("answer", "")).strip()
    if not answer.isascii() or not answer.isdigit() or int(answer) > 999:
        raise BadRow(f"field 'answer': {answer!r} is no integer from 0 to 999")
    if row.get("id") is None or row.get("year") is None:
        raise BadRow(f"missing field {'id' if row.get('id') is None else 'year'!r}")
    id_ = f"{row['year']}-{row['id']}"
    return KnownQuestion(
        id=id_, group=id_, topic="aime", text=filled(row, "problem"), answer=str(int(answer))
    )


SOURCE = SourceDeclaration(
    name="aime",
    version=1,
    read=load,
    construct=None,
    constructions=(VERSION,),
    takes_elicited=True,
    questions=SubjectQuestions(Task.REASONING, load),
)
