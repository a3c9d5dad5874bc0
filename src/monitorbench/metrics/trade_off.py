"""Pearson's r over monitors, such as of MR with FAR, with Fisher's interval.

A benchmark has few monitors, and they share families and sizes: the interval is wide, and still too
narrow for points that are not independent.
"""

from collections.abc import Sequence
from math import atanh, inf, isnan, sqrt, tanh
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


def pareto_front(points: Sequence[tuple[float | None, float | None]]) -> list[int]:
    """Indices, ascending, of the (MR, FAR) points that no other dominates (2601.05752).

    One point dominates another where it is no worse in both rates and better in one; equal points
    are both kept. A point with a missing rate is never on the front and dominates nothing.
    """
    known = sorted(
        (mr, far, i)
        for i, (mr, far) in enumerate(points)
        if mr is not None and far is not None and not isnan(mr) and not isnan(far)
    )
    front: list[int] = []
    best = inf  # the lowest false alarm rate among points with a strictly lower miss rate
    start = 0
    while start < len(known):
        mr, lowest, _ = known[start]
        stop = start
        while stop < len(known) and known[stop][0] == mr:
            stop += 1
        if lowest < best:
            front += [i for _, far, i in known[start:stop] if far == lowest]
            best = lowest
        start = stop
    return sorted(front)
