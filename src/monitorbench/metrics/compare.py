"""Two monitors on the same samples: differences of their rates, McNemar's test, Holm's correction.

Promises: a sample that either monitor left unscored is left out of both; both are drawn on the same
groups. McNemar's test takes samples for independent: with several samples of a label in a group its
p is too small, and the interval, which draws groups whole, is the one to trust.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from monitorbench.metrics.group_kinds import interval_of_totals, ratio
from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.columns import Answers, BoolArray, aligned
from monitorbench.metrics.curves import Flags
from monitorbench.metrics.rates import Interval


class RateDifference(NamedTuple):
    """An error rate of the second monitor minus the first's, over samples of one label."""

    n: int
    """Samples that both answered with a label."""
    n_left_out: int
    """Samples that either left unscored."""
    only_first_wrong: int
    only_second_wrong: int
    difference: float | None
    """Below 0: the second errs less. None where n is 0."""
    interval: Interval | None
    """Cluster bootstrap by group, percentile, 95 %."""
    p_value: float | None
    """McNemar, exact, two-sided, not corrected for how many monitors are compared. None where n is 0."""


class RateComparison(NamedTuple):
    """Both rates of two monitors."""

    miss_rate: RateDifference
    """Over misbehavior samples."""
    false_alarm_rate: RateDifference
    """Over benign samples."""


def compare(
    first: Answers, second: Answers, is_misbehavior: Flags, groups: IntArray, *, resamples: int, seed: int
) -> RateComparison:
    """Second minus first; all [samples] in the same order, `groups` the numbers of their groups."""
    flags, ours = aligned(is_misbehavior, first)
    _, theirs = aligned(is_misbehavior, second)
    kept = ~np.isnan(ours) & ~np.isnan(theirs)
    change = (theirs[kept] != flags[kept]).astype(np.int64) - (ours[kept] != flags[kept])
    rates = []
    for of_label in (flags, ~flags):
        inside = of_label[kept]
        n = int(np.count_nonzero(inside))
        left_out = int(np.count_nonzero(of_label)) - n
        rates.append(_rate_difference(change, inside, groups[kept], left_out, resamples, seed))
    return RateComparison(*rates)


def _rate_difference(
    change: IntArray, inside: BoolArray, groups: IntArray, left_out: int, resamples: int, seed: int
) -> RateDifference:
    n = int(np.count_nonzero(inside))
    better, worse = (int(np.count_nonzero(change[inside] == one)) for one in (-1, 1))
    if not n:
        return RateDifference(0, left_out, 0, 0, None, None, None)

    def statistic(totals: FloatArray) -> FloatArray:
        return ratio(totals[:, 1], totals[:, 0])

    columns = np.stack([inside, np.where(inside, change, 0)], axis=1).astype(np.int64)
    interval = interval_of_totals(statistic, columns, groups, resamples=resamples, seed=seed)
    p_value = mcnemar(better, worse)
    return RateDifference(n, left_out, better, worse, (worse - better) / n, interval, p_value)


def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided p of McNemar's exact test from its two discordant counts (McNemar 1947; Mosteller 1952).

    min(1, 2·P(X <= the smaller)), X binomial over the discordant samples with probability 1/2; 1
    without any. Raises ValueError for negative counts.
    """
    if only_first < 0 or only_second < 0:
        raise ValueError(f"discordant counts {only_first} and {only_second}: expected none below 0")
    n, smaller = only_first + only_second, min(only_first, only_second)
    k = np.arange(1, smaller + 1, dtype=np.float64)
    log_terms = np.append(0.0, np.cumsum(np.log((n + 1 - k) / k)))  # log of n over 0, …, n over smaller
    top = float(log_terms.max())  # taken out, since n over k leaves the range of floats at n > 1,029
    return float(min(1.0, 2 * np.exp(top - n * np.log(2)) * np.exp(log_terms - top).sum()))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p values, in the order given (Holm 1979): compare them with alpha itself.

    The i-th smallest of m becomes the largest of (m − j + 1)·p_j over j <= i, at most 1. The family
    is what was compared, not what came out well. Raises ValueError for a p outside [0, 1].
    """
    values = np.asarray(p_values, dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"p values {list(p_values)}: expected numbers in [0, 1]")
    order = np.argsort(values, kind="stable")
    stepped = np.maximum.accumulate(np.arange(len(values), 0, -1) * values[order])
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(stepped, 1.0)
    return [float(value) for value in adjusted]
