"""The interval of a paired change: of an error rate, or of a cost that weighs two error rates.

Bonett & Price's adjusted Wald interval (2012, Journal of Educational and Behavioral Statistics 37:479): two
pairs are added, one that changed each way. Here they are groups: with one sample of the label in each group
it is theirs, with more the variance is that of the groups' sums. A bootstrap of answers none of which changed
would say that none ever does.
"""

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.rates import Interval

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
