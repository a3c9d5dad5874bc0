"""Evaluations read at calibrated operating points: each point at the one run of the judge it is bound to."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, cast

from monitorbench.config.base import UserError
from monitorbench.config.evaluation import Stakes
from monitorbench.judging.reproducible import refuse_batch_dependent
from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.drift import DRIFTED, Drift, drift
from monitorbench.metrics.points_in_words import drift_in_words
from monitorbench.metrics.results import OperatingPointFacts, ThresholdFacts
from monitorbench.metrics.summary import rates_at
from monitorbench.metrics.table import Place, Table
from monitorbench.records import Split
from monitorbench.runs.directory import read_finished
from monitorbench.scoring.calibrate import calibration_rates, flags_nothing, judge_id
from monitorbench.scoring.evaluations import Evaluation, answers_at, read_evaluation, unscored_reasons
from monitorbench.scoring.operating_point import OperatingPoint, longest_calibrated, read_operating_point

_log = logging.getLogger(__name__)


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
    def calibrated_on(self) -> str:
        """The dataset's directory name."""
        return self.point.thresholds[0].data

    @property
    def is_elsewhere(self) -> bool:
        """Whether it was calibrated on another dataset, so that it promises nothing here."""
        return self.calibrated_on != self.evaluation.data.name

    @property
    def thresholds(self) -> list[ThresholdFacts]:
        """The point's thresholds and what they promise."""
        keys = set(ThresholdFacts.__annotations__)
        return [cast(ThresholdFacts, each.model_dump(include=keys)) for each in self.point.thresholds]


def points_at(
    directories: Sequence[Path], evaluations: Sequence[Evaluation], *, other_dataset: bool
) -> list[PointAt]:
    """Each calibration at the evaluation of the same judge.

    Raises `UserError` for a directory that is none, where a point was calibrated for none of these judges,
    where two are for one judge, where the run's scores depend on what was batched together, and, unless
    `other_dataset`, for one that was calibrated on another dataset.
    """
    # By hash: of several seeds the runs here may have longer names than calibrations know.
    of_judge = {e.judge_hash: e for e in evaluations}
    by_judge: dict[str, Path] = {}
    points = []
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
        if judge in by_judge:
            raise UserError(f"{directory} and {by_judge[judge]}: two points for {calibrated}; expected one")
        by_judge[judge] = directory
        refuse_batch_dependent(of_judge[judge].directory, read_finished(of_judge[judge].directory))
        one = PointAt(directory, point, answers_at(point, of_judge[judge]))
        if one.is_elsewhere and not other_dataset:
            raise UserError(
                f"{directory}: calibrated on {one.calibrated_on}, but the run judged "
                f"{one.evaluation.data.name}, where its promise does not hold; calibrate on that dataset, or "
                "type score.other_dataset=true to apply it all the same"
            )
        points.append(one)
    return points


def add_points(
    table: Table, points: Sequence[PointAt], stakes: Stakes, seed: int
) -> dict[str, dict[str, OperatingPointFacts]]:
    """Add what the points come to on both splits to the table; returns them by monitor and prompt."""
    facts: dict[str, dict[str, OperatingPointFacts]] = {}
    for point in points:
        e = point.evaluation
        rates, on_calibration = rates_at(e.judged, stakes), calibration_rates(point.directory)
        for split, numbers in ((Split.TEST, rates), (Split.CALIBRATION, on_calibration)):
            table.add(Place(e.monitor, e.prompt, OVERALL, point.name, split.value), numbers or {})
        facts.setdefault(e.monitor, {})[e.prompt] = OperatingPointFacts(
            name=point.name,
            calibrated_on=point.calibrated_on,
            thresholds=point.thresholds,
            flags_nothing=flags_nothing(rates),
            flags_nothing_there=on_calibration is not None and flags_nothing(on_calibration),
            drift=_drift(point, seed),
            longest_prompts=[longest_calibrated(point.directory), e.usage["longest_prompt"]],
            unscored=unscored_reasons(e),
        )
    return facts


def _drift(one: PointAt, seed: int) -> Drift | None:
    """The benign scores here against those that the point was calibrated on, where these are still there."""
    judged = Path(read_finished(one.directory)["results"]["judged"])
    try:
        before = read_evaluation(one.evaluation.data.parent, judged)
    except UserError as error:  # moved or removed: the threshold stands without it
        _log.info("score: no check for drift of %s: %s", one.name, error)
        return None
    shift = drift(before.judged, one.evaluation.judged, seed=seed)
    if shift is not None and shift["p_value"] < DRIFTED:
        _log.warning("score: %s: %s", one.name, drift_in_words(shift))
    return shift
