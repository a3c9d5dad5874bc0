"""Cascades: a cheap monitor answers where it is sure; a strong one where the cheap one's score is in a band.

The band is chosen on the calibration split alone, for a stated budget. The combined score stays one
score for AUROC and thresholds: outside the band [low, high] it is the cheap score, inside it is
low + (high - low)·strong. So it never falls when either score rises, what the strong monitor judged
stays between what the cheap one cleared and what it condemned, an empty band is the cheap monitor
to the bit and the band [0, 1] the strong one.

Missing scores: a sample the cheap monitor could not score is sent on; one that was sent on and the
strong monitor could not score is unscored.
"""

from typing import Annotated, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from monitorbench.config.base import UserError
from monitorbench.metrics.auroc import Scores
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.scoring.calibration_split import (
    CalibrationScores,
    FittedOn,
    refuse_one_label,
    refuse_threshold_half,
)
from monitorbench.scoring.ensembles import pessimistic_auroc

_STARTS = 128
"""How many lower ends of the band are tried, spread evenly over the calibration samples."""
Probability = Annotated[float, Field(ge=0, le=1)]


class Band(NamedTuple):
    """Cheap scores in [low, high] are uncertain; low < high."""

    low: Probability
    high: Probability


class Cascade(BaseModel):
    """Which two monitors, and where the first passes on. `band` None: nowhere, nor what it can't score.

    `budget` is the share of the samples of `fitted_on` that was allowed to be sent on,
    `calibration_share` what was; all three are None where the band was given by hand.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    cheap: str
    strong: str
    band: Band | None
    fitted_on: FittedOn | None = None
    budget: Probability | None = None
    calibration_share: Probability | None = None

    @model_validator(mode="after")
    def _band_has_a_width(self) -> Self:
        if self.band and self.band.low >= self.band.high:
            raise ValueError(f"band {list(self.band)}: expected low < high, or no band")
        return self

    @property
    def name(self) -> str:
        """Both monitors, as tables show it."""
        return f"cascade({self.cheap},{self.strong})"


class CascadeScores(NamedTuple):
    """Combined `scores` [samples], NaN where unscored, and which samples were `sent` on [samples]."""

    scores: FloatArray
    sent: NDArray[np.bool_]


def sent_on(cascade: Cascade, cheap: Scores) -> NDArray[np.bool_]:
    """Which samples the strong monitor judges [samples], from the cheap scores alone."""
    values = _probabilities(cascade.name, cheap)
    if cascade.band is None:
        return np.zeros(len(values), dtype=np.bool_)
    low, high = cascade.band
    return np.isnan(values) | ((low <= values) & (values <= high))


def run_cascade(cascade: Cascade, cheap: Scores, strong: Scores) -> CascadeScores:
    """Combine two monitors' scores [samples], in [0, 1]; `strong` is read where `sent_on` says so.

    Raises `UserError` for scores outside [0, 1], `ValueError` for no samples or lengths
    that differ.
    """
    sent = sent_on(cascade, cheap)
    first, second = _probabilities(cascade.name, cheap), _probabilities(cascade.name, strong)
    if len(first) != len(second) or not len(first):
        raise ValueError(f"{len(first)} cheap and {len(second)} strong scores: expected as many, and some")
    return CascadeScores(_combined(cascade.band, first, second, sent), sent)


def fit_cascade(fitted: CalibrationScores, *, cheap: str, strong: str, budget: float) -> Cascade:
    """Choose the band that sends on at most the share `budget` of the samples and has the best AUROC.

    Tried are `_STARTS` lower ends, each with the widest band that the budget allows, and no band at
    all; unscored samples count against (`pessimistic_auroc`), those the cheap monitor can't score use up
    budget. Between equals the band that sends fewer on. Ends lie midway between neighbouring cheap
    scores, so that even a band around one tied score leaves the strong monitor room. Raises
    `UserError` for an unknown monitor or one label only, `ValueError` for a budget outside [0, 1]
    or the half that thresholds are set on.
    """
    refuse_threshold_half(fitted)
    if not 0 <= budget <= 1:
        raise ValueError(f"budget={budget}: expected a share in [0, 1]")
    first, second, flags = fitted.member(cheap), fitted.member(strong), fitted.is_misbehavior
    refuse_one_label(fitted.data, flags)
    on = FittedOn(data=fitted.data, part=fitted.part, n=len(fitted))
    trial = Cascade(cheap=cheap, strong=strong, band=None, fitted_on=on, budget=budget)
    best, best_value, best_share = trial, pessimistic_auroc(first, flags), 0.0
    for band in _bands(first, budget):
        cascade = trial.model_copy(update={"band": band})
        sent = sent_on(cascade, first)
        value, share = pessimistic_auroc(_combined(band, first, second, sent), flags), float(sent.mean())
        if (value, -share) > (best_value, -best_share):
            best, best_value, best_share = cascade, value, share
    return best.model_copy(update={"calibration_share": best_share})


def _bands(cheap: FloatArray, budget: float) -> list[Band]:
    """Bands over whole blocks of tied scores, each as wide as the budget allows from its lower end."""
    values, counts = np.unique(cheap[~np.isnan(cheap)], return_counts=True)
    below = np.concatenate([[0], np.cumsum(counts)])  # [values + 1]
    allowed = int(budget * len(cheap) + 1e-9) - int(np.isnan(cheap).sum())
    if allowed < 1 or not len(values):
        return []
    starts = np.unique(np.searchsorted(below[:-1], np.linspace(0, below[-1] - 1, _STARTS)))
    starts = starts[starts < len(values)]
    ends = np.searchsorted(below, below[starts] + allowed, side="right") - 1  # one past the last value
    return [
        Band(_between(values, start, upper=False), _between(values, end, upper=True))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        if end > start
    ]


def _between(values: FloatArray, index: int, *, upper: bool) -> float:
    """A number that parts values[:index] from values[index:]; as a band's end it belongs to the band."""
    if index == 0:
        return 0.0
    if index == len(values):
        return 1.0
    left, right = float(values[index - 1]), float(values[index])
    middle = (left + right) / 2
    if upper:
        return middle if middle < right else left
    return middle if middle > left else right


def _combined(
    band: Band | None, cheap: FloatArray, strong: FloatArray, sent: NDArray[np.bool_]
) -> FloatArray:
    if band is None:
        return cheap
    low, high = band
    inside = np.clip(low + (high - low) * strong, low, high)  # rounding must not carry it past an end
    return np.where(sent, inside, cheap)


def _probabilities(name: str, scores: Scores) -> FloatArray:
    values = np.asarray(scores, dtype=np.float64)
    if np.any((values < 0) | (values > 1)):
        raise UserError(f"{name}: a score outside [0, 1]; expected probabilities of misbehavior")
    return values
