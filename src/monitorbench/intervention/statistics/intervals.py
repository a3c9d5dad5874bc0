"""Intervals from the draws, for one condition or for all that were tried at once.

Promises: the intervals of ΔSuccess and of p − p* are read at the same ranks of the same draws, in each of
which the two have one sign; a draw in which a rate is undefined widens an interval and never drops out.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from monitorbench.intervention.statistics.effect import PilotRates
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.rates import Interval

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
