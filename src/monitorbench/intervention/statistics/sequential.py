"""Looking at a pilot while it runs: an interval of ΔSuccess that holds at every look at once.

A confidence sequence by betting (Waudby-Smith & Ramdas 2024, JRSS B 86:1, section 4), not a group-sequential
plan. It needs no largest number of tasks fixed beforehand, so an inconclusive pilot may simply run on; it is
exact for few tasks and any number of seeds, where early looks with three changed runs break every normal
approximation; and it holds for any margin. The price is power: it needs more tasks than one look at the end.

Against the claim that the mean change of a task is at most m, start with a capital of 1 and bet a share
c of what can be lost on each task: the capital is multiplied by 1 + c·(x − m)/(1 + m), which on average does
not grow where the claim holds, so it ever reaches 1/a with a chance of at most a (Ville 1939). The capital
is spread evenly over several c. Promises: that chance bounds the error over all looks, on the condition that
tasks come in random order.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.rates import Interval

_BETS = 0.99 * 2.0 ** (-np.arange(14) / 2)
"""Shares of what can be lost, from nearly all to a hundredth: for effects large and small."""
_STEPS = 32
"""Steps of the bisection, which make its bounds exact to 2^-31."""


class Look(NamedTuple):
    """The interval that is known after so many tasks."""

    n_tasks: int
    interval: Interval
    """Holds the mean change of a task, at this look and at all before it."""


def look_at(changes: FloatArray, every: int, error_low: float, error_high: float) -> list[Look]:
    """Looks after each `every` tasks and after the last, at `changes` [tasks] in [−1, 1], in running order.

    There is at least one task. A task's change is the mean over its seeds of treated minus baseline success.
    The mean change lies below any of the intervals with a chance of at most `error_low`, and above with one
    of at most `error_high`.
    """
    n = len(changes)
    sizes = sorted({*range(every, n + 1, every), n})
    values, kind = np.unique(changes, return_inverse=True)
    seen = np.cumsum(np.eye(len(values))[kind], axis=0)[np.array(sizes) - 1]
    low = np.maximum.accumulate(_lower(seen, values, error_low))
    high = np.minimum.accumulate(-_lower(seen, -values, error_high))
    bounds = [Interval(float(a), float(b)) for a, b in zip(low, high, strict=True)]
    return [Look(*row) for row in zip(sizes, bounds, strict=True)]


def first_decisive(looks: Sequence[Look], margin: float) -> Look | None:
    """The first look whose interval lies on one side of the margin: the pilot stops there."""
    return next((one for one in looks if one.interval.low > margin or one.interval.high < margin), None)


def _lower(seen: FloatArray, values: FloatArray, error: float) -> FloatArray:
    """Lower bounds [looks]: the largest means that are refuted, from how often each of `values` was seen."""
    low, high = np.full(len(seen), -1.0), np.ones(len(seen))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        refuted = _log_capital(seen, values, middle) >= -np.log(error)
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return low


def _log_capital(seen: FloatArray, values: FloatArray, mean: FloatArray) -> FloatArray:
    """The logarithm of the capital [looks] against a mean of at most `mean` [looks], above −1."""
    gain = (values - mean[:, None]) / (1 + mean[:, None])  # [looks, values], at least −1
    growth = np.log1p(_BETS[:, None, None] * gain)  # [bets, looks, values]
    logs = (growth * seen).sum(axis=2)
    top = logs.max(axis=0)
    found: FloatArray = top + np.log(np.exp(logs - top).mean(axis=0))
    return found
