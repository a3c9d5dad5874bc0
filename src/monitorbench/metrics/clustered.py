"""The interval of a share whose samples come in groups: Wilson's, with whole groups as the evidence.

Samples of one question are not independent: with four that hang together, Wilson's 95 % interval of a rate
holds the truth in as little as 68 % of data sets. With one sample a group nothing differs from Wilson's.
"""

from statistics import NormalDist

import numpy as np
from scipy.special import stdtrit

from monitorbench.metrics.bootstrap import IntArray, group_index
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
