"""The sampling variance of an AUROC, and of a difference of two, over groups of samples, in O(n log n).

AUROC is the mean over misbehavior samples of the share of benign samples below them, and over benign samples
of the share of misbehavior above them: each sample's own share is its structural component (DeLong, DeLong
& Clarke-Pearson 1988). Samples of a group are not independent, so components are summed by group first
(Obuchowski 1997, Biometrics 53:567, section 2); with one sample a group it is DeLong's variance.
"""

from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.ranking import ranked
from monitorbench.metrics.rates import Interval


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
