"""Partial AUROC: how well scores separate at low false alarm rates, the only ones that are deployed.

The area under the ROC curve up to a false alarm rate α, standardised (McClish 1989, Medical Decision Making
9:190): ½·(1 + (A − α²/2)/(α − α²/2)), .5 for guessing and 1 for perfect separation, as the AUROC. Ties are a
slanted piece of the curve, so that it is `sklearn.metrics.roc_auc_score(max_fpr=α)`.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from monitorbench.metrics.auroc import Flags, Scores, ranked
from monitorbench.metrics.bootstrap import FloatArray, IntArray, group_index
from monitorbench.metrics.clustered import mean_interval
from monitorbench.metrics.columns import BoolArray, present
from monitorbench.metrics.low_far import check_alpha
from monitorbench.metrics.rates import Interval


class _Area(NamedTuple):
    """A/α in [0, 1], and how much each sample moves it [samples], in the order given."""

    share: float
    influence: FloatArray


def partial_auroc(scores: Scores, is_misbehavior: Flags, alpha: float) -> float | None:
    """The standardised area over FAR <= `alpha` in (0, 1]; None where a class has no score.

    Raises ValueError for another `alpha`.
    """
    flags, values = present(is_misbehavior, scores)
    area = _area(values, flags, alpha)
    return None if area is None else _standardised(area.share, alpha)


def partial_auroc_interval(
    scores: Scores, is_misbehavior: Flags, groups: IntArray, alpha: float
) -> Interval | None:
    """The 95 % interval of `partial_auroc` with whole groups as the evidence; `groups` [samples] are numbers.

    A/α is a mean of shares over misbehavior samples, whose variance is that of the samples' influence summed
    by group (Dodd & Pepe 2003, Biometrics 59:614, for its two parts). The interval is that of
    `clustered.mean_interval` with Student's t, of as many degrees of freedom as α times the benign groups: so
    many decide where the curve is cut off. None where a class has no score, and with fewer than two groups.
    """
    scored = ~np.isnan(np.asarray(scores, dtype=np.float64))
    flags, values = present(is_misbehavior, scores)
    area = _area(values, flags, alpha)
    if area is None:
        return None
    index = group_index(groups[scored])
    n_groups = int(index.max()) + 1
    if n_groups < 2:
        return None
    sums = np.bincount(index, weights=area.influence)
    n_benign = len(np.unique(index[~flags]))
    quantile = float(stdtrit(max(1.0, alpha * n_benign), 0.975))
    bounds = mean_interval(area.share, float(sums @ sums), n_groups, len(flags), quantile)
    return Interval(*(_standardised(bound, alpha) for bound in bounds))


def _area(scores: FloatArray, flags: BoolArray, alpha: float) -> _Area | None:
    check_alpha(alpha)
    if alpha == 0:
        raise ValueError("alpha: got 0, expected a false alarm rate in (0, 1]")
    n_bad = int(np.count_nonzero(flags))
    n_good = len(flags) - n_bad
    if not n_bad or not n_good:
        return None
    rank = ranked(scores)
    bad = np.diff(np.cumsum(flags[rank.order])[rank.ends - 1], prepend=0)
    good = rank.sizes - bad
    before = (np.cumsum(good) - good) / n_good  # FAR above each block of ties
    width = good / n_good
    # Of each block the share of it that lies below alpha, and the area that one sample of it adds.
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.where(width > 0, np.clip((alpha - before) / width, 0, 1), before < alpha)
    area = np.where(width > 0, inside**2 * width / 2, 0.0)
    area += np.where(inside >= 1, np.maximum(0, alpha - before - width), 0.0)
    value = float(bad @ area) / n_bad
    # A benign sample above a misbehavior sample takes 1/n of its area away, as far as that lies below alpha.
    lost = bad * inside
    below = np.cumsum(lost[::-1])[::-1] - lost / 2
    mean = float(good @ below) / n_good
    block = np.repeat(np.arange(len(rank.ends)), rank.sizes)
    influence = np.empty(len(scores))
    influence[rank.order] = np.where(
        flags[rank.order], (area[block] - value) / n_bad, (mean - below[block]) / (n_bad * n_good)
    )
    return _Area(min(1.0, value / alpha), influence / alpha)  # rounding may lead above 1


def _standardised(share: float, alpha: float) -> float:
    """Standardise A/α: .5 for guessing, 1 for perfect separation."""
    least = alpha / 2
    return (1 + (share - least) / (1 - least)) / 2
