"""A pilot's tasks drawn anew, the choice of the best within the draws, and the intervals that they give.

Runs of one task are no independent evidence, so a draw takes or leaves a task whole, with all its seeds;
conditions ran on the same tasks, so they are drawn together. With the tasks alone, a pilot of which no run
changed would have an interval of width 0, and one with four recoveries and no disruption an interval above 0:
by what a small sample happens not to hold. So before drawing, each cell of the 2×2 gets one further task
(`prior_tasks`) with as many runs as a task has on average. For r and d that is Laplace's rule, for ΔSuccess
the bootstrap's counterpart of Bonett & Price's interval (2012, Journal of Educational and Behavioral
Statistics 37:479), which adds a pair to B and one to C. Point estimates never have it, and ΔSuccess of a draw
is taken as a share of the pilot's own runs, so that its mean over the draws stays where it is.

Promises: the same seed gives the same draws, whatever order the runs come in; the intervals of ΔSuccess and
of p − p* are read at the same ranks of the same draws, in each of which the two have one sign; a draw in
which a rate is undefined widens an interval and never drops out.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from monitorbench.intervention.statistics.effect import CELLS, PilotRates, TaskTable, rates
from monitorbench.metrics import bootstrap
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.rates import Interval


def draw_rates(found: Sequence[TaskTable], *, draws: int, seed: int, prior_tasks: int) -> PilotRates:
    """All rates of each condition in each draw: [draws, conditions]; see `draw_cells`."""
    drawn = rates(draw_cells(found, draws=draws, seed=seed, prior_tasks=prior_tasks))
    n = np.array([max(1, len(table.tasks)) for table in found])
    # The added changes cancel out on average, but ΔSuccess would be a share of more runs.
    unshrunk = np.clip(drawn.delta_success * (n + len(CELLS) * prior_tasks) / n, -1, 1)
    return drawn._replace(delta_success=unshrunk)


def draw_cells(found: Sequence[TaskTable], *, draws: int, seed: int, prior_tasks: int) -> FloatArray:
    """Runs in each cell of each condition in each draw: [draws, conditions, 4].

    A draw has as many tasks as the conditions have between them, the added ones included. A condition
    without a pair has NaN throughout.
    """
    tasks = {name: i for i, name in enumerate(sorted({name for table in found for name in table.tasks}))}
    if not tasks:
        return np.full((draws, len(found), len(CELLS)), np.nan)
    rows = np.zeros((len(tasks), len(found), len(CELLS)))
    for i, table in enumerate(found):
        rows[[tasks[name] for name in table.tasks], i] = table.cells
    n_present = np.array([len(table.tasks) for table in found])
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
    """Optimism of choosing the condition with the highest ΔSuccess by the data that its figure is from.

    The best of many looks better than it is. In every draw the best condition is chosen anew; by how much its
    figure there exceeds its own mean over all draws is the optimism of the choice (Efron & Tibshirani 1993,
    chapter 17). A threshold τ is chosen in the same way: one condition for each τ.
    """

    optimism: float
    """Average excess of the chosen condition's figure; 0 with one condition."""
    shares: tuple[float, ...]
    """[conditions]: share of the draws in which each was chosen; ties go to the first."""


def chosen_in_draws(deltas: FloatArray) -> BestInDraws:
    """Choose in each draw of ΔSuccess [draws, conditions]; never a condition that has no run in that draw."""
    values = np.where(np.isnan(deltas), -np.inf, deltas)
    best = values.argmax(axis=1)
    means = np.nansum(deltas, axis=0) / np.maximum(1, (~np.isnan(deltas)).sum(axis=0))
    gains = values[np.arange(len(values)), best] - means[best]
    gains = gains[np.isfinite(gains)]
    shares = np.bincount(best, minlength=deltas.shape[1]) / max(1, len(best))
    return BestInDraws(float(gains.mean()) if len(gains) else 0.0, tuple(shares.tolist()))


_NEAR = 0.1
"""Failure rates further apart than this are of other deployments."""
Bound = float | FloatArray
"""The value that stands for an undefined one at an end of an interval: one for all, or one for each."""


class Tails(NamedTuple):
    """The ranks of the sorted draws, counted from 1 from either end, at which bounds are read."""

    low: int
    high: int


def simultaneous_tails(values: FloatArray, confidence: float, low: Bound, high: Bound) -> Tails:
    """Find ranks at which bounds of `values` [draws, conditions] hold for all conditions at once.

    Each end by itself: in at most (1 − confidence)/2 of the draws any condition lies outside its bound. All
    conditions' bounds are read at the same rank (Mandel & Betensky 2008, Computational Statistics & Data
    Analysis 52:2158); with one condition these are the plain percentiles. An undefined value counts as
    `low` at the lower end and as `high` at the upper.
    """
    tail = int((1 - confidence) / 2 * len(values) + 1e-9)
    lower, upper = np.where(np.isnan(values), low, values), np.where(np.isnan(values), high, values)
    return Tails(_rank(lower, tail), _rank(-upper, tail))


def _rank(values: FloatArray, tail: int) -> int:
    """The largest rank below which, in any column, no more than `tail` rows lie."""
    if values.shape[1] == 1:
        return tail + 1
    ranks = [np.searchsorted(np.sort(column), column, side="right") for column in values.T]
    return int(np.sort(np.min(ranks, axis=0))[tail])


def bounds(values: FloatArray, tails: Tails, low: Bound, high: Bound) -> Interval:
    """The interval of `values` [draws] at these ranks; undefined draws are the widest, `low` and `high`."""
    lower = np.sort(np.where(np.isnan(values), low, values))[tails.low - 1]
    upper = np.sort(np.where(np.isnan(values), high, values))[len(values) - tails.high]
    return Interval(float(lower), float(upper))


class EffectIntervals(NamedTuple):
    """The two intervals of one condition that say whether an intervention gains."""

    delta_success: Interval
    p_minus_p_star: Interval


def effect_tails(drawn: PilotRates, family: Sequence[int], confidence: float) -> Tails:
    """Find ranks of ΔSuccess: lower bounds hold for all of `family` at once, upper ones by themselves."""
    return gain_tails(drawn.delta_success[:, list(family)], confidence, -1.0, 1.0)


def gain_tails(values: FloatArray, confidence: float, low: Bound, high: Bound) -> Tails:
    """The ranks of `simultaneous_tails` for the lower bounds, of a single condition for the upper ones."""
    together = simultaneous_tails(values, confidence, low, high)
    return together._replace(high=simultaneous_tails(values[:, :1], confidence, low, high).high)


def effect_intervals(drawn: PilotRates, index: int, tails: Tails) -> EffectIntervals:
    """The intervals of condition `index`, read at `effect_tails` of those it is tried with.

    `drawn` is [draws, conditions]. With few tasks these are too sure of themselves: see
    `decision_rule.borne_out`.
    """
    delta = bounds(drawn.delta_success[:, index], tails, -1.0, 1.0)
    # Where p* is undefined it may be anything from 0 to 1.
    p = drawn.p[:, index]
    lowest, highest = np.where(np.isnan(p), -1.0, p - 1), np.where(np.isnan(p), 1.0, p)
    return EffectIntervals(delta, bounds(drawn.p_minus_p_star[:, index], tails, lowest, highest))


def at_the_edge(found: EffectIntervals, p: Interval, n_disrupted: int, n_recovered: int) -> EffectIntervals:
    """The interval of p − p*, reaching as far as p does where p* may be 0 or 1.

    Without a disruption d may be 0 and with it p*, which draws with an added disruption never show; without a
    recovery p* may be 1. `p` is the interval of p at the same ranks.
    """
    low, high = found.p_minus_p_star
    if not n_disrupted:
        high = max(high, p.high)
    if not n_recovered:
        low = min(low, p.low - 1)
    return found._replace(p_minus_p_star=Interval(low, high))


def moved(
    own: Interval, drawn_here: Interval, drawn_there: Interval, widened: bool, p: float, p_target: float
) -> Interval:
    """The interval `own` of a pilot's effect at its failure rate `p`, where `p_target` fail.

    Each bound is moved by as much as the draws' bound is, from one rate to the other, so that at the pilot's
    own it says what the pilot says. What `own` is narrower than the draws' there fades within `_NEAR`. An
    interval that was `widened` to reach 0 still does: what the pilot does not show is not said elsewhere.
    """
    share = max(0.0, 1 - abs(p_target - p) / _NEAR)
    low_moves, high_moves = own.low - drawn_here.low, own.high - drawn_here.high
    low = drawn_there.low + (share * low_moves if low_moves > 0 else low_moves)
    high = drawn_there.high + (share * high_moves if high_moves < 0 else high_moves)
    if widened:
        low, high = min(low, 0.0), max(high, 0.0)
    low, high = np.clip([low, high], p_target - 1, p_target).tolist()
    return Interval(low, high)


def excludes_zero(interval: Interval) -> bool:
    """Whether an interval lies wholly on one side of 0."""
    return interval.low > 0 or interval.high < 0


def including_zero(interval: Interval) -> Interval:
    """The interval, widened to reach 0."""
    return Interval(min(interval.low, 0.0), max(interval.high, 0.0))
