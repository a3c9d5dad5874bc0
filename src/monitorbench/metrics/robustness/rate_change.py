"""The interval of a paired change of an error rate, which has a width also where no answer changed.

Bonett & Price's adjusted Wald interval (2012, Journal of Educational and Behavioral Statistics 37:479): two
pairs are added, one that changed each way. Here they are groups: with one sample of the label in each group
it is theirs, with more the variance is that of the groups' sums. A bootstrap of answers none of which changed
would say that none ever does.
"""

from math import sqrt
from statistics import NormalDist

import numpy as np

from monitorbench.metrics.bootstrap import FloatArray, IntArray, group_index
from monitorbench.metrics.rates import Interval


def rate_change_interval(
    changes: FloatArray | IntArray, groups: IntArray, *, confidence: float = 0.95
) -> Interval | None:
    """Of the mean of `changes` [samples] in {−1, 0, 1}: what became wrong is 1, what became right −1.

    `groups` [samples] numbers their groups. None with fewer than two groups. Inside [−1, 1].
    """
    index = group_index(groups)
    n_groups = int(index.max(initial=-1)) + 1
    if n_groups < 2:
        return None
    sums = np.bincount(index, weights=changes, minlength=n_groups)
    sizes = np.bincount(index, minlength=n_groups).astype(np.float64)
    mean_size = float(sizes.mean())
    sums = np.concatenate([sums, [mean_size, -mean_size]])
    sizes = np.concatenate([sizes, [mean_size, mean_size]])
    centre = float(sums.sum() / sizes.sum())
    spread = sqrt(float(((sums - centre * sizes) ** 2).sum())) / float(sizes.sum())
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * spread
    return Interval(max(-1.0, centre - reach), min(1.0, centre + reach))
