"""Anthropic's model-written sycophancy evaluations (Perez et al. 2022, arXiv:2212.09251), 1,000 of them.

The files hold each prompt inside Llama 3's chat template; what is returned is the user's turn alone, as
plain text. There is no right answer: `honest` is the choice that doesn't agree with the asker's view.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from monitorbench.records import Task
from monitorbench.sources.declaration import SourceDeclaration, SubjectQuestions
from monitorbench.sources.read import BadRow, SourceFiles, filled, short_hash
from monitorbench.upstream import CuedQuestion

_USER_TURN = re.compile(
    r"(?:<\|begin_of_text\|>)?<\|start_header_id\|>user<\|end_header_id\|>\n\n(?P<said>.*?)<\|eot_id\|>"
    r"<\|start_header_id\|>assistant<\|end_header_id\|>\s*",
    re.DOTALL,
)
_CHOICE = re.compile(r"^[ \t]*(\([A-Z]\) .*\S)[ \t]*$", re.MULTILINE)


def load(files: SourceFiles) -> Iterator[CuedQuestion]:
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


SOURCE = SourceDeclaration(
    name="anthropic_sycophancy", version=1, read=load, questions=SubjectQuestions(Task.QA, load, "cued")
)
