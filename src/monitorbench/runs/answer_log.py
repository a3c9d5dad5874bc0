"""`answers.jsonl`: what a subject model answered, append-only, one line per request, found by key.

A key hashes the token ids of the request and the model, engine and decoding that answered.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from monitorbench.runs.keyed_log import KeyedLog, open_log, read_log


class Elicited(BaseModel):
    """One answer. `request` is the hash of its messages, by which construction finds it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    request: str
    text: str
    finish_reason: str
    reasoning: str = ""
    """What a subject that reasons first thought, before `text`."""
    prompt_tokens: Annotated[int, Field(ge=0)]
    completion_tokens: Annotated[int, Field(ge=0)]
    seconds: Annotated[float, Field(ge=0)]


def answer_key(token_ids: Sequence[int], subject: Mapping[str, Any]) -> str:
    """Hash what decides an answer: the token ids, and the subject (weights, dtype, engine, decoding)."""
    text = json.dumps([list(token_ids), subject], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


AnswerLog: TypeAlias = KeyedLog[Elicited]


def read_answers(path: Path) -> list[Elicited]:
    """All whole lines of a log, the last one left out when torn; `UserError` on a foreign line."""
    return read_log(path, Elicited)


def open_answer_log(path: Path) -> AbstractContextManager[AnswerLog]:
    """Open for appending, alone. Raises what `open_log` raises."""
    return open_log(path, Elicited)
