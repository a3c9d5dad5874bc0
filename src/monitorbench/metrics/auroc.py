"""AUROC of a monitor's scores, its interval, and the difference between two monitors.

AUROC is the chance that a random misbehavior sample scores above a random benign one, ties counting
half: the Mann-Whitney U over n1·n0 (Hanley & McNeil 1982). It needs no threshold, so it tells a
moved threshold from lost discrimination. Promises: samples without a score (None or NaN) are left
out, of a comparison where *either* monitor has none; None where a class is absent.

Intervals are over draws of whole groups. Up to `MOST_DRAWN_GROUPS` groups the draws are made; of more groups
the bootstrap's distribution is normal, and its variance is worked out instead (`clustered_variance`), in
O(n log n): each sample's own share of the comparisons it wins is its structural component (DeLong, DeLong &
Clarke-Pearson 1988). Samples of a group are not independent, so components are summed by group first
(Obuchowski 1997, Biometrics 53:567, section 2); with one sample a group it is DeLong's variance.
"""

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitorbench.metrics import bootstrap
from monitorbench.metrics.bootstrap import FloatArray, Groups, IntArray, group_index
from monitorbench.metrics.rates import Interval

Scores = Sequence[float | None] | FloatArray
Flags = Sequence[bool] | NDArray[np.bool_]

MOST_DRAWN_GROUPS = 2_000
"""A draw costs as much as there are samples."""


class Comparison(NamedTuple):
    """Two AUROCs over the same samples; `difference` is tuned minus base."""

    base: float | None
    tuned: float | None
    difference: float | None
    interval: Interval | None
    n: int


def auroc(scores: Scores, is_misbehavior: Flags) -> float | None:
    """AUROC in [0, 1]; .5 is chance. None where a class has no score."""
    values, flags, kept = _aligned(is_misbehavior, scores)
    return _point(values[0][kept], flags[kept])


def auroc_interval(
    scores: Scores, is_misbehavior: Flags, groups: Groups, *, resamples: int, seed: int
) -> Interval | None:
    """95 % interval of the AUROC over draws of whole groups; `groups` [samples], by name or number.

    Up to `MOST_DRAWN_GROUPS` groups the percentiles of `resamples` draws; of more, the normal interval with
    Obuchowski's variance, clipped to [0, 1]. None where a class has no score, and with fewer than two
    groups. Perfect separation gives [1, 1]: neither can show what the sample does not hold.
    """
    (values,), flags, kept = _aligned(is_misbehavior, scores)
    values, flags = values[kept], flags[kept]
    if not flags.any() or flags.all():
        return None

    def statistic(weights: IntArray) -> FloatArray:
        return weighted_auroc(values, flags, weights)

    index = group_index(group_index(groups)[kept])
    if index.max() < MOST_DRAWN_GROUPS:
        return bootstrap.interval(statistic, index, resamples=resamples, seed=seed)
    parts = components(values, flags)
    variance = clustered_variance(parts, flags, index)
    if variance is None:
        return None
    return normal_interval(float(parts[flags].mean()), variance, low=0.0, high=1.0)


def paired_auroc_difference(
    base_scores: Scores,
    tuned_scores: Scores,
    is_misbehavior: Flags,
    groups: Groups,
    *,
    resamples: int,
    seed: int,
) -> Comparison:
    """AUROC of tuned minus base, with its 95 % interval; both on the same draw of groups.

    As `auroc_interval`; of many groups Obuchowski's variance is that of the differences of the two
    monitors' components, and the interval is clipped to [-1, 1].
    """
    (base, tuned), flags, kept = _aligned(is_misbehavior, base_scores, tuned_scores)
    base, tuned, flags = base[kept], tuned[kept], flags[kept]
    first, second = _point(base, flags), _point(tuned, flags)
    if first is None or second is None:
        return Comparison(first, second, None, None, len(flags))

    def statistic(weights: IntArray) -> FloatArray:
        return weighted_auroc(tuned, flags, weights) - weighted_auroc(base, flags, weights)

    index = group_index(group_index(groups)[kept])
    interval: Interval | None = None
    if index.max() < MOST_DRAWN_GROUPS:
        interval = bootstrap.interval(statistic, index, resamples=resamples, seed=seed)
    else:
        change = components(tuned, flags) - components(base, flags)
        variance = clustered_variance(change, flags, index)
        if variance is not None:
            interval = normal_interval(second - first, variance, low=-1.0, high=1.0)
    return Comparison(first, second, second - first, interval, len(flags))


def weighted_auroc(scores: FloatArray, is_misbehavior: NDArray[np.bool_], weights: IntArray) -> FloatArray:
    """AUROC [draws] with sample i counted `weights[draw, i]` times; NaN where a class has no weight.

    `weights` is [draws, samples]. O(n log n) once and O(n) a draw: with the samples sorted, a
    misbehavior sample beats the benign weight below its block of ties and halves the block's.
    """
    order = np.argsort(scores, kind="stable")
    ascending, positive = scores[order], is_misbehavior[order]
    first = np.searchsorted(ascending, ascending[positive], side="left")
    behind = np.searchsorted(ascending, ascending[positive], side="right")
    sorted_weights = weights[:, order].astype(np.float64)
    benign_below = np.zeros((len(weights), len(scores) + 1))
    np.cumsum(np.where(positive, 0.0, sorted_weights), axis=1, out=benign_below[:, 1:])
    misbehavior = sorted_weights[:, positive]
    wins = (misbehavior * (benign_below[:, first] + benign_below[:, behind])).sum(axis=1) / 2
    pairs = misbehavior.sum(axis=1) * benign_below[:, -1]
    values = np.full(len(weights), np.nan)
    np.divide(wins, pairs, out=values, where=pairs > 0)
    return values


def components(scores: FloatArray, is_misbehavior: NDArray[np.bool_]) -> FloatArray:
    """Each sample's structural component [samples], in [0, 1]; both classes are there.

    Of a misbehavior sample the share of benign samples that score below it, of a benign one the share of
    misbehavior samples above it, ties half.
    """
    rank = ranked(scores)
    flags = is_misbehavior[rank.order]
    caught = np.cumsum(flags)[rank.ends - 1]  # at each block of ties, from the top
    alarms = rank.ends - caught
    bad, good = np.diff(caught, prepend=0), np.diff(alarms, prepend=0)
    of_bad = (alarms[-1] - alarms + good / 2) / alarms[-1]
    of_good = (caught - bad / 2) / caught[-1]
    block = np.repeat(np.arange(len(rank.ends)), rank.sizes)
    found = np.empty(len(scores))
    found[rank.order] = np.where(flags, of_bad[block], of_good[block])
    return found


def clustered_variance(
    values: FloatArray, is_misbehavior: NDArray[np.bool_], groups: IntArray
) -> float | None:
    """The variance of the mean of one class's components, which is also that of the other's.

    `values` [samples] are components of one AUROC, or their differences of two over the same samples;
    `groups` [samples] numbers the groups from 0, not necessarily without gaps. None where fewer than two
    groups hold misbehavior, or fewer than two benign samples.

    With X_i, Y_i the sums of the values of group i over its m_i misbehavior and n_i benign samples, M and N
    of them in all, θ the AUROC, I groups, I₁₀ and I₀₁ of them with misbehavior and with benign samples:
    S₁₀/M + S₀₁/N + 2·S₁₁/(M·N), where S₁₀ = I₁₀/((I₁₀ − 1)·M)·Σ(X_i − m_i·θ)², S₀₁ likewise and
    S₁₁ = I/(I − 1)·Σ(X_i − m_i·θ)·(Y_i − n_i·θ).
    """
    counts = np.bincount(groups)
    present, size = np.flatnonzero(counts), len(counts)
    theta = values[is_misbehavior].mean()
    parts = []
    for of_label in (is_misbehavior, ~is_misbehavior):
        inside = groups[of_label]
        n = np.bincount(inside, minlength=size)[present]
        sums = np.bincount(inside, weights=values[of_label], minlength=size)[present]
        with_any = int(np.count_nonzero(n))
        if with_any < 2:
            return None
        parts.append((sums - n * theta, len(inside), with_any))
    (x, m, i_10), (y, n_benign, i_01) = parts
    s_10 = i_10 / ((i_10 - 1) * m) * float(x @ x)
    s_01 = i_01 / ((i_01 - 1) * n_benign) * float(y @ y)
    s_11 = len(present) / (len(present) - 1) * float(x @ y)
    return s_10 / m + s_01 / n_benign + 2 * s_11 / (m * n_benign)


def normal_interval(
    value: float, variance: float, *, low: float, high: float, confidence: float = 0.95
) -> Interval:
    """value ± z·√variance, clipped to [low, high]."""
    half = NormalDist().inv_cdf((1 + confidence) / 2) * sqrt(max(0.0, variance))
    return Interval(max(low, value - half), min(high, value + half))


class Ranking(NamedTuple):
    """Samples by descending score; equal scores are a block."""

    order: IntArray
    """[samples]: the sample at each rank, equal scores in the order they came in."""
    scores: FloatArray
    """[blocks], descending."""
    ends: IntArray
    """[blocks]: the rank after the last sample of each; the last is the number of samples."""

    @property
    def sizes(self) -> IntArray:
        """[blocks]: how many samples each has."""
        return np.diff(self.ends, prepend=0)


def ranked(scores: FloatArray) -> Ranking:
    """Rank scores [samples], none of them NaN."""
    in_order = bool((scores[1:] <= scores[:-1]).all())
    order = np.arange(len(scores)) if in_order else np.argsort(-scores, kind="stable")
    found = scores[order]
    last = np.append(found[1:] != found[:-1], len(found) > 0)
    at = np.flatnonzero(last[: len(found)])
    return Ranking(order, found[at], at + 1)


def _aligned(
    is_misbehavior: Flags, *scores: Scores
) -> tuple[list[FloatArray], NDArray[np.bool_], NDArray[np.bool_]]:
    """Scores and labels as arrays, and which samples every monitor has a score for."""
    flags = np.asarray(is_misbehavior, dtype=np.bool_)
    values = [np.asarray(some, dtype=np.float64) for some in scores]  # None becomes NaN
    if any(some.shape != flags.shape for some in values):
        raise ValueError(f"expected {len(flags)} scores, one a label, got {[len(v) for v in values]}")
    kept = np.ones(len(flags), dtype=np.bool_)
    for some in values:
        kept &= ~np.isnan(some)
    return values, flags, kept


def _point(scores: FloatArray, flags: NDArray[np.bool_]) -> float | None:
    rank = ranked(scores)
    bad = np.diff(np.cumsum(flags[rank.order])[rank.ends - 1], prepend=0)
    good = rank.sizes - bad
    pairs = float(bad.sum()) * float(good.sum())
    # Twice the wins: whole numbers, exact in a float below 2^53.
    twice = float((bad * (2.0 * (good.sum() - np.cumsum(good)) + good)).sum())
    return twice / 2 / pairs if pairs else None
