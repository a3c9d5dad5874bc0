"""How miss rate and false alarm rate trade off over monitors: Pearson's r, and the Pareto front.

A benchmark has few monitors, and they share families and sizes: r's interval is wide, and still too narrow
for points that are not independent. On the front, lower left is better.
"""

from collections.abc import Sequence
from math import inf, isnan
from typing import NamedTuple

import numpy as np

from monitorbench.metrics.rates import Interval


class Correlation(NamedTuple):
    """Pearson's r over `n` points; r is None where it is undefined, and then so is the interval."""

    r: float | None
    interval: Interval | None
    n: int


def pearson(x: Sequence[float | None], y: Sequence[float | None], confidence: float = 0.95) -> Correlation:
    """Pearson's r of the points that have both numbers (None and NaN are left out), and Fisher's interval.

    None with fewer than two points or where a column is constant; no interval with fewer than four (Fisher
    1921, Metron 1:3: its width goes by n - 3). Raises ValueError where the columns differ in length.
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.shape != second.shape:
        raise ValueError(f"expected columns of one length, got {len(first)} and {len(second)}")
    complete = ~np.isnan(first) & ~np.isnan(second)
    first, second = first[complete], second[complete]
    n = len(first)
    if n < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return Correlation(None, None, n)
    from scipy.stats import (
        pearsonr,  # takes most of a second to import, and a single monitor needs none of it
    )

    correlation = pearsonr(first, second)
    interval = Interval(*map(float, correlation.confidence_interval(confidence))) if n > 3 else None
    return Correlation(float(correlation.statistic), interval, n)


def pareto_front(points: Sequence[tuple[float | None, float | None]]) -> list[int]:
    """Indices, ascending, of the (MR, FAR) points that no other dominates (2601.05752).

    One point dominates another where it is no worse in both rates and better in one; equal points
    are both kept. A point with a missing rate is never on the front and dominates nothing.
    """
    complete = sorted(
        (mr, far, i)
        for i, (mr, far) in enumerate(points)
        if mr is not None and far is not None and not isnan(mr) and not isnan(far)
    )
    front: list[int] = []
    best = inf  # the lowest false alarm rate among points with a strictly lower miss rate
    start = 0
    while start < len(complete):
        mr, lowest, _ = complete[start]
        stop = start
        while stop < len(complete) and complete[stop][0] == mr:
            stop += 1
        if lowest < best:
            front += [i for _, far, i in complete[start:stop] if far == lowest]
            best = lowest
        start = stop
    return sorted(front)
