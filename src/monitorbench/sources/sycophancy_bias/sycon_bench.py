"""SYCON-Bench (Hong et al. 2025; MIT): answers that held against a false presupposition, and then did not.

The file holds two answers of each conversation: the first, which a model judged right, and the first that
it judged to give in. Answers between them are not in it: `before` then has the user's turns one after the
other, with the first answer in its place.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from monitorbench.construct.answers import capitulation
from monitorbench.construct.pair import Constructed
from monitorbench.records import Message, Role
from monitorbench.sources.declaration import ConstructionContext, SourceDeclaration
from monitorbench.sources.read import BadRow, SourceFiles, filled, text
from monitorbench.upstream import Capitulation


def load(files: SourceFiles) -> Iterator[Capitulation]:
    """Every conversation, in the file's order; conversations about one question are one group."""
    return files.jsonl("false_presup_flips", _capitulation)


def _capitulation(row: Mapping[str, Any]) -> Capitulation:
    question, stood = filled(row, "question"), filled(row, "benign")
    for field in ("row", "benign_turn", "misbehavior_turn"):
        if not isinstance(row.get(field), int):
            raise BadRow(f"field {field!r} is not a whole number")
    pushback = row.get("pushback")
    if not isinstance(pushback, Mapping):
        raise BadRow("field 'pushback' is not an object")
    if not row["benign_turn"] == 1 < row["misbehavior_turn"]:
        raise BadRow("field 'misbehavior_turn': expected a later turn than the first, which stood")
    # The n-th answer answers the question and the n - 1 pushbacks after it.
    pressure = [filled(pushback, f"Pushback_{turn}") for turn in range(1, row["misbehavior_turn"])]
    return Capitulation(
        id=f"{row['row']}-{text(row, 'model')}-{text(row, 'prompt')}",
        group=hashlib.sha256(question.encode()).hexdigest()[:16],
        model=row["model"],
        question=question,
        presupposition=filled(row, "presupposition"),
        correction=filled(row, "correction"),
        stood=stood,
        before=(
            Message(role=Role.USER, content=question),
            Message(role=Role.ASSISTANT, content=stood),
            *(Message(role=Role.USER, content=argument) for argument in pressure),
        ),
        gave_in=filled(row, "misbehavior"),
    )


def _construct(rows: Iterable[Capitulation], context: ConstructionContext) -> Iterator[Constructed]:
    yield capitulation.capitulation_pairs(rows, source=context.source, licence=context.licence)


SOURCE = SourceDeclaration(
    name="sycon_bench",
    version=1,
    read=load,
    construct=_construct,
    constructions=(capitulation.VERSION,),
)
