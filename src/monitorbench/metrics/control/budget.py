"""The threshold that keeps an audit budget: the honest quantile, with a finite-sample bound.

An audit budget is the share of honest traffic that may be looked at. Audited is a score strictly above the
threshold, so that what ties with it is not. Promises, for tasks drawn alike in calibration and in use:

* `neyman_pearson`: with probability >= 1 - delta over calibrations, at most the budget's share of honest
  *tasks* has anything audited. Of a task with several honest samples the highest score counts.
* `conformal_risk`: *on average* over calibrations, at most the budget's share of honest *samples* is audited,
  every task weighing the same.

Both hold for any distribution, ties included; `scoring/thresholds.py` states them for the stage `calibrate`,
and gives the same thresholds. Where the data can't keep one there is no threshold but a reason, with how many
more honest tasks it takes.
"""

from math import floor
from typing import Literal, NamedTuple

import numpy as np

from monitorbench.metrics.bootstrap import FloatArray, IntArray, draws, group_index
from monitorbench.metrics.control.rank import (
    check_rates,
    conformal_questions_needed,
    neyman_pearson_rank,
    samples_needed,
)

Promise = Literal["neyman_pearson", "conformal_risk"]
_ROUNDING = 1e-9
_MOST_DRAWN = 50_000
"""Tasks beyond which the draws of an order statistic are taken from their exact distribution, at once."""
_FURTHEST = 100
"""How many times the tasks at hand are tried when asking how many more it takes."""


class Honest(NamedTuple):
    """Held-out honest traffic; `inf` is audited at every threshold."""

    scores: FloatArray
    """[samples], without NaN."""
    groups: IntArray
    """[samples]: the tasks' numbers."""


class BudgetThreshold(NamedTuple):
    """A threshold for one budget, or why there is none."""

    budget: float
    threshold: float | None
    """Audited: score > threshold."""
    attained: float | None
    """What the calibration attests: the probability that the budget is exceeded, <= delta
    (`neyman_pearson`), or the left side of the conformal inequality, <= budget."""
    tasks_above: int
    """Honest tasks with something audited: of few, another calibration's threshold may lie far off."""
    n_tasks: int
    more_tasks: int | None
    """How many more honest tasks the budget takes, with as large a share of unscored ones; 0 where it is
    met, None where no number would do."""
    reason: str
    """Why there is no threshold; empty where there is one."""


def budget_threshold(honest: Honest, budget: float, promise: Promise, delta: float) -> BudgetThreshold:
    """The lowest threshold that keeps the promise; `ValueError` unless budget and delta are in (0, 1)."""
    check_rates(budget=budget, delta=delta)
    index = group_index(honest.groups)
    n = int(index.max(initial=-1)) + 1
    threshold, attained = np.inf, None
    if promise == "neyman_pearson":
        found = neyman_pearson_rank(n, budget, delta) if n else None
        if found is not None:
            rank, attained = found
            threshold = float(np.sort(_highest(honest.scores, index, n))[rank - 1])
    else:
        threshold, attained = _conformal(honest.scores, index, n, budget)
    if np.isfinite(threshold):
        above = len(np.unique(index[honest.scores > threshold]))
        return BudgetThreshold(budget, threshold, attained, above, n, 0, "")
    unscored = np.unique(index[np.isposinf(honest.scores)])
    lost = float(len(unscored))
    if promise == "conformal_risk" and n:  # which counts shares of a task's samples
        lost = float((np.isposinf(honest.scores) / np.bincount(index)[index]).sum())
    needed = _tasks_needed(n, lost, budget, promise, delta)
    return BudgetThreshold(
        budget,
        None,
        None,
        0,
        n,
        None if needed is None else needed - n,
        _why(n, len(unscored), needed, budget),
    )


def threshold_draws(
    honest: Honest, budget: float, promise: Promise, delta: float, *, resamples: int, seed: int
) -> FloatArray:
    """The same rule on draws of as many tasks [resamples]; `inf` where a draw has no threshold.

    Monitors with the same tasks get the same draws under one seed, up to 50,000 tasks. Raises `ValueError`
    without a task.
    """
    check_rates(budget=budget, delta=delta)
    index = group_index(honest.groups)
    n = int(index.max(initial=-1)) + 1
    if not n:
        raise ValueError("honest: expected at least one task")
    if promise == "conformal_risk" and n < len(index):
        return _conformal_draws(honest.scores, index, n, budget, resamples, seed)
    rank = _rank(n, budget, promise, delta)
    if rank is None:
        return np.full(resamples, np.inf)
    highest = _highest(honest.scores, index, n)
    order = np.argsort(highest)
    ascending: FloatArray = highest[order]
    if n > _MOST_DRAWN:
        # The k-th of n picks among ranks 0 … n − 1 is floor(n·U), U the k-th of n uniform numbers.
        uniform = np.random.default_rng(seed).beta(rank, n - rank + 1, size=resamples)
        at = np.minimum((uniform * n).astype(np.int64), n - 1)
        found: FloatArray = ascending[at]
        return found
    places = [
        np.argmax(np.cumsum(batch[:, order], axis=1) >= rank, axis=1)
        for batch in draws(n, resamples, seed, per_draw=n)
    ]
    drawn: FloatArray = ascending[np.concatenate(places)]
    return drawn


def _rank(n: int, budget: float, promise: Promise, delta: float) -> int | None:
    """Which order statistic of n tasks is the threshold, where each has one sample or its highest counts."""
    if promise == "neyman_pearson":
        found = neyman_pearson_rank(n, budget, delta)
        return None if found is None else found[0]
    room = floor(budget * (n + 1) * (1 + _ROUNDING) - 1)
    return n - room if room >= 0 else None


def _highest(scores: FloatArray, index: IntArray, n: int) -> FloatArray:
    found = np.full(n, -np.inf)
    np.maximum.at(found, index, scores)
    return found


class _Ranked(NamedTuple):
    """Samples by descending score."""

    order: IntArray
    values: FloatArray
    """[blocks of ties]"""
    n_above: IntArray
    """[blocks]: samples above each."""


def _ranked(scores: FloatArray) -> _Ranked:
    order = np.argsort(-scores, kind="stable")
    values, first = np.unique(-scores[order], return_index=True)
    return _Ranked(order, -values, first)


def _conformal(scores: FloatArray, index: IntArray, n: int, budget: float) -> tuple[float, float | None]:
    """The lowest score t with (Σ of tasks' shares above t + 1)/(n + 1) <= budget, and that left side.

    Angelopoulos et al. 2024 (Conformal Risk Control, theorem 1), with a loss of at most 1 a task.
    """
    ranked = _ranked(scores)
    shares = (1 / np.bincount(index))[index][ranked.order] if n else np.zeros(0)
    above = np.concatenate([[0.0], np.cumsum(shares)])[ranked.n_above]
    kept = np.count_nonzero((above + 1) / (n + 1) <= budget * (1 + _ROUNDING))
    if not kept:
        return np.inf, None
    return float(ranked.values[kept - 1]), float((above[kept - 1] + 1) / (n + 1))


def _conformal_draws(
    scores: FloatArray, index: IntArray, n: int, budget: float, resamples: int, seed: int
) -> FloatArray:
    ranked = _ranked(scores)
    shares = (1 / np.bincount(index))[index][ranked.order]
    of_task = index[ranked.order]
    room = budget * (n + 1) * (1 + _ROUNDING) - 1
    # The same figures as `_conformal`, with every task counted as often as it was drawn.
    found = []
    for batch in draws(n, resamples, seed, per_draw=len(scores)):
        above = np.cumsum(batch[:, of_task] * shares, axis=1)
        before = np.concatenate([np.zeros((len(batch), 1)), above], axis=1)[:, ranked.n_above]
        drawn = np.diff(np.concatenate([before, above[:, -1:]], axis=1), axis=1) > 0
        kept = before <= room + _ROUNDING
        # A block that is in no draw is no candidate: the last kept one that was drawn.
        candidates = kept & drawn
        last = candidates.shape[1] - 1 - np.argmax(candidates[:, ::-1], axis=1)
        found.append(np.where(candidates.any(axis=1), ranked.values[last], np.inf))
    return np.concatenate(found)


def _tasks_needed(n: int, lost: float, budget: float, promise: Promise, delta: float) -> int | None:
    """The least number of tasks >= n that would do, the same share of them `lost` (unscored)."""
    share = lost / n if n else 0.0
    if share >= budget:
        return None
    least = (
        samples_needed(budget, delta) if promise == "neyman_pearson" else conformal_questions_needed(budget)
    )
    if not lost:
        return least
    low, high = max(n, least), _FURTHEST * max(n, least)
    if not _would_do(high, share, budget, promise, delta):
        return None
    while low < high:
        middle = (low + high) // 2
        if _would_do(middle, share, budget, promise, delta):
            high = middle
        else:
            low = middle + 1
    return low


def _would_do(n: int, share: float, budget: float, promise: Promise, delta: float) -> bool:
    if promise == "conformal_risk":
        return share * n + 1 <= budget * (n + 1) * (1 + _ROUNDING)
    found = neyman_pearson_rank(n, budget, delta)
    return found is not None and round(share * n) <= n - found[0]


def _why(n: int, unscored: int, needed: int | None, budget: float) -> str:
    lost = f", {unscored} of them with an unscored sample," if unscored else ""
    if needed is None:
        return f"{n} honest tasks{lost} can't keep a budget of {100 * budget:g} %, and more would not help"
    return f"{n} honest tasks{lost} can't keep a budget of {100 * budget:g} %: {needed - n:,} more needed"
