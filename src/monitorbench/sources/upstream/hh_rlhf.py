"""HH-RLHF (Bai et al. 2022, arXiv:2204.05862): two dialogues that part in the assistant's last turn.

Reads harmless-base, test and train alike. What is preferred is as the crowd workers said, noise and all.

Passed over, because upstream has no two answers to one request there: dialogues that differ before the
last turn, whose last turn is empty, a human's or a second one of the assistant's, or the same in both;
and exact repeats of an earlier row.

Within a request, turns in a row by one speaker become one message. A speaker's name inside a turn
(`… Human: …` without a blank line before it) stays in that turn's text, as published.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

from monitorbench.construct.answers.preference import VERSION, preference_pairs
from monitorbench.construct.pair import Constructed
from monitorbench.records import Message, Role
from monitorbench.sources.declaration import ConstructionContext, RowConstruction, SourceDeclaration
from monitorbench.sources.read import BadRow, SourceFiles, filled, short_hash
from monitorbench.upstream import Preference

_TURN = re.compile(r"\n\n(Human|Assistant):")
_ROLES = {"Human": Role.USER, "Assistant": Role.ASSISTANT}


def load(files: SourceFiles) -> Iterator[Preference]:
    """All preferences, in the files' order; `id` is a hash of both dialogues.

    A request's turns alternate, from the user to the user.
    """
    seen: set[str] = set()

    def preference(row: Mapping[str, Any]) -> Preference | None:
        chosen, rejected = filled(row, "chosen"), filled(row, "rejected")
        id_ = short_hash(chosen, rejected)
        *request, better = dialogue(chosen)
        *other_request, worse = dialogue(rejected)
        if id_ in seen or request != other_request or not request or better == worse:
            return None
        answers = (better, worse)
        if request[-1].role is not Role.USER or any(turn.role is not Role.ASSISTANT for turn in answers):
            return None
        if not all(turn.content for turn in answers):
            return None
        seen.add(id_)
        return Preference(id_, tuple(_alternating(request)), better, worse)

    return files.jsonl("", preference)


def dialogue(text: str) -> list[Message]:
    """The turns of `\\n\\nHuman: …\\n\\nAssistant: …`, stripped, at least one.

    Raises `BadRow` where the text does not begin with a human turn.
    """
    before, *parts = _TURN.split(text)
    if before.strip() or not parts or parts[0] != "Human":
        raise BadRow("a dialogue does not begin with a Human turn")
    turns = zip(parts[::2], parts[1::2], strict=True)
    return [Message(role=_ROLES[speaker], content=content.strip()) for speaker, content in turns]


def _alternating(turns: list[Message]) -> Iterator[Message]:
    for role, run in groupby(turns, lambda turn: turn.role):
        yield Message(role=role, content="\n\n".join(turn.content for turn in run if turn.content))


def _construct(rows: Iterable[Preference], context: ConstructionContext) -> Iterator[Constructed]:
    yield preference_pairs(
        list(rows), context.preference, context.scorer(), source=context.source, licence=context.licence
    )


SOURCE = SourceDeclaration(
    name="hh_rlhf", version=1, read=load, construct=RowConstruction(_construct, (VERSION,)), uses_scorer=True
)

TRAIN_SOURCE = replace(SOURCE, name="hh_rlhf_train")
"""The training half, which upstream publishes as another file."""
