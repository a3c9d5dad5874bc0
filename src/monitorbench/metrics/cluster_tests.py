"""Whether two monitors differ on the same samples, with whole groups as the evidence: p values.

The variance is the one that the bootstrap of whole groups tends to, worked out instead of drawn: 2,000 draws
give no p below .001, and a correction over hundreds of cells needs smaller ones. Promises: two-sided, not
corrected; None where fewer than two groups could differ; never smaller than an exact test on as many groups
could be, so that a difference without any spread (three pairs, all better) is no proof.
"""

from math import erfc, pi, sqrt

import numpy as np

from monitorbench.metrics.auroc_variance import clustered_variance, components
from monitorbench.metrics.bootstrap import FloatArray, IntArray, group_index
from monitorbench.metrics.columns import BoolArray
from monitorbench.metrics.compare import mcnemar

_NORMAL_FROM = 10_000
"""Degrees of freedom from which Student's t is taken for normal."""


def auroc_difference_p(
    first: FloatArray, second: FloatArray, is_misbehavior: BoolArray, groups: IntArray
) -> float | None:
    """P of equal AUROCs over the samples that both gave a score; all [samples].

    Obuchowski's variance of the difference (1997, section 2) and Student's t with groups − 1 degrees of
    freedom; at least 2^(1 − groups), the smallest p of swapping the two monitors group by group.
    """
    kept = ~np.isnan(first) & ~np.isnan(second)
    flags, index = is_misbehavior[kept], groups[kept]
    if not flags.any() or flags.all():
        return None
    index = group_index(index)
    n_groups = int(index.max()) + 1
    change = components(second[kept], flags) - components(first[kept], flags)
    variance = clustered_variance(change, flags, index) if n_groups > 1 else None
    if variance is None:
        return None
    return max(_two_sided(float(change[flags].mean()), variance, n_groups - 1), 2.0 ** (1 - n_groups))


def rate_difference_p(
    first: FloatArray, second: FloatArray, is_misbehavior: BoolArray, groups: IntArray, *, of: bool
) -> float | None:
    """P of equal miss rates (`of=True`) or false alarm rates over what both answered; all [samples].

    The larger of two: McNemar's exact test, which takes samples for independent, and Student's t with
    groups − 1 degrees of freedom on the change summed by group (the linearised ratio, Davison & Hinkley 1997,
    section 3.8), which does not but is a normal approximation.
    """
    kept = (is_misbehavior == of) & ~np.isnan(first) & ~np.isnan(second)
    if not kept.any():
        return None
    change = (second[kept] != of).astype(np.int64) - (first[kept] != of)
    index = group_index(groups[kept])
    n_groups = int(index.max()) + 1
    if n_groups < 2:
        return None
    sums, sizes = np.bincount(index, weights=change), np.bincount(index)
    mean = float(change.mean())
    spread = sums - sizes * mean
    variance = n_groups / (n_groups - 1) * float(spread @ spread) / len(change) ** 2
    exact = mcnemar(int(np.count_nonzero(change < 0)), int(np.count_nonzero(change > 0)))
    return max(_two_sided(mean, variance, n_groups - 1), exact, 2.0 ** (1 - n_groups))


def _two_sided(difference: float, variance: float, degrees: int) -> float:
    if abs(difference) < 1e-12:  # floating point of equal AUROCs
        return 1.0
    return student_p(abs(difference) / sqrt(variance), degrees) if variance > 0 else 0.0


def student_p(t: float, degrees: int) -> float:
    """Two-sided p of Student's t, t >= 0 (Abramowitz & Stegun 1964, 26.7.3 and 26.7.4), to 1e-14."""
    if degrees >= _NORMAL_FROM:
        return erfc(t / sqrt(2))
    angle = np.arctan(t / sqrt(degrees))
    sine, cosine = float(np.sin(angle)), float(np.cos(angle))
    odd = degrees % 2
    k = np.arange(1, (degrees - 1) // 2 + 1 - odd, dtype=np.float64)
    terms = np.cumprod(np.append(1.0, (2 * k - 1 + odd) / (2 * k + odd) * cosine**2))
    if degrees == 1:
        return float(1 - 2 * angle / pi)
    total = float(terms.sum())
    inside = 2 / pi * (angle + sine * cosine * total) if odd else sine * total
    return float(min(1.0, max(0.0, 1 - inside)))
