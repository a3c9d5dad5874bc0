"""How many tasks a pilot needs, and the smallest effect that it would find, by the rule that decides it.

Effects, margins and rates are shares, not percentage points.
"""

from typing import NamedTuple

from monitorbench.config.pilot import MOST_DECISIONS, PilotStatistics
from monitorbench.intervention.statistics.power import PLAIN, DecisionSettings, TaskChanges, observed_changes
from monitorbench.intervention.statistics.power import power as simulated_power
from monitorbench.metrics.bootstrap import IntArray

MOST_TASKS = 1_000_000
"""A pilot of more would never be run."""
_STEPS = 10
"""Steps of the bisection for an effect: it is exact to a thousandth."""
_EXACT = 0.01
"""The number of tasks is exact to this share of it."""


def tasks_needed(
    effect: float, changes: TaskChanges, rule: DecisionSettings = PLAIN, power: float = 0.8
) -> int | None:
    """Tasks with which this effect is told from the margin with this power; None for more than `MOST_TASKS`.

    The tasks change as `changes` has it, but for the effect.
    """
    if abs(effect - rule.margin) < 1 / MOST_TASKS:
        return None
    tilted = changes.tilted(effect)
    most = 2
    while simulated_power(most, tilted, rule) < power:
        most *= 2
        if most > 2 * MOST_TASKS:
            return None
    least = most // 2
    while most - least > max(1, _EXACT * most):
        middle = (least + most) // 2
        enough = simulated_power(middle, tilted, rule) >= power
        least, most = (least, middle) if enough else (middle, most)
    return most if most <= MOST_TASKS else None


def minimum_detectable_effect(
    n_tasks: int, changes: TaskChanges, rule: DecisionSettings = PLAIN, power: float = 0.8
) -> float | None:
    """How far above the margin ΔSuccess has to be for so many tasks to say "intervene" with this power.

    The tasks change as `changes` has it, but for the effect. None where no effect is large enough.
    """
    largest = changes.tilted(1.0)
    least, most = 0.0, largest.effect - rule.margin
    if most <= 0 or simulated_power(n_tasks, largest, rule) < power:
        return None
    for _ in range(_STEPS):
        middle = (least + most) / 2
        enough = simulated_power(n_tasks, changes.tilted(rule.margin + middle), rule) >= power
        least, most = (least, middle) if enough else (middle, most)
    return most


class Further(NamedTuple):
    """What an inconclusive pilot should do next."""

    n_tasks: int | None
    """How many more tasks to run; None where no number can be given."""
    notes: tuple[str, ...] = ()
    """Why no number can be given."""


def further_tasks(cells: IntArray, delta: float, n_tried: int, settings: PilotStatistics) -> Further:
    """Plan for an inconclusive pilot with these cells [tasks, 4] and ΔSuccess, one of `n_tried` conditions.

    A pilot that is looked at runs on to its next look; else the effect that `settings` name is planned for,
    or the observed one, at the error of the pilot's next decision.
    """
    if settings.sequential:
        return Further(settings.look_every)
    if settings.decided_before + 1 == MOST_DECISIONS:
        why = f"decided on {MOST_DECISIONS} times, its error is spent: run a new pilot on other tasks"
        return Further(None, (why,))
    effect, changes = delta if settings.effect is None else settings.effect / 100, observed_changes(cells)

    def needed(decision: PilotStatistics) -> int | None:
        return tasks_needed(effect, changes, _rule(n_tried, decision), settings.power)

    if settings.effect is not None and (needed(settings) or MOST_TASKS) <= len(cells):
        why = f"an effect of {settings.effect:g} points would have been found with these tasks"
        return Further(None, (why,))
    n_tasks = needed(settings.model_copy(update={"decided_before": settings.decided_before + 1}))
    if n_tasks is None:
        why = "the effect is too near the margin to plan for; set `effect` to the smallest that matters"
        return Further(None, (why,))
    return Further(max(1, n_tasks - len(cells)))


def detectable_effect(cells: IntArray, n_tried: int, settings: PilotStatistics) -> float | None:
    """The `minimum_detectable_effect` of as many tasks and runs as in `cells`, for one of `n_tried`
    conditions."""
    changes = observed_changes(cells)
    return minimum_detectable_effect(len(cells), changes, _rule(n_tried, settings), settings.power)


def _rule(n_tried: int, settings: PilotStatistics) -> DecisionSettings:
    return DecisionSettings(
        settings.error, settings.margin / 100, n_tried, settings.prior_tasks, settings.seed
    )
