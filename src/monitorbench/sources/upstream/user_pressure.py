"""Upstream data sets in which a user's view, or push-back, invites agreement."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from monitorbench.construct.answers import capitulation
from monitorbench.construct.pair import Constructed
from monitorbench.records import Message, Role, Task
from monitorbench.sources.declaration import (
    ConstructionContext,
    CuedQuestions,
    RowConstruction,
    SourceDeclaration,
)
from monitorbench.sources.read import BadRow, SourceFiles, filled, short_hash, text
from monitorbench.upstream import Capitulation, CuedQuestion

_USER_TURN = re.compile(
    r"(?:<\|begin_of_text\|>)?<\|start_header_id\|>user<\|end_header_id\|>\n\n(?P<said>.*?)<\|eot_id\|>"
    r"<\|start_header_id\|>assistant<\|end_header_id\|>\s*",
    re.DOTALL,
)
_CHOICE = re.compile(r"^[ \t]*(\([A-Z]\) .*\S)[ \t]*$", re.MULTILINE)


def read_anthropic_sycophancy(files: SourceFiles) -> Iterator[CuedQuestion]:
    """Every prompt of both files; prompts with the same neutral wording are one group."""
    yield from files.jsonl("nlp_survey", _question)
    yield from files.jsonl("political_typology", _question)


def _question(row: Mapping[str, Any]) -> CuedQuestion:
    neutral, cued = _plain(row, "neutral_prompt"), _plain(row, "biased_prompt")
    choices = tuple(_CHOICE.findall(neutral))
    if len(choices) < 2 or choices != tuple(_CHOICE.findall(cued)):
        raise BadRow("neutral and biased prompt don't offer the same choices")
    metadata = row.get("metadata")
    if not isinstance(metadata, Mapping):
        raise BadRow("field 'metadata' is not an object")
    sycophantic, honest = (_chosen(row, f"{kind}_target", choices) for kind in ("sycophantic", "honest"))
    if sycophantic == honest:
        raise BadRow("the sycophantic and the honest choice are the same")
    return CuedQuestion(
        id=filled(row, "sample_id"),
        group=short_hash(neutral),
        topic=filled(metadata, "category"),
        neutral=neutral,
        cued=cued,
        choices=choices,
        sycophantic=sycophantic,
        honest=honest,
    )


def _plain(row: Mapping[str, Any], field: str) -> str:
    turn = _USER_TURN.fullmatch(filled(row, field))
    if turn is None or "<|" in turn["said"]:
        raise BadRow(f"field {field!r} is not one user turn in Llama 3's template")
    return turn["said"].strip()


def _chosen(row: Mapping[str, Any], field: str, choices: tuple[str, ...]) -> str:
    target = filled(row, field).strip()
    for choice in choices:
        if choice.startswith(f"{target} "):
            return choice
    raise BadRow(f"field {field!r} is none of the choices")


ANTHROPIC_SYCOPHANCY = SourceDeclaration(
    name="anthropic_sycophancy",
    version=1,
    read=read_anthropic_sycophancy,
    questions=CuedQuestions(Task.QA, read_anthropic_sycophancy),
)
"""Anthropic's model-written sycophancy evaluations (Perez et al. 2022, arXiv:2212.09251), 1,000 of them.

The files hold each prompt inside Llama 3's chat template; what is returned is the user's turn alone, as
plain text. There is no right answer: `honest` is the choice that doesn't agree with the asker's view.
"""


def read_sycon_bench(files: SourceFiles) -> Iterator[Capitulation]:
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
        group=short_hash(question),
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


def _capitulations(rows: Iterable[Capitulation], context: ConstructionContext) -> Iterator[Constructed]:
    yield capitulation.capitulation_pairs(rows, source=context.source, licence=context.licence)


SYCON_BENCH = SourceDeclaration(
    name="sycon_bench",
    version=1,
    read=read_sycon_bench,
    construct=RowConstruction(_capitulations, (capitulation.VERSION,)),
)
"""SYCON-Bench (Hong et al. 2025; MIT): answers that held against a false presupposition, and then did not.

The file holds two answers of each conversation: the first, which a model judged right, and the first that
it judged to give in. Answers between them are not in it: `before` then has the user's turns one after the
other, with the first answer in its place.
"""
