"""How a score becomes a label: the judge's own answer, or a calibrated threshold; applied when scoring.

A verdict never holds its operating point, so one log is read at as many as one likes. Promises: a
threshold without a score gives no label, whatever the judge answered; a threshold is applied only to
the monitor it was calibrated for; the model in JSON says where it was calibrated, and for what.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from monitorbench.config.base import UserError
from monitorbench.metrics.auroc import Scores
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.guarantees.order_statistic import Method, MixOf
from monitorbench.records import Label
from monitorbench.runs.directory import read_checked, read_finished
from monitorbench.scoring.calibration_split import Part


class CalibratedThreshold(BaseModel):
    """A threshold, what it promises, and where it comes from; `threshold` None with a `reason`.

    An alarm is a score strictly above `threshold`. `n` counts questions with a benign sample,
    `n_unscored` those of them where one has no score. `attained` is what the calibration split
    attests: the violation probability, <= delta (Neyman-Pearson), or the left side of the
    conformal inequality, <= alpha. `delta` is None for conformal risk control.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    method: Method | Literal["few_labels"]
    monitor: str
    category: str
    """Category that the threshold is for; empty: for all categories."""
    data: str
    part: Part
    alpha: float
    delta: float | None = None
    n: int
    n_unscored: int
    threshold: float | None
    attained: float | None = None
    reason: str = ""
    mix: MixOf = "drawn"
    """Shares of cells that the promise holds for; `drawn` where the calibration split has them, so that all
    questions weigh the same."""
    effective_n: float | None = None
    """Kish's: how many questions of equal weight would say as much; None where they do weigh the same."""
    n_candidates: int = 1
    """Number of monitors among which the same calibration split chooses: each threshold keeps its share of
    delta (of alpha under `conformal_risk`), so that the promise holds for whichever is chosen."""

    @model_validator(mode="after")
    def _threshold_or_reason(self) -> Self:
        if (self.threshold is None) == (not self.reason):
            raise ValueError("expected either a threshold or the reason why there is none")
        return self


class OperatingPoint(BaseModel):
    """`greedy`: the judge's own answer. `threshold`: an alarm where score > threshold.

    `thresholds` is empty for greedy, one for all categories, or one a category. JSON both ways:
    `model_dump_json()` and `OperatingPoint.model_validate_json(text)`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rule: Literal["greedy", "threshold"]
    thresholds: tuple[CalibratedThreshold, ...] = ()

    @model_validator(mode="after")
    def _thresholds_fit_the_rule(self) -> Self:
        if (self.rule == "threshold") != bool(self.thresholds):
            raise ValueError(f"rule={self.rule}: {len(self.thresholds)} thresholds given")
        categories = [threshold.category for threshold in self.thresholds]
        if len(set(categories)) < len(categories) or ("" in categories and len(categories) > 1):
            raise ValueError("thresholds: expected one for all categories, or one for each")
        if len({threshold.monitor for threshold in self.thresholds}) > 1:
            raise ValueError("thresholds: of more than one monitor")
        return self


POINT_FILE = "operating_point.json"
"""Name of the point's file in a run of `calibrate.py`."""
GREEDY = OperatingPoint(rule="greedy")
"""The papers' protocol."""


def threshold_point(*thresholds: CalibratedThreshold) -> OperatingPoint:
    """The operating point of one calibrated threshold, or of one a category.

    A category without a threshold stays without: its samples will be unscored. Raises `UserError`
    with the reasons where no threshold was found at all.
    """
    if all(threshold.threshold is None for threshold in thresholds):
        reasons = "; ".join(
            f"{threshold.category or 'all categories'}: {threshold.reason}" for threshold in thresholds
        )
        raise UserError(
            f"no threshold for {thresholds[0].monitor if thresholds else 'any monitor'}: {reasons}"
        )
    return OperatingPoint(rule="threshold", thresholds=thresholds)


def labels_at(
    point: OperatingPoint,
    *,
    monitor: str,
    scores: Scores,
    categories: Sequence[str],
) -> list[Label | None]:
    """A label a sample by a point with thresholds, None where unscored; both arguments are [samples].

    A threshold doesn't read the judge's answers, so one that is no label still gets one where there is a
    score. Raises `UserError` where the point was calibrated for another monitor than `monitor` or says
    nothing of a category, `ValueError` for lengths that differ.
    """
    if len(scores) != len(categories):
        raise ValueError(f"{len(scores)} scores, {len(categories)} categories: expected as many")
    if point.thresholds[0].monitor != monitor:
        raise UserError(
            f"the operating point was calibrated for {point.thresholds[0].monitor}, not for {monitor}: "
            "calibrate one for it"
        )
    values = np.asarray(scores, dtype=np.float64)
    limits = _limits(point, categories)
    scored = ~(np.isnan(values) | np.isnan(limits))
    codes = np.where(scored, (values > limits).astype(np.int8), np.int8(2))
    names = (Label.BENIGN, Label.MISBEHAVIOR, None)
    return [names[code] for code in codes.tolist()]


def _limits(point: OperatingPoint, categories: Sequence[str]) -> FloatArray:
    """The threshold that applies to each sample [samples], NaN where its category has none."""
    by_category = {
        threshold.category: np.nan if threshold.threshold is None else threshold.threshold
        for threshold in point.thresholds
    }
    if "" in by_category:
        return np.full(len(categories), by_category[""])
    if unknown := set(categories) - set(by_category):
        raise UserError(
            f"the operating point has no threshold for category {', '.join(sorted(unknown))}, of which the "
            "calibration split has no sample; add some, or calibrate with calibrate.per_category=false"
        )
    return np.array([by_category[category] for category in categories], dtype=np.float64)


def read_operating_point(directory: Path) -> OperatingPoint:
    """The operating point of a finished calibration; `UserError` where there is none."""
    file = directory / POINT_FILE
    if "operating_point" not in read_finished(directory)["results"] or not file.is_file():
        raise UserError(f"{directory}: not a calibration; expected a run of `monitorbench calibrate`")
    try:
        return OperatingPoint.model_validate_json(json.dumps(read_checked(directory, POINT_FILE)))
    except ValidationError as error:
        raise UserError(
            f"{file}: no operating point of this version; run `monitorbench calibrate` again"
        ) from error


def longest_calibrated(directory: Path) -> float | None:
    """Prompt tokens of the longest text that a calibration saw; None where they were not counted."""
    longest: float | None = read_finished(directory)["results"].get("longest_prompt")
    return longest
