"""Two monitors at one false alarm rate: the difference of their miss rates, each at a threshold of its own.

That is what tells a better monitor from a moved threshold in the unit that matters: misses at FAR <= alpha.
Promises: both are drawn on the same groups, and both choose their threshold anew in each draw, as in
`low_far_interval`; a sample without a score from either is left out of both.
"""

from typing import NamedTuple

import numpy as np

from monitorbench.metrics.group_kinds import percentiles, ratio
from monitorbench.metrics.bootstrap import FloatArray, IntArray, draws, group_index
from monitorbench.metrics.columns import BoolArray, aligned
from monitorbench.metrics.curves import MOST_DRAWN_GROUPS, Flags, Scores
from monitorbench.metrics.low_far import check_alpha, miss_rate_at_far
from monitorbench.metrics.ranking import ranked
from monitorbench.metrics.rates import Interval

_FEWER_DRAWS = 400
"""Of more than `MOST_DRAWN_GROUPS` groups: a draw costs as much as there are samples."""


class LowFarDifference(NamedTuple):
    """Miss rates at FAR <= alpha over the same samples; `difference` is second minus first."""

    first: float | None
    second: float | None
    difference: float | None
    """Below 0: the second misses less."""
    interval: Interval | None
    """Cluster bootstrap by group, percentile, 95 %."""
    p_value: float | None
    """Two-sided, twice the smaller share of draws on one side of 0, not corrected (Davison & Hinkley 1997,
    section 4.4); at least 2/(draws + 1)."""
    n: int


def paired_low_far_difference(
    first: Scores,
    second: Scores,
    is_misbehavior: Flags,
    groups: IntArray,
    alpha: float,
    *,
    resamples: int,
    seed: int,
) -> LowFarDifference:
    """Second minus first; all [samples], `groups` the numbers of the samples' groups.

    The numbers are None where a class has no score, interval and p also with fewer than two groups. Raises
    ValueError for `alpha` outside [0, 1].
    """
    check_alpha(alpha)
    flags, ours = aligned(is_misbehavior, first)
    _, theirs = aligned(is_misbehavior, second)
    kept = ~np.isnan(ours) & ~np.isnan(theirs)
    flags, ours, theirs = flags[kept], ours[kept], theirs[kept]
    points = [miss_rate_at_far(values, flags, alpha) for values in (ours, theirs)]
    if points[0] is None or points[1] is None:
        return LowFarDifference(None, None, None, None, None, len(flags))
    before, after = points[0].miss_rate, points[1].miss_rate
    index = group_index(groups[kept])
    n_groups = int(index.max()) + 1
    if n_groups < 2:
        return LowFarDifference(before, after, after - before, None, None, len(flags))
    n_draws = resamples if n_groups <= MOST_DRAWN_GROUPS else min(resamples, _FEWER_DRAWS)
    batches = []
    for drawn in draws(n_groups, n_draws, seed, per_draw=4 * len(index)):
        weights = drawn[:, index]
        of_both = [weighted_miss_rate_at_far(values, flags, weights, alpha) for values in (ours, theirs)]
        batches.append(of_both[1] - of_both[0])
    values = np.concatenate(batches)
    interval = percentiles(values)
    defined = values[~np.isnan(values)]
    tail = min(np.count_nonzero(defined <= 0), np.count_nonzero(defined >= 0))
    p = None if interval is None else min(1.0, 2 * (int(tail) + 1) / (len(defined) + 1))
    return LowFarDifference(before, after, after - before, interval, p, len(flags))


def weighted_miss_rate_at_far(
    scores: FloatArray, is_misbehavior: BoolArray, weights: IntArray, alpha: float
) -> FloatArray:
    """`low_far.miss_rate_at_far` [draws] with sample i counted `weights[draw, i]` times; NaN without a class.

    `weights` is [draws, samples]. O(n log n) once and O(n) a draw.
    """
    rank = ranked(scores)
    flags, last = is_misbehavior[rank.order], rank.ends - 1
    counted = weights[:, rank.order].astype(np.float64)
    alarms = np.cumsum(np.where(flags, 0.0, counted), axis=1)[:, last]
    caught = np.cumsum(np.where(flags, counted, 0.0), axis=1)[:, last]
    benign, bad = alarms[:, -1], caught[:, -1]
    defined = (benign > 0) & (bad > 0)
    allowed = np.count_nonzero(alarms / np.maximum(benign, 1)[:, None] <= alpha, axis=1)
    best = np.append(np.zeros((len(caught), 1)), caught, axis=1)[np.arange(len(caught)), allowed]
    return ratio(bad - best, np.where(defined, bad, 0))
