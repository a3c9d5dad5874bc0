"""The bands of a cheap monitor's scores that a budget of calls allows to be sent on."""

from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from monitorbench.metrics.bootstrap import FloatArray

_STARTS = 128
"""Number of lower ends of the band that are tried, spread evenly over the calibration samples."""
Probability = Annotated[float, Field(ge=0, le=1)]


class Band(NamedTuple):
    """Cheap scores in [low, high] are uncertain; low < high."""

    low: Probability
    high: Probability


def bands(cheap: FloatArray, budget: float) -> list[Band]:
    """Bands over whole blocks of tied scores, each as wide as the budget allows from its lower end.

    `cheap` is [samples], NaN where unscored: these are sent on too, and use up budget. Ends lie midway
    between neighbouring scores, so that even a band around one tied score leaves the strong monitor room. At
    most `_STARTS` bands; none where the budget allows no block.
    """
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
