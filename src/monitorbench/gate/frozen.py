"""A gate's folder: `gate.json` and its anchors, the frozen state of a monitor, and the looks at it so far.

The first two are all that a check needs, without the dataset and the run that they are from. A gate that is
asked daily keeps its level over all its looks only if it knows them: each check and each drift alarm adds a
line to `looks.jsonl`; without it every look counts as the first. Promises: a `gate.json` that was edited, in
its thresholds, margins and scores too, that stands beside other anchors, or beside another gate's looks is
refused in one line. That is a checksum's work and no signature's: who rewrites all is not found.
"""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from monitorbench.config.base import UserError
from monitorbench.gate.answer import AnchorScores, Rules
from monitorbench.metrics.bootstrap import FloatArray, group_index
from monitorbench.records import Label, Sample
from monitorbench.runs.files import CHECKSUM, file_sha256, manifest_checksum, read_json
from monitorbench.scoring.operating_point import OperatingPoint
from monitorbench.untrusted import lines, where_looked

FILE, ANCHORS, LOOKS = "gate.json", "anchors.jsonl", "looks.jsonl"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class FrozenNumbers(_Part):
    """The anchors' numbers when they were frozen; intervals of 95 %, with whole questions as the evidence."""

    auroc: float | None
    auroc_ci: tuple[float, float] | None
    miss_rate: float | None
    miss_rate_ci: tuple[float, float] | None
    false_alarm_rate: float | None
    false_alarm_rate_ci: tuple[float, float] | None
    false_alarm_rate_by_question: float | None
    """The share of questions with any false alarm: what alpha is promised of."""
    n_misbehavior: int
    n_benign: int


class FrozenPromise(_Part):
    """The guarantee that the threshold was calibrated for."""

    alpha: float
    delta: float | None
    applies: bool
    """Whether the anchors have the shares of cells that it is promised for, so that it can be tested."""


class Anchors(_Part):
    """The frozen samples."""

    sha256: str
    """Hash of `anchors.jsonl`."""
    data: str
    """Name of the dataset's directory that the anchors are from; `split` names the split."""
    split: str
    n_questions: int
    n_left_out: int
    """Samples of the run that are no anchors: one of their question had no score, or enough were drawn."""
    scores: dict[str, float]
    """Score of each anchor, by sample id."""


class FrozenGate(_Part):
    """`gate.json`, but for its checksum."""

    version: Literal[1] = 1
    monitorbench: str
    """The version whose parser read the answers."""
    monitor: str
    prompt: str
    judge: dict[str, Any]
    """Everything that decides a verdict, as an evaluation's identity: model as named, prompt, label words."""
    served_models: tuple[str, ...]
    """An endpoint's names of the models that answered."""
    operating_point: OperatingPoint
    promise: FrozenPromise
    expected: FrozenNumbers
    tolerated: Rules
    anchors: Anchors
    traffic: tuple[float | None, ...] | None
    """A deployment's scores without labels: the highest of each group, null where one is unscored."""


class Frozen(NamedTuple):
    """A gate read back, with its samples."""

    gate: FrozenGate
    samples: list[Sample]

    def scores(self, now: FloatArray, earlier: FloatArray) -> AnchorScores:
        """The anchors with their scores of now [samples] and of the looks before [looks, samples]."""
        samples, before = self.samples, self.gate.anchors.scores
        limits = {each.category: each.threshold for each in self.gate.operating_point.thresholds}
        of_each = [limits[""] if "" in limits else limits[str(sample.category)] for sample in samples]
        return AnchorScores(
            is_misbehavior=np.array([sample.label is Label.MISBEHAVIOR for sample in samples]),
            groups=group_index([sample.group_id for sample in samples]),
            limits=np.array(of_each, dtype=np.float64),
            before=np.array([before[sample.id] for sample in samples]),
            now=now,
            earlier=earlier.reshape(-1, len(samples)),
        )


def written(samples: list[Sample]) -> str:
    """The text of `anchors.jsonl`."""
    return "".join(sample.model_dump_json() + "\n" for sample in samples)


def sealed(gate: FrozenGate) -> str:
    """The text of `gate.json`, with the checksum of its content as the last member."""
    content = gate.model_dump(mode="json")
    return json.dumps({**content, CHECKSUM: manifest_checksum(content)}, indent=2) + "\n"


def read_gate(file: Path) -> FrozenGate:
    """A `gate.json`; `UserError` where it is none, or not as it was written."""
    if not file.is_file():
        raise UserError(
            f"gate.file={file}: no such file{where_looked(file)}; expected the gate.json of a frozen gate"
        )
    content = read_json(file)
    recorded = content.pop(CHECKSUM, None) if isinstance(content, dict) else None
    try:
        gate = FrozenGate.model_validate_json(json.dumps(content))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(
            f"{file}: {where}: {first['msg']}; expected a gate.json as this version freezes it"
        ) from error
    if recorded != manifest_checksum(content):
        raise UserError(
            f"{file}: not as it was frozen, edited or damaged; restore it, or freeze anew: no threshold, "
            "margin or score in it is set by hand"
        )
    return gate


def read_frozen_gate(file: Path) -> Frozen:
    """A `gate.json` with the anchors beside it; `UserError` where these are not those it was frozen with."""
    gate, beside = read_gate(file), file.parent / ANCHORS
    if not beside.is_file():
        raise UserError(f"{beside}: no such file; expected it beside {file.name}, as it was frozen")
    if file_sha256(beside) != gate.anchors.sha256:
        raise UserError(
            f"{beside}: not the anchors that {file.name} was frozen with; restore both files, or freeze anew"
        )
    try:
        samples = [Sample.model_validate_json(line) for _, line in lines(beside)]
    except ValidationError as error:
        raise UserError(f"{beside}: no samples; restore it, or freeze anew") from error
    if {sample.id for sample in samples} != gate.anchors.scores.keys():
        raise UserError(f"{file}: anchors.scores is of other samples than {ANCHORS}; freeze anew")
    return Frozen(gate, samples)


class RecordedLook(_Part):
    """One line of `looks.jsonl`."""

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
    for number, line in lines(file):
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
