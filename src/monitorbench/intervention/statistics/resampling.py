"""Drawing a pilot's tasks anew: the bootstrap, and the choice of the best within it.

Tasks are drawn with all their seeds, the same tasks for every condition.

Runs of one task are no independent evidence, so a draw takes or leaves a task whole; conditions ran on the
same tasks, so they are drawn together. With the tasks alone, a pilot of which no run changed would have an
interval of width 0, and one with four recoveries and no disruption an interval above 0: by what a small
sample happens not to hold. So before drawing, each cell of the 2×2 gets one further task (`prior_tasks`)
with as many runs as a task has on average. For r and d that is Laplace's rule, for ΔSuccess the bootstrap's
counterpart of Bonett & Price's interval (2012, Journal of Educational and Behavioral Statistics 37:479),
which adds a pair to B and one to C. Point estimates never have it, and ΔSuccess of a draw is taken as a
share of the pilot's own runs, so that its mean over the draws stays where it is. Promises: the same seed
gives the same draws, whatever order the runs come in.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from monitorbench.intervention.statistics.effect import PilotRates, rates
from monitorbench.intervention.statistics.matched import CELLS, TaskTable
from monitorbench.metrics import bootstrap
from monitorbench.metrics.bootstrap import FloatArray


def draw_rates(found: Sequence[TaskTable], *, draws: int, seed: int, prior_tasks: int) -> PilotRates:
    """All rates of each condition in each draw: [draws, conditions]; see `draw_cells`."""
    drawn = rates(draw_cells(found, draws=draws, seed=seed, prior_tasks=prior_tasks))
    n = np.array([max(1, len(one.tasks)) for one in found])
    # The added changes cancel out on average, but ΔSuccess would be a share of more runs.
    unshrunk = np.clip(drawn.delta_success * (n + len(CELLS) * prior_tasks) / n, -1, 1)
    return drawn._replace(delta_success=unshrunk)


def draw_cells(found: Sequence[TaskTable], *, draws: int, seed: int, prior_tasks: int) -> FloatArray:
    """Runs in each cell of each condition in each draw: [draws, conditions, 4].

    A draw has as many tasks as the conditions have between them, the added ones included. A condition
    without a pair has NaN throughout.
    """
    tasks = {name: i for i, name in enumerate(sorted({name for one in found for name in one.tasks}))}
    if not tasks:
        return np.full((draws, len(found), len(CELLS)), np.nan)
    rows = np.zeros((len(tasks), len(found), len(CELLS)))
    for i, one in enumerate(found):
        rows[[tasks[name] for name in one.tasks], i] = one.cells
    n_present = np.array([len(one.tasks) for one in found])
    runs_of_a_task = rows.sum(axis=(0, 2)) / np.where(n_present, n_present, np.nan)
    rng = np.random.default_rng([seed, 1])
    n = len(tasks) + len(CELLS) * prior_tasks
    batches = []
    for weights in bootstrap.draws(n, draws, seed, per_draw=max(n, rows[0].size)):
        drawn = weights[:, : len(tasks)].astype(np.float64) @ rows.reshape(len(tasks), -1)
        # Which cell an added task falls in is drawn for each condition by itself.
        added = weights[:, len(tasks) :].sum(axis=1, keepdims=True)
        shares = np.full(len(CELLS), 1 / len(CELLS))
        prior = rng.multinomial(added, shares, size=(len(weights), len(found)))
        batches.append(drawn.reshape(-1, *rows.shape[1:]) + prior * runs_of_a_task[:, None])
    return np.concatenate(batches)


class BestInDraws(NamedTuple):
    """What choosing the condition with the highest ΔSuccess on the same data does to its figure.

    The best of many looks better than it is. In every draw the best condition is chosen anew; by how much its
    figure there exceeds its own mean over all draws is the optimism of the choice (Efron & Tibshirani 1993,
    chapter 17). A threshold τ is chosen in the same way: one condition for each τ.
    """

    optimism: float
    """By how much the chosen condition's figure is too high on average; 0 with one condition."""
    shares: tuple[float, ...]
    """[conditions]: in which share of the draws each was chosen; ties go to the first."""


def chosen_in_draws(deltas: FloatArray) -> BestInDraws:
    """Choose in each draw of ΔSuccess [draws, conditions]; never a condition that has no run in that draw."""
    values = np.where(np.isnan(deltas), -np.inf, deltas)
    best = values.argmax(axis=1)
    means = np.nansum(deltas, axis=0) / np.maximum(1, (~np.isnan(deltas)).sum(axis=0))
    gains = values[np.arange(len(values)), best] - means[best]
    gains = gains[np.isfinite(gains)]
    shares = np.bincount(best, minlength=deltas.shape[1]) / max(1, len(best))
    return BestInDraws(float(gains.mean()) if len(gains) else 0.0, tuple(shares.tolist()))
