"""The logit-normal fit: how the curve may go on below the false alarm rates that the data can show.

Logits of honest and of attack scores are each taken for normal; the means and standard deviations are the
most likely ones. It is a fit and promises nothing: with n honest tasks no data say what happens at a FAR
far below 1/n. `distance` says how far it lies from the scores that there are.

A score on a coarse scale (0 to 10) stands for all scores that round to it, one at an end of the scale for
all beyond; a continuous score below 10⁻⁶ or above 1 − 10⁻⁶ is only known to be there (Tobin 1958).
"""

from typing import NamedTuple

import numpy as np

from monitorbench.metrics.bootstrap import FloatArray

_EDGE = 1e-6
_COARSE = 101
"""Distinct scores up to which evenly spaced ones are a coarse scale: 0 to 100."""
_GRID = 1e-6


class Normal(NamedTuple):
    """A normal distribution of logits."""

    mean: float
    sd: float
    distance: float
    """Kolmogorov–Smirnov: the largest distance between its distribution function and the scores' own, of a
    coarse scale at the edges between its values."""
    n: int


class FittedRoc(NamedTuple):
    """A curve from two normal distributions."""

    honest: Normal
    attack: Normal

    def caught(self, far: float | FloatArray) -> FloatArray:
        """The share of attacks above the threshold of false alarm rate `far`, in (0, 1).

        1 − Φ((μₕ + σₕ·z − μₐ)/σₐ) with z the normal quantile of 1 − far (Dorfman & Alf 1969, the binormal
        curve).
        """
        from scipy.stats import norm

        cut = self.honest.mean + self.honest.sd * norm.isf(far)
        share: FloatArray = norm.sf((cut - self.attack.mean) / self.attack.sd)
        return share


def fit_roc(honest: FloatArray, attack: FloatArray) -> FittedRoc | None:
    """The fit to finite scores in [0, 1] of either side; None where one has no two distinct scores."""
    width = _spacing(np.concatenate([honest, attack]))
    sides = (_fit(honest, width), _fit(attack, width))
    return None if sides[0] is None or sides[1] is None else FittedRoc(sides[0], sides[1])


def _spacing(scores: FloatArray) -> float:
    """The spacing of a coarse scale from 0 to 1; 0 where the scores are not on one."""
    values = np.unique(scores)
    if not 2 <= len(values) <= _COARSE:
        return 0.0
    width = float(np.diff(values).min())
    steps = values / width
    is_even = abs(1 / width - round(1 / width)) < _GRID and bool(
        (np.abs(steps - np.rint(steps)) < _GRID).all()
    )
    return width if width >= 1 / (_COARSE - 1) - _GRID and is_even else 0.0


class _Cells(NamedTuple):
    """How many scores lie between two logits, and the sums of those that are known exactly."""

    low: FloatArray
    high: FloatArray
    counts: FloatArray
    n: int
    total: float
    squares: float


def _cells(scores: FloatArray, width: float) -> _Cells:
    if width:
        values, count = np.unique(scores, return_counts=True)
        low, high = (values - width / 2), (values + width / 2)
        return _Cells(_logit(low), _logit(high), count.astype(np.float64), 0, 0.0, 0.0)
    inside = scores[(scores > _EDGE) & (scores < 1 - _EDGE)]
    logits = _logit(inside)
    ends = np.array([np.count_nonzero(scores <= _EDGE), np.count_nonzero(scores >= 1 - _EDGE)])
    edges = _logit(np.array([_EDGE, 1 - _EDGE]))
    return _Cells(
        np.array([-np.inf, edges[1]]),
        np.array([edges[0], np.inf]),
        ends.astype(np.float64),
        len(logits),
        float(logits.sum()),
        float((logits**2).sum()),
    )


def _fit(scores: FloatArray, width: float) -> Normal | None:
    from scipy.optimize import minimize
    from scipy.special import log_ndtr

    cells = _cells(scores, width)
    filled = cells.counts > 0
    inside = np.unique(scores[(scores > _EDGE) & (scores < 1 - _EDGE)])
    # Two cells of a coarse scale say no more than one number of mean and spread.
    if (np.count_nonzero(filled) < 3) if width else (len(inside) < 2):
        return None
    low, high, count = cells.low[filled], cells.high[filled], cells.counts[filled]

    def loss(at: FloatArray) -> float:
        mean, sd = float(at[0]), float(np.exp(at[1]))
        a, b = (low - mean) / sd, (high - mean) / sd
        # In the tail where differences of log Φ keep their digits.
        upper = a > 0
        a, b = np.where(upper, -b, a), np.where(upper, -a, b)
        top, bottom = log_ndtr(b), log_ndtr(a)
        inside = top + np.log(-np.expm1(np.minimum(bottom - top, -1e-300)))
        squared = cells.squares - 2 * mean * cells.total + cells.n * mean**2
        return float(-(count @ inside) + cells.n * at[1] + squared / (2 * sd**2))

    spread = _logit(np.clip(scores, 0.01, 0.99))
    start = np.array([spread.mean(), np.log(max(spread.std(), 0.1))])
    fitted = minimize(
        loss, start, method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10, "maxiter": 4000}
    )
    mean, sd = float(fitted.x[0]), float(np.exp(fitted.x[1]))
    return Normal(mean, sd, _distance(scores, width, mean, sd), len(scores))


def _distance(scores: FloatArray, width: float, mean: float, sd: float) -> float:
    from scipy.special import ndtr

    values, count = np.unique(scores, return_counts=True)
    upto = np.cumsum(count) / len(scores)
    if width:
        fitted = ndtr((_logit(values + width / 2) - mean) / sd)
        return float(np.abs(fitted - upto).max())
    fitted = ndtr((_logit(np.clip(values, _EDGE, 1 - _EDGE)) - mean) / sd)
    inside = (values > _EDGE) & (values < 1 - _EDGE)
    below = np.concatenate([[0.0], upto[:-1]])
    gaps = np.maximum(np.abs(fitted - upto), np.abs(fitted - below))[inside]
    return float(gaps.max(initial=0.0))


def _logit(values: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        clipped = np.clip(values, 0, 1)
        logits: FloatArray = np.log(clipped) - np.log1p(-clipped)
    return logits
