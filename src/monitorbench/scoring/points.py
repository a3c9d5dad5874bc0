"""Evaluations read at calibrated operating points: each point at the one run of the judge it is bound to."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from monitorbench.config.base import UserError
from monitorbench.config.evaluation import Stakes
from monitorbench.metrics.at_point import rates_at
from monitorbench.metrics.results import PointFacts, ThresholdFacts
from monitorbench.records import Label
from monitorbench.scoring.calibrate import judge_id, read_operating_point
from monitorbench.scoring.evaluations import Evaluation, unscored_reasons
from monitorbench.scoring.numbers import Drawn
from monitorbench.scoring.operating_point import OperatingPoint, labels_at
from monitorbench.scoring.thresholds import CalibratedThreshold


class PointAt(NamedTuple):
    """An operating point, and the run of its judge with the answers read at it."""

    directory: Path
    """The run of `calibrate.py`."""
    point: OperatingPoint
    evaluation: Evaluation

    @property
    def name(self) -> str:
        """The calibration's directory name."""
        return self.directory.resolve().name

    @property
    def thresholds(self) -> list[ThresholdFacts]:
        """What the point promises."""
        return [_facts(one) for one in self.point.thresholds]


def points_at(directories: Sequence[Path], evaluations: Sequence[Evaluation]) -> list[PointAt]:
    """Each calibration at the evaluation of the same judge.

    Raises `UserError` for a directory that is none, where a point was calibrated for none of these judges,
    and where two are for one judge.
    """
    # By hash: of several seeds the runs here may have longer names than calibrations know.
    of_judge = {e.judge_hash: e for e in evaluations}
    taken: dict[str, Path] = {}
    found = []
    for directory in directories:
        point = read_operating_point(directory)
        calibrated = point.thresholds[0].monitor if point.thresholds else "no judge"
        judge = calibrated.rpartition("/")[2]
        if judge not in of_judge:
            here = ", ".join(sorted(judge_id(e) for e in evaluations))
            raise UserError(
                f"{directory}: the operating point was calibrated for {calibrated}, not for {here}: "
                "calibrate one for it"
            )
        if judge in taken:
            raise UserError(f"{directory} and {taken[judge]}: two points for {calibrated}; expected one")
        taken[judge] = directory
        found.append(PointAt(directory, point, answers_at(point, of_judge[judge])))
    return found


def answers_at(point: OperatingPoint, evaluation: Evaluation) -> Evaluation:
    """The run with its answers read at an operating point of its judge."""
    judged = evaluation.judged
    labels = labels_at(
        point,
        monitor=point.thresholds[0].monitor,
        scores=judged.scores,
        answers=[None] * len(judged),  # a threshold doesn't read them
        categories=[judged.category_names[i] for i in judged.categories.tolist()],
    )
    answers = {Label.MISBEHAVIOR: 1.0, Label.BENIGN: 0.0, None: np.nan}
    flagged = np.array([answers[label] for label in labels])
    return evaluation._replace(judged=replace(judged, flagged=flagged))


def facts_of(points: Sequence[PointAt], stakes: Stakes, drawn: Drawn) -> dict[str, dict[str, PointFacts]]:
    """Monitor, prompt: the point and its numbers on the test split."""
    found: dict[str, dict[str, PointFacts]] = {}
    for one in points:
        e = one.evaluation
        found.setdefault(e.monitor, {})[e.prompt] = PointFacts(
            name=one.name,
            calibrated_on=one.point.thresholds[0].data,
            thresholds=one.thresholds,
            rates=rates_at(e.judged, stakes, **drawn),
            unscored=unscored_reasons(e),
        )
    return found


def _facts(one: CalibratedThreshold) -> ThresholdFacts:
    return ThresholdFacts(
        category=one.category,
        threshold=one.threshold,
        method=one.method,
        alpha=one.alpha,
        delta=one.delta,
        n=one.n,
        reason=one.reason,
    )
