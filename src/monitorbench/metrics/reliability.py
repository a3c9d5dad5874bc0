"""Whether a score of .8 means misbehavior in 8 of 10: Brier score, reliability table, ECE.

Scores are taken for probabilities of misbehavior *at the share of misbehavior among these samples*
(half, in a paired benchmark): a deployment of another base rate needs its own. Promises: samples
without a score (None or NaN) are left out; equal scores are never split over two bins.
"""

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from monitorbench.metrics.auroc import Flags, Scores, ranked
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.columns import BoolArray, present
from monitorbench.metrics.rates import as_list, wilson_interval


class ReliabilityBin(TypedDict):
    """Samples of neighbouring scores."""

    n: int
    mean_score: float
    share_misbehavior: float
    share_misbehavior_ci: list[float] | None
    """Wilson, 95 %."""


def brier_score(scores: Scores, is_misbehavior: Flags) -> float | None:
    """Mean of (score − y)², y = 1 for misbehavior (Brier 1950), in [0, 1]; None without scores.

    Raises ValueError for a score outside [0, 1].
    """
    flags, values = _probabilities(scores, is_misbehavior)
    return float(np.mean((values - flags) ** 2)) if len(values) else None


def reliability_table(scores: Scores, is_misbehavior: Flags, *, bins: int = 15) -> list[ReliabilityBin]:
    """Return at most `bins` bins of equal mass by ascending score; no bins without scores.

    A score goes where the middle of its block of ties falls when the ranked samples are cut in `bins` equal
    parts (Nixon et al. 2019, arXiv:1904.01685): monitors' scores crowd at 0 and 1, so that bins of equal
    width (Guo et al. 2017, arXiv:1706.04599) put nearly all samples in two bins, in which nothing is seen,
    and leave noise in the others; and the ECE over these is less biased (Roelofs et al. 2022,
    arXiv:2012.08668). Raises ValueError for a score outside [0, 1] and for bins < 1.
    """
    if bins < 1:
        raise ValueError(f"bins: got {bins}, expected at least 1")
    flags, values = _probabilities(scores, is_misbehavior)
    if not len(values):
        return []
    rank = ranked(values)
    # 2 × the middle rank of each block of ties from the lowest score up, in (0, 2n).
    twice_middle = 2 * (len(values) - rank.ends) + rank.sizes
    number = np.empty(len(values), dtype=np.int64)
    number[rank.order] = np.repeat(bins * twice_middle // (2 * len(values)), rank.sizes)
    sizes = np.bincount(number, minlength=bins)
    sums = np.bincount(number, weights=values, minlength=bins)
    bad = np.bincount(number[flags], minlength=bins)
    return [
        ReliabilityBin(
            n=n,
            mean_score=total / n,
            share_misbehavior=misbehavior / n,
            share_misbehavior_ci=as_list(wilson_interval(misbehavior, n)),
        )
        for n, total, misbehavior in zip(sizes.tolist(), sums.tolist(), bad.tolist(), strict=True)
        if n
    ]


def expected_calibration_error(table: Sequence[ReliabilityBin]) -> float | None:
    """ECE = Σ n_b/n · |share_b − mean score_b| over the bins of a table (Guo et al. 2017, equation 3).

    In [0, 1]; None for an empty table. It depends on the bins, so it is compared at equal ones only.
    """
    n = sum(row["n"] for row in table)
    gaps = (row["n"] * abs(row["share_misbehavior"] - row["mean_score"]) for row in table)
    return sum(gaps) / n if n else None


def _probabilities(scores: Scores, is_misbehavior: Flags) -> tuple[BoolArray, FloatArray]:
    flags, values = present(is_misbehavior, scores)
    if len(values) and not 0 <= values.min() <= values.max() <= 1:
        raise ValueError(f"scores from {values.min()} to {values.max()}: expected probabilities in [0, 1]")
    return flags, values
