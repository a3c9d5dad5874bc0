"""Misses at a bounded false alarm rate, of two monitors or more side by side.

They are compared at one false alarm rate, each at a threshold of its own, since that tells a better
monitor from a moved threshold: all are drawn on the same groups, and a sample without a score from either is
left out of both.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr

from monitorbench.metrics.auroc import Flags, Scores, mover, ranked
from monitorbench.metrics.bootstrap import FloatArray, IntArray, draws, group_index, ratio
from monitorbench.metrics.columns import BoolArray, aligned
from monitorbench.metrics.low_far import check_alpha, miss_rate_at_far, miss_rate_at_far_interval
from monitorbench.metrics.rates import Interval
from monitorbench.metrics.sensitivity import least_standard_error, smallest_p

_MOST_DRAWN_GROUPS = 2_000
_FEWER_DRAWS = 400
"""Draws for more than `_MOST_DRAWN_GROUPS` groups: a draw costs as much as there are samples."""


class LowFarDifference(NamedTuple):
    """Miss rates at FAR <= alpha over the same samples; `difference` is second minus first."""

    first: float | None
    second: float | None
    difference: float | None
    """Below 0: the second misses less."""
    interval: Interval | None
    """95 %: MOVER from both monitors' own intervals and the draws' correlation, with 0 in it where p >= .05.

    Percentiles of the draws hold in as little as 26 % of data sets where few samples are missed: draws of
    samples none of which is missed are all alike.
    """
    p_value: float | None
    """Two-sided, not corrected: Student's t with the draws' standard deviation and groups − 1 degrees.
    A share of 2,000 draws would end at .001, which no correction over more than 50 tests leaves below .05."""
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
    scored = ~np.isnan(ours) & ~np.isnan(theirs)
    flags, ours, theirs = flags[scored], ours[scored], theirs[scored]
    before, after = (miss_rate_at_far(values, flags, alpha) for values in (ours, theirs))
    if before is None or after is None:
        return LowFarDifference(None, None, None, None, None, len(flags))
    index = group_index(groups[scored])
    n_groups = int(index.max()) + 1
    if n_groups < 2:
        return LowFarDifference(before, after, after - before, None, None, len(flags))
    ranks, other_ranks = (np.unique(values, return_inverse=True)[1] for values in (ours, theirs))
    if np.array_equal(ranks, other_ranks):
        return LowFarDifference(before, after, 0.0, Interval(0.0, 0.0), 1.0, len(flags))  # ranked alike
    drawn = paired_low_far_draws([ours, theirs], flags, index, alpha, resamples=resamples, seed=seed)
    n_draws, drawn = len(drawn), drawn[~np.isnan(drawn).any(axis=1)]
    bounds = [miss_rate_at_far_interval(values, flags, index, alpha) for values in (ours, theirs)]
    if bounds[0] is None or bounds[1] is None or 2 * len(drawn) < n_draws:
        return LowFarDifference(before, after, after - before, None, None, len(flags))
    p = _p_of_draws(after - before, drawn[:, 1] - drawn[:, 0], n_groups)
    spreads = drawn.std(axis=0)
    correlation = float(np.corrcoef(drawn.T)[0, 1]) if spreads.all() else 0.0
    interval = mover((before, after), [bounds[0], bounds[1]], correlation)
    if p >= 0.05:
        interval = Interval(min(interval.low, 0.0), max(interval.high, 0.0))
    return LowFarDifference(before, after, after - before, interval, p, len(flags))


def paired_low_far_draws(
    scores: Sequence[FloatArray],
    is_misbehavior: BoolArray,
    groups: IntArray,
    alpha: float,
    *,
    resamples: int,
    seed: int,
) -> FloatArray:
    """`miss_rate_at_far` of several monitors [draws, monitors], all on the same draws of whole groups.

    `groups` [samples] numbers them without gaps. Of more than `_MOST_DRAWN_GROUPS` there are fewer draws.
    """
    n_groups = int(groups.max()) + 1
    n_draws = resamples if n_groups <= _MOST_DRAWN_GROUPS else min(resamples, _FEWER_DRAWS)
    batches = []
    for drawn in draws(n_groups, n_draws, seed, per_draw=4 * len(groups)):
        weights = drawn[:, groups]
        batches.append(
            np.stack(
                [weighted_miss_rate_at_far(values, is_misbehavior, weights, alpha) for values in scores],
                axis=1,
            )
        )
    return np.concatenate(batches)


def _p_of_draws(difference: float, draws: FloatArray, n_groups: int) -> float:
    """Two-sided p of no difference from bootstrap draws of it; see `LowFarDifference.p_value`."""
    error = max(float(draws.std(ddof=1)), least_standard_error(n_groups))
    return max(2 * float(stdtr(n_groups - 1, -abs(difference) / error)), smallest_p(n_groups))


def weighted_miss_rate_at_far(
    scores: FloatArray, is_misbehavior: BoolArray, weights: IntArray, alpha: float
) -> FloatArray:
    """`miss_rate_at_far` [draws] with sample i counted `weights[draw, i]` times; NaN without a class.

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
