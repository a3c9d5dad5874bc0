"""How many tasks a pilot needs: power and the smallest effect it would find, for tasks × seeds.

A run's change (treated minus baseline success: −1, 0 or 1) has a variance, and the runs of a task a
correlation; the mean of a task's runs has variance v·(ρ + (1 − ρ)/seeds), so more seeds help only as far as
ρ lets them. All by the normal approximation. Effects, margins and rates are shares, not percentage points.
"""

from math import ceil, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from monitorbench.config.pilot import PilotStatistics
from monitorbench.metrics.bootstrap import IntArray

_NORMAL = NormalDist()
MOST_TASKS = 1_000_000
"""A pilot of more would never be run."""


class Spread(NamedTuple):
    """How much the changes of runs vary, and how alike they are within a task."""

    variance: float
    """The variance of one run's change, in [0, 1]."""
    correlation: float
    """The correlation of the changes of two runs of one task, in [0, 1]."""

    def of_task(self, seeds: float) -> float:
        """The variance of a task's mean change over `seeds` runs."""
        return self.variance * (self.correlation + (1 - self.correlation) / seeds)


def expected_spread(p: float, r: float, d: float, correlation: float = 1.0) -> Spread:
    """Before any run: from the rates one expects; correlation 1 takes further seeds to add nothing."""
    changed, change = p * r + (1 - p) * d, p * r - (1 - p) * d
    return Spread(changed - change**2, correlation)


def observed_spread(cells: IntArray, prior_tasks: int) -> Spread:
    """Estimate the spread from each task's cells [tasks, 4], with the tasks that the bootstrap adds.

    The correlation is the one-way analysis of variance's (Fisher), kept within [0, 1]; 1 where each task has
    one run, since one run can't show it.
    """
    seeds = cells.sum(axis=1)
    total = float(seeds.sum())
    per_task = total / len(cells)
    disrupted, recovered = (float(cells[:, i].sum()) + prior_tasks * per_task for i in (1, 2))
    n = total + 4 * prior_tasks * per_task
    variance = (disrupted + recovered) / n - ((recovered - disrupted) / n) ** 2
    change = (cells[:, 2] - cells[:, 1]) / seeds
    within = float((cells[:, 1] + cells[:, 2] - seeds * change**2).sum())
    if total == len(cells) or len(cells) < 2:
        return Spread(variance, 1.0)
    mean_square_within = within / (total - len(cells))
    overall = float((cells[:, 2] - cells[:, 1]).sum()) / total
    mean_square_between = float((seeds * (change - overall) ** 2).sum()) / (len(cells) - 1)
    size = (total - float((seeds**2).sum()) / total) / (len(cells) - 1)
    whole = mean_square_between + (size - 1) * mean_square_within
    correlation = (mean_square_between - mean_square_within) / whole if whole > 0 else 1.0
    return Spread(variance, float(np.clip(correlation, 0.0, 1.0)))


def power(
    effect: float,
    n_tasks: int,
    seeds: float,
    spread: Spread,
    *,
    confidence: float = 0.95,
    margin: float = 0.0,
) -> float:
    """The chance that the interval of ΔSuccess lies on the effect's own side of the margin."""
    shift = abs(effect - margin) / sqrt(spread.of_task(seeds) / n_tasks)
    return _NORMAL.cdf(shift - _quantile(confidence))


def minimum_detectable_effect(
    n_tasks: int, seeds: float, spread: Spread, *, confidence: float = 0.95, power: float = 0.8
) -> float:
    """How far from the margin ΔSuccess has to be to be distinguished from it with this power."""
    reach = _quantile(confidence) + _NORMAL.inv_cdf(power)
    return max(0.0, reach) * sqrt(spread.of_task(seeds) / n_tasks)


def tasks_needed(
    effect: float,
    seeds: float,
    spread: Spread,
    *,
    confidence: float = 0.95,
    power: float = 0.8,
    margin: float = 0.0,
) -> int | None:
    """Tasks with which this effect is distinguished from the margin; None for more than `MOST_TASKS`."""
    distance = abs(effect - margin)
    reach = max(0.0, _quantile(confidence) + _NORMAL.inv_cdf(power))
    variance = spread.of_task(seeds)
    if distance == 0 or reach**2 * variance > MOST_TASKS * distance**2:
        return None
    return max(1, ceil(reach**2 * variance / distance**2))


class Further(NamedTuple):
    """What an inconclusive pilot should do next."""

    n_tasks: int | None
    """How many more tasks to run; None where no number can be given."""
    notes: tuple[str, ...] = ()
    """Why no number can be given."""


def further_tasks(cells: IntArray, delta: float, n_tried: int, settings: PilotStatistics) -> Further:
    """Plan for an inconclusive pilot with these cells [tasks, 4] and ΔSuccess, one of `n_tried` conditions.

    A pilot that is looked at runs on to its next look; else the effect that `settings` name is planned for,
    or the observed one.
    """
    if settings.sequential:
        return Further(settings.look_every)
    needed = tasks_needed(
        delta if settings.effect is None else settings.effect / 100,
        float(cells.sum(axis=1).mean()),
        observed_spread(cells, settings.prior_tasks),
        confidence=_for_each(settings.confidence, n_tried),
        power=settings.power,
        margin=settings.margin / 100,
    )
    if needed is None:
        why = "the effect is too near the margin to plan for; set `effect` to the smallest that matters"
        return Further(None, (why,))
    if settings.effect is not None and needed <= len(cells):
        why = f"an effect of {settings.effect:g} points would have been found with these tasks"
        return Further(None, (why,))
    return Further(max(1, needed - len(cells)))


def detectable_effect(cells: IntArray, n_tried: int, settings: PilotStatistics) -> float:
    """The `minimum_detectable_effect` of as many tasks and runs as in `cells`, for one of `n_tried`
    conditions."""
    return minimum_detectable_effect(
        len(cells),
        float(cells.sum(axis=1).mean()),
        observed_spread(cells, settings.prior_tasks),
        confidence=_for_each(settings.confidence, n_tried),
        power=settings.power,
    )


def _for_each(confidence: float, n_tried: int) -> float:
    """The confidence for each of several conditions with which all of them have `confidence` (Bonferroni)."""
    return 1 - (1 - confidence) / n_tried


def _quantile(confidence: float) -> float:
    return _NORMAL.inv_cdf((1 + confidence) / 2)
