"""Intervals with whole groups as the evidence: of a share (Wilson's), and of a paired change.

Samples of one question are not independent: with four that hang together, Wilson's 95 % interval of a rate
holds the truth in as little as 68 % of data sets. With one sample a group nothing differs from Wilson's.

A paired change, of an error rate or of a cost that weighs two, has Bonett & Price's adjusted Wald interval
(2012, Journal of Educational and Behavioral Statistics 37:479): two pairs are added, one that changed each
way. Here they are groups: with one sample of the label in each group it is theirs, with more the variance is
that of the groups' sums. A bootstrap of answers none of which changed would say that none ever does.
"""

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from monitorbench.metrics.bootstrap import FloatArray, IntArray, group_index
from monitorbench.metrics.columns import BoolArray, Columns
from monitorbench.metrics.rates import Interval, score_bounds, wilson_interval

_PRIOR = 2.0
"""Groups' worth of weight for a design factor of 1, against what the groups say of it."""


def share_interval(hits: BoolArray, groups: IntArray, confidence: float = 0.95) -> Interval | None:
    """The interval of the share of `hits` [samples]; `groups` [samples] are numbers. None without a sample.

    Wilson's with the effective sample size G/D (Kish 1965; Korn & Graubard 1998, Survey Methodology 24:193,
    for Clopper and Pearson's): G is Kish's effective number of groups, (Σk)²/Σk² of their sizes k, which
    is their number where they are of one size; D is the linearised variance of the share over that of G
    independent samples, drawn towards 1 where few groups differ: (w·D + 2)/(w + 2) with w = G·min(p, 1 − p).
    """
    n = len(hits)
    if not n:
        return None
    index = group_index(groups)
    sizes = np.bincount(index)
    if len(sizes) == n:
        return wilson_interval(int(np.count_nonzero(hits)), n, confidence)
    share = float(np.mean(hits))
    spread = np.bincount(index, weights=hits) - sizes * share
    quantile = NormalDist().inv_cdf((1 + confidence) / 2)
    return mean_interval(share, float(spread @ spread) / n**2, n**2 / int(sizes @ sizes), n, quantile)


def macro_interval(hits: BoolArray, cells: IntArray, groups: IntArray) -> Interval | None:
    """The 95 % interval of the mean over cells of their shares of `hits`; all [samples].

    As `share_interval`, with the samples' weights in that mean: a group's are summed over the cells that it
    has samples in. A cell of few groups may show no variance by luck, so the quantile is Student's t with the
    degrees of freedom of Satterthwaite (1946, Biometrics Bulletin 2:110), from the cells' numbers of groups
    and no more than all groups less 1. None with fewer than two groups.
    """
    index, cell = group_index(groups), group_index(cells)
    n_groups, n_cells = int(index.max(initial=-1)) + 1, int(cell.max(initial=-1)) + 1
    if n_groups < 2:
        return None
    flat_index, shape = cell * n_groups + index, (n_cells, n_groups)
    counts, sums = (np.bincount(flat_index, w, n_cells * n_groups).reshape(shape) for w in (None, hits))
    n = counts.sum(axis=1)
    shares = sums.sum(axis=1) / n
    spread = ((sums - shares[:, None] * counts) / n[:, None]).sum(axis=0) / n_cells
    kish = n**2 / (counts**2).sum(axis=1)
    variances = 1 / (n_cells**2 * kish)
    degrees = variances.sum() ** 2 / float((variances**2 / np.maximum(kish - 1, 0.5)).sum())
    quantile = float(stdtrit(min(degrees, n_groups - 1), 0.975))
    return mean_interval(
        float(shares.mean()), float(spread @ spread), 1 / float(variances.sum()), np.inf, quantile
    )


def error_interval(judged: Columns, *, of: bool, confidence: float = 0.95) -> Interval | None:
    """The interval of the miss rate (`of=True`) or the false alarm rate, over scored answers."""
    inside = (judged.is_misbehavior == of) & ~np.isnan(judged.flagged)
    return share_interval(judged.flagged[inside] != of, judged.groups[inside], confidence)


def mean_interval(mean: float, variance: float, n_groups: float, n: float, quantile: float) -> Interval:
    """Interval of a mean of n values in [0, 1] from its variance over groups (no G/(G − 1)) and quantile."""
    inside = mean * (1 - mean)
    factor = max(variance * n_groups / inside, n_groups / n) if inside > 0 else 1.0
    weight = n_groups * min(mean, 1 - mean)
    size = n_groups * (weight + _PRIOR) / (weight * factor + _PRIOR)
    return score_bounds(mean, size, quantile)


_OPEN = 1e-9
"""Stands for an end at 0 that is not part of an interval."""


class AnswerChanges(NamedTuple):
    """Changes of the answers to samples of one label."""

    changes: FloatArray | IntArray
    """[samples], each -1, 0 or 1: what became wrong is 1, what became right -1."""
    groups: IntArray
    """[samples]: the numbers of their groups."""
    weight: float = 1.0
    """Factor of their mean in the number that the interval is of."""


def change_interval(parts: Sequence[AnswerChanges], *, confidence: float = 0.95) -> Interval | None:
    """Interval of the weighted sum of mean changes, with whole groups as the evidence.

    A group that is added changes by the root mean square of those that changed, drawn towards the mean size
    of a group as if two had changed by that. Where groups differ in size, the half width grows as Student's t
    does from their number to Kish's effective one. None with fewer than two groups, or without a sample in
    a part.
    """
    present, index = np.unique(np.concatenate([answers.groups for answers in parts]), return_inverse=True)
    n_groups = len(present)
    if n_groups < 2 or not all(len(answers.groups) for answers in parts):
        return None
    influence, weights = np.zeros(n_groups), np.zeros(n_groups)
    centre = added = start = 0.0
    for answers in parts:
        rows = index[int(start) : int(start) + len(answers.groups)]
        start += len(answers.groups)
        sums = np.bincount(rows, weights=answers.changes, minlength=n_groups)
        sizes = np.bincount(rows, minlength=n_groups).astype(np.float64)
        size = float(sizes.sum()) / np.count_nonzero(sizes)
        total = float(sizes.sum()) + 2 * size
        mean = float(sums.sum()) / total
        pseudo = (float(sums @ sums) + 2 * size**2) / (np.count_nonzero(sums) + 2)
        influence += answers.weight * (sums - mean * sizes) / total
        added += 2 * answers.weight**2 * (min(pseudo, size**2) + (mean * size) ** 2) / total**2
        centre += answers.weight * mean
        weights += abs(answers.weight) * sizes / sizes.sum()
    upper = (1 + confidence) / 2
    effective = max(float(weights.sum()) ** 2 / float(weights @ weights), 2.0)
    of_unequal = float(stdtrit(effective - 1, upper) / stdtrit(n_groups - 1, upper))
    reach = NormalDist().inv_cdf(upper) * max(of_unequal, 1.0) * sqrt(float(influence @ influence) + added)
    furthest = sum(abs(answers.weight) for answers in parts)
    return Interval(max(-furthest, centre - reach), min(furthest, centre + reach))


def agreeing(
    interval: Interval | None, difference: float | None, p: float | None, confidence: float = 0.95
) -> Interval | None:
    """The interval, with 0 in it where the test of no difference does not reject it, and only there.

    As the inversion of tests, of which that of no difference is the exact one: taking 0 in makes it wider,
    and leaving out 0 leaves out the differences of the other sign, which are rejected sooner.
    """
    if interval is None or difference is None or p is None:
        return interval
    if p >= 1 - confidence:
        return Interval(min(interval.low, 0.0), max(interval.high, 0.0))
    if difference > 0:
        return Interval(max(interval.low, _OPEN), interval.high)
    return Interval(interval.low, min(interval.high, -_OPEN))
