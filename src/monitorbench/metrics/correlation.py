"""Pearson's r over monitors, such as of MR with FAR, with Fisher's interval.

A benchmark has few monitors, and they share families and sizes: the interval is wide, and still too
narrow for points that are not independent.
"""

from collections.abc import Sequence
from math import atanh, sqrt, tanh
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from monitorbench.metrics.rates import Interval


class Correlation(NamedTuple):
    """Pearson's r over `n` points; r is None where it is undefined, and then so is the interval."""

    r: float | None
    interval: Interval | None
    n: int


def pearson(x: Sequence[float | None], y: Sequence[float | None], confidence: float = 0.95) -> Correlation:
    """Pearson's r of the points that have both numbers (None and NaN are left out).

    None with fewer than two points or where a column is constant; no interval with fewer than four.
    Raises ValueError where the columns differ in length.
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.shape != second.shape:
        raise ValueError(f"expected columns of one length, got {len(first)} and {len(second)}")
    kept = ~np.isnan(first) & ~np.isnan(second)
    first, second = first[kept], second[kept]
    n = len(first)
    if n < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return Correlation(None, None, n)
    a, b = first - first.mean(), second - second.mean()
    a, b = a / np.abs(a).max(), b / np.abs(b).max()  # so that no square leaves the range of floats
    r = float(np.clip(a @ b / sqrt((a @ a) * (b @ b)), -1, 1))
    return Correlation(r, fisher_interval(r, n, confidence), n)


def fisher_interval(r: float, n: int, confidence: float = 0.95) -> Interval | None:
    """tanh(artanh r ± z/√(n − 3)) (Fisher 1921, Metron 1:3); None for n < 4, [r, r] for r = ±1.

    Raises ValueError for r outside [−1, 1].
    """
    if not -1 <= r <= 1:
        raise ValueError(f"r: got {r}, expected a correlation in [-1, 1]")
    if n < 4:
        return None
    if abs(r) == 1:
        return Interval(r, r)
    half = NormalDist().inv_cdf((1 + confidence) / 2) / sqrt(n - 3)
    return Interval(tanh(atanh(r) - half), tanh(atanh(r) + half))
