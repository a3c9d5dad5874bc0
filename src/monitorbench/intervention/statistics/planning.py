"""How many tasks a pilot needs, and the smallest effect that it would find, by the rule that decides it.

The power is how often the rule finds an effect in pilots that are simulated. What is simulated is how the
tasks of a pilot change (`TaskChanges`); each pilot is then decided on as `decision_rule` does: by the exact
test, and where a task's runs may end differently, or a margin is asked for, by the interval of the draws too.
That interval's bounds are reckoned from the first three moments (Cornish & Fisher 1938) in place of 10,000
draws a pilot. Promises: the same settings give the same power. Effects, margins and rates are shares, not
percentage points.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from monitorbench.config.pilot import MOST_DECISIONS, PilotStatistics
from monitorbench.intervention.statistics.exact import critical_value
from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.columns import BoolArray

PILOTS = 4000
"""Number of simulated pilots: the power is right to within 2 points."""
_UNSEEN = 0.5
"""Tasks that count for a side on which none was seen."""
_SHORT = 1e-3
"""How far from its ends the range of the effect is cut: not all tasks change alike."""
_STEEPEST = 200.0
_MANY = 1000
"""Number of changed tasks above which the exact test's critical value is the normal's."""
_LOOKED_UP = 12
"""How many numbers of changed tasks the critical value is worked out for."""


class TaskChanges(NamedTuple):
    """How the tasks of a pilot change: which share of them by how many runs."""

    values: IntArray
    """[kinds]: recoveries less disruptions of a task, from −seeds to seeds."""
    chances: FloatArray
    """[kinds]: share of the tasks of each kind; they sum to 1."""
    seeds: int
    """Runs of a task."""

    @property
    def effect(self) -> float:
        """ΔSuccess."""
        return float(self.values @ self.chances) / self.seeds

    def tilted(self, effect: float) -> "TaskChanges":
        """Return the nearest changes with this ΔSuccess, or as near to it as the values let it come.

        The method is exponential tilting (Efron 1981, Canadian Journal of Statistics 9:139).
        """
        lowest, highest = int(self.values.min()) / self.seeds, int(self.values.max()) / self.seeds
        if lowest == highest:
            return self
        effect = float(np.clip(effect, lowest + _SHORT, highest - _SHORT))

        def weighed(slant: float) -> FloatArray:
            logs = slant * self.values + np.log(self.chances)
            shares: FloatArray = np.exp(logs - logs.max())
            shares /= shares.sum()
            return shares

        def missing(slant: float) -> float:
            return float(weighed(slant) @ self.values) / self.seeds - effect

        return self._replace(chances=weighed(brentq(missing, -_STEEPEST, _STEEPEST)))


class DecisionSettings(NamedTuple):
    """Settings that the decision depends on."""

    error: float = PilotStatistics().error
    """Chance of a wrong decision on one side."""
    margin: float = 0.0
    n_tried: int = 1
    """Conditions that are tried, over which a gain is corrected (Bonferroni)."""
    prior_tasks: int = 1
    seed: int = 0
    """Seed of the simulation."""


PLAIN = DecisionSettings()
"""Default settings, with one condition."""


def expected_changes(p: float, r: float, d: float, seeds: int = 1, correlation: float = 1.0) -> TaskChanges:
    """Changes before any run, from the rates one expects, and how alike the changes of a task's seeds are.

    With the chance `correlation` all seeds of a task change alike, else each by itself; 1 takes further seeds
    to add nothing.
    """
    of_seed = np.array([(1 - p) * d, 1 - p * r - (1 - p) * d, p * r])
    apart = np.ones(1)
    for _ in range(seeds):
        apart = np.convolve(apart, of_seed)
    chances = (1 - correlation) * apart
    chances[[0, seeds, 2 * seeds]] += correlation * of_seed
    values = np.arange(-seeds, seeds + 1)
    return TaskChanges(values[chances > 0], chances[chances > 0], seeds)


def observed_changes(cells: IntArray) -> TaskChanges:
    """Changes as often as the tasks' cells [tasks, 4] show; a side never seen counts `_UNSEEN` tasks."""
    seeds = max(1, round(float(cells.sum(axis=1).mean())))
    change = np.clip(cells[:, 2] - cells[:, 1], -seeds, seeds)
    counts = np.bincount(change + seeds, minlength=2 * seeds + 1).astype(np.float64)
    counts[0] += 0 if counts[:seeds].any() else _UNSEEN
    counts[-1] += 0 if counts[seeds + 1 :].any() else _UNSEEN
    values = np.arange(-seeds, seeds + 1)
    return TaskChanges(values[counts > 0], counts[counts > 0] / counts.sum(), seeds)


def simulate_power(n_tasks: int, changes: TaskChanges, rule: DecisionSettings = PLAIN) -> float:
    """The chance that a pilot of so many tasks is decided on its effect's side of the margin."""
    sign = 1 if changes.effect > rule.margin else -1
    error = rule.error / (rule.n_tried if sign > 0 else 1)
    rng = np.random.default_rng([rule.seed, 2])
    counts = rng.multinomial(n_tasks, changes.chances, size=PILOTS)
    values = sign * changes.values
    is_mixed = np.abs(values) % changes.seeds != 0
    all_alike: BoolArray = counts[:, is_mixed].sum(axis=1) == 0
    decided = _drawn(counts, values, all_alike, sign * rule.margin, changes.seeds, rule.prior_tasks, error)
    if rule.margin == 0:
        decided |= all_alike
    if rule.margin == 0 or sign > 0:
        decided &= _exact(counts, values, all_alike, n_tasks, error)
    return float(decided.mean())


def _exact(counts: IntArray, values: IntArray, whole: BoolArray, n_tasks: int, error: float) -> BoolArray:
    """Whether the exact test finds a gain in each pilot [pilots, kinds]."""
    changed = counts[:, values != 0].sum(axis=1)
    least, most = max(1, int(changed.min())), max(1, int(changed.max()))
    normal = -float(ndtri(error))
    if least > _MANY or not whole.any():
        critical = np.full(len(counts), normal)
    else:
        looked_up = np.unique(np.linspace(least, most, _LOOKED_UP).astype(np.int64))
        critical = np.interp(changed, looked_up, [critical_value(n_tasks, int(k), error) for k in looked_up])
    critical = np.where(whole, critical, normal)
    total = counts @ values
    far: BoolArray = total >= critical * np.sqrt(counts @ values**2) - 1e-9
    return far & (total > 0)


def _drawn(
    counts: IntArray,
    values: IntArray,
    whole: BoolArray,
    margin: float,
    seeds: int,
    prior_tasks: int,
    error: float,
) -> BoolArray:
    """Whether the draws' interval lies above the margin in each pilot [pilots, kinds]."""
    n = float(counts[0].sum())
    drawn = n + 4 * prior_tasks
    mean = counts @ values / drawn
    square = (counts @ values**2 + 2 * prior_tasks * seeds**2) / drawn
    variance = np.maximum(square - mean**2, 1e-12)
    third = counts @ values**3 / drawn - 3 * mean * square + 2 * mean**3
    z = float(ndtri(error))
    skewness = third / (variance**1.5 * np.sqrt(drawn))
    low = drawn * mean + np.sqrt(drawn * variance) * (z + (z**2 - 1) * skewness / 6)
    step = np.where(whole, seeds, 1)  # a bound is one of the sums that can be drawn
    above: BoolArray = low >= (np.floor(margin * n * seeds / step + 1e-9) + 0.5) * step
    return above


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
    while simulate_power(most, tilted, rule) < power:
        most *= 2
        if most > 2 * MOST_TASKS:
            return None
    least = most // 2
    while most - least > max(1, _EXACT * most):
        middle = (least + most) // 2
        enough = simulate_power(middle, tilted, rule) >= power
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
    if most <= 0 or simulate_power(n_tasks, largest, rule) < power:
        return None
    for _ in range(_STEPS):
        middle = (least + most) / 2
        enough = simulate_power(n_tasks, changes.tilted(rule.margin + middle), rule) >= power
        least, most = (least, middle) if enough else (middle, most)
    return most


class Further(NamedTuple):
    """Next step of an inconclusive pilot."""

    n_tasks: int | None
    """Number of further tasks to run; None where no number can be given."""
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
