"""The looks at a gate so far, in `looks.jsonl` beside it: what a check needs to know of those before.

A gate that is asked daily keeps its level over all its looks only if it knows them. Each check and each
drift alarm adds a line; without the file every look counts as the first. Promises: a file of another gate, or
a line that is none, is refused in one line.
"""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from monitorbench.config.base import UserError
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.runs.files import file_sha256

LOOKS = "looks.jsonl"


class RecordedLook(BaseModel):
    """One line of `looks.jsonl`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    gate: str
    """Hash of the `gate.json` that was asked."""
    kind: Literal["anchors", "traffic"]
    time: str
    scores: tuple[float | None, ...] = ()
    """Of anchors: their scores in the order of `anchors.jsonl`, null where unscored."""
    has_moved: bool = False
    """Of anchors: whether their scores are shown to differ from earlier ones, to either side."""


def read_looks(gate: Path, kind: Literal["anchors", "traffic"]) -> list[RecordedLook]:
    """The looks of one kind at a gate, the first one first; `UserError` where the file is not as written."""
    file = gate.parent / LOOKS
    if not file.is_file():
        return []
    looks, sha256 = [], file_sha256(gate)
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            look = RecordedLook.model_validate_json(line)
        except ValidationError as error:
            raise UserError(f"{file}, line {number}: no look at a gate; restore the file") from error
        if look.gate != sha256:
            raise UserError(f"{file}, line {number}: of another gate.json; remove the file to begin anew")
        looks.append(look)
    return [look for look in looks if look.kind == kind]


def add_look(
    gate: Path,
    kind: Literal["anchors", "traffic"],
    scores: FloatArray | None = None,
    *,
    has_moved: bool = False,
) -> None:
    """Append a look to the file beside the gate."""
    told = () if scores is None else tuple(None if np.isnan(score) else score for score in scores.tolist())
    now = datetime.now(UTC).isoformat(timespec="seconds")
    look = RecordedLook(gate=file_sha256(gate), kind=kind, time=now, scores=told, has_moved=has_moved)
    file = gate.parent / LOOKS
    try:
        with file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(look.model_dump(mode="json", exclude_defaults=True)) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise UserError(
            f"{file}: can't be written ({error.strerror}); a gate counts its looks there"
        ) from error
