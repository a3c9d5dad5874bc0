"""Means over draws of whole tasks, where the threshold is another one in each draw.

A draw's threshold is one of few scores, so a sample's value is worked out once for each of them, summed by
task, and tasks of equal sums are drawn by kind (`metrics/bootstrap.py`): exact, and quick for a million rows.
"""

from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from monitorbench.metrics.bootstrap import (
    FloatArray,
    IntArray,
    group_index,
    group_sums,
    kind_draws,
    kinds_of_groups,
    percentiles,
)
from monitorbench.metrics.clustered import mean_interval
from monitorbench.metrics.rates import Interval

_STEPS = 1_000_000
"""Values are whole numbers of millionths in the sums."""


class RedrawnValues(NamedTuple):
    """A monitor's value of each sample at a threshold, and its threshold in each draw."""

    value_at: Callable[[float], FloatArray]
    """Function from a threshold to values [samples], each in [0, 1]."""
    thresholds: FloatArray
    """[draws]"""


def redrawn_means(monitors: Sequence[RedrawnValues], groups: IntArray, *, seed: int) -> FloatArray:
    """The monitors' means [monitors, draws] over draws of tasks, the same draws for all of them.

    `groups` [samples] numbers the tasks. Raises `ValueError` without a monitor or a sample.
    """
    if not monitors or not len(groups):
        raise ValueError("expected at least one monitor and one sample")
    index = group_index(groups)
    columns, places, start = [], [], 1
    for one in monitors:
        levels, level_index = np.unique(one.thresholds, return_inverse=True)
        columns += [np.rint(_STEPS * one.value_at(float(level))).astype(np.int64) for level in levels]
        places.append(level_index + start)
        start += len(levels)
    size = np.ones((len(index), 1), dtype=np.int64)
    rows = np.concatenate([group_sums(one, index) for one in (size, *(c[:, None] for c in columns))], axis=1)
    kinds = kinds_of_groups(rows)
    resamples = len(monitors[0].thresholds)
    means, done = np.empty((len(monitors), resamples)), 0
    for batch in kind_draws(kinds.n_groups, resamples, seed, per_draw=len(kinds.n_groups) + rows.shape[1]):
        totals, here = batch @ kinds.rows, np.arange(len(batch))
        for i, level_index in enumerate(places):
            sums = totals[here, level_index[done : done + len(batch)]]
            means[i, done : done + len(batch)] = sums / (_STEPS * totals[:, 0])
        done += len(batch)
    return means


def at_this_threshold(values: FloatArray, groups: IntArray, confidence: float = 0.95) -> Interval | None:
    """The interval by task of a mean of `values` [samples] in [0, 1], the threshold given.

    Wilson's with an effective sample size (`metrics/clustered.py`); None with fewer than two tasks.
    """
    index = group_index(groups)
    n, n_groups = len(values), int(index.max(initial=-1)) + 1
    if n_groups < 2:
        return None
    mean = float(values.mean())
    spread = np.bincount(index, weights=values - mean)
    return mean_interval(
        mean, float(spread @ spread) / n**2, n_groups, n, NormalDist().inv_cdf((1 + confidence) / 2)
    )


def wider(first: Interval | None, second: Interval | None) -> Interval | None:
    """The interval that holds both; None where one of them is missing."""
    if first is None or second is None:
        return None
    return Interval(min(first.low, second.low), max(first.high, second.high))


def mean_interval_anew(values: FloatArray, groups: IntArray, means: FloatArray) -> Interval | None:
    """95 % interval of a mean whose threshold was chosen on data: over the draws, and at the threshold.

    The percentiles of `means` [draws] and `at_this_threshold` of `values` [samples], whichever reaches
    further on either side: the first knows that the threshold could have been another one, the second holds
    where all samples are alike, or the threshold is the highest score, and draws show too little.
    """
    return wider(percentiles(means), at_this_threshold(values, groups))
