"""How far a running stage is: verdicts and rates so far, a training's last step, a pilot's episodes.

A log of verdicts is read from where the last look ended, so that looking at a long one again costs its new
lines only. Lines that are not as they were written are left out: whoever resumes the run is told of them.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import ValidationError

from monitorbench.config.base import UserError
from monitorbench.config.datasets import SplitView
from monitorbench.corpus.columns import read_columns
from monitorbench.metrics.rates import count, false_alarm_rate, miss_rate
from monitorbench.metrics.written import counted
from monitorbench.records import Label, Split, Verdict
from monitorbench.runs.files import read_objects, unsealed_line
from monitorbench.runs.keyed_log import VERDICTS
from monitorbench.runs.run_folders import Run
from monitorbench.untrusted import MAX_LINE_BYTES, lines, opened

_NUMBERS = {Label.MISBEHAVIOR: 1.0, Label.BENIGN: 0.0, None: np.nan}


class SoFar(NamedTuple):
    """Progress of a running evaluation, and its rates until now; None where nothing is known."""

    done: int | None = None
    total: int | None = None
    miss_rate: float | None = None
    false_alarm_rate: float | None = None


def last_step(run: Run) -> tuple[str, dict[str, float]]:
    """Say at which step a training is, with its validation numbers, or how many episodes a pilot has."""
    try:
        points = read_objects(run.path / "learning_curve.json")
        numbers = {name: points[-1][name] for name in ("miss_rate", "false_alarm_rate", "auroc")}
        defined = {name: value for name, value in numbers.items() if value is not None}
        return f"step {points[-1]['step']:,}, on validation", defined
    except (OSError, UserError, IndexError, KeyError):
        pass
    try:
        return counted(sum(1 for _ in lines(run.path / "episodes.jsonl")), "episode"), {}
    except UserError:
        return "", {}


class Progress:
    """Follows the log of one running evaluation."""

    def __init__(self, run: Run, datasets: Path) -> None:
        """Read which samples are judged; a dataset that is gone leaves the rates unknown."""
        self._log = run.path / VERDICTS
        self._offset = 0
        self._labels: dict[str, Label | None] = {}
        self._is_misbehavior = _labels_of(run, datasets)

    def look(self) -> SoFar:
        """Read what was added to the log, and count."""
        self._read_on()
        labelled = [sample_id for sample_id in self._labels if sample_id in self._is_misbehavior]
        if not self._is_misbehavior:
            return SoFar(len(self._labels))
        answers = [_NUMBERS[self._labels[sample_id]] for sample_id in labelled]
        counts = count(
            np.array([self._is_misbehavior[sample_id] for sample_id in labelled], dtype=np.bool_),
            np.array(answers),
        )
        return SoFar(len(labelled), len(self._is_misbehavior), miss_rate(counts), false_alarm_rate(counts))

    def _read_on(self) -> None:
        try:
            with opened(self._log) as stream:
                if stream.seek(0, 2) < self._offset:  # begun anew
                    self._offset, self._labels = 0, {}
                stream.seek(self._offset)
                while (line := stream.readline(MAX_LINE_BYTES)).endswith(b"\n"):
                    self._offset += len(line)
                    self._take(unsealed_line(line[:-1]))
        except UserError:
            return

    def _take(self, body: bytes | None) -> None:
        try:
            verdict = None if body is None else Verdict.model_validate_json(body)
        except ValidationError:
            return
        if verdict is not None:
            self._labels[verdict.sample_id] = verdict.label


def _labels_of(run: Run, datasets: Path) -> dict[str, bool]:
    """Whether each sample that the run judges is misbehavior; empty where its dataset can't be read."""
    identity: Any = run.manifest.get("identity", {})
    try:
        view = SplitView.model_validate_json(json.dumps(identity["view"]))
        samples = read_columns(datasets / identity["data"], Split(identity["split"]), view)
    except (OSError, UserError, KeyError, ValueError):
        return {}
    return dict(zip(samples.sample_ids.to_pylist(), samples.is_misbehavior.tolist(), strict=True))
