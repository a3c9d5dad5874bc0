"""Which monitor at which threshold costs least on one split, and at which stakes another one would.

Only the odds of a miss's cost against an alarm's matter, λ = π·c_m / ((1 − π)·c_a): a choice minimises
λ·MR + FAR. So one search along λ gives the base rate and the cost at which the choice changes.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from monitorbench.config.evaluation import Stakes
from monitorbench.metrics.choice.curve import RateCurves, costs_along

NOTHING, EVERYTHING = -1, -2
"""In place of a monitor: no sample is flagged, or every one."""

_FURTHEST = 8
"""Powers of ten of the odds that are searched, up and down."""
_STEPS = 40
"""Steps a power of ten."""


class CheapestThresholds(NamedTuple):
    """The thresholds that cost least, and who has them."""

    at: tuple[int | None, ...]
    """Of each monitor the index of its threshold; None where none is allowed, or nothing is known."""
    costs: tuple[float | None, ...]
    """The expected cost there."""

    @property
    def order(self) -> list[int]:
        """The monitors that have a threshold, the cheapest first; of equal ones the first given."""
        known = [i for i, cost in enumerate(self.costs) if cost is not None]
        return sorted(known, key=lambda i: (self.costs[i], i))


def cheapest(allowed: Sequence[RateCurves], stakes: Stakes) -> CheapestThresholds:
    """The choice among monitors by their rates at each allowed threshold, the highest threshold first.

    Of equal costs the highest threshold is taken, which flags least.
    """
    at: list[int | None] = []
    costs: list[float | None] = []
    for rates in allowed:
        along = costs_along(rates, stakes)
        known = len(along) > 0 and not np.isnan(along[0])
        best = int(along.argmin()) if known else None
        at.append(best)
        costs.append(None if best is None else float(along[best]))
    return CheapestThresholds(tuple(at), tuple(costs))


def winner(allowed: Sequence[RateCurves], odds: float, *, everything: bool) -> int:
    """Who has the least λ·MR + FAR: a monitor's index, `NOTHING`, or, where it is allowed, `EVERYTHING`.

    A monitor that costs as much as flagging nothing does not win: it flags nothing too.
    """
    best, least = NOTHING, odds
    if everything and least > 1:
        best, least = EVERYTHING, 1.0
    for i, rates in enumerate(allowed):
        if len(rates.missed) and not np.isnan(rates.missed[0]):
            cost = float((odds * rates.missed + rates.alarms).min())
            if cost < least:
                best, least = i, cost
    return best


class SwitchPoint(NamedTuple):
    """Where the answer changes, going one way along the odds."""

    odds: float
    instead: int
    """Who is chosen beyond: a monitor's index, `NOTHING` or `EVERYTHING`."""


class NearestSwitches(NamedTuple):
    """The nearest odds at which somebody else costs least; None where nobody does in reach."""

    below: SwitchPoint | None
    above: SwitchPoint | None


def changes(allowed: Sequence[RateCurves], stakes: Stakes, *, everything: bool) -> NearestSwitches:
    """Where the choice changes: to one part in a million between the steps of a grid of 40 a power of ten."""
    here = odds_of(stakes)
    if here is None:
        return NearestSwitches(None, None)
    now = winner(allowed, here, everything=everything)
    grid = np.logspace(0, _FURTHEST, _FURTHEST * _STEPS + 1)[1:]

    def search(way: int) -> SwitchPoint | None:
        inside = here
        for factor in grid.tolist():
            outside = here * factor**way
            if winner(allowed, outside, everything=everything) != now:
                return _narrowed(inside, outside)
            inside = outside
        return None

    def _narrowed(inside: float, outside: float) -> SwitchPoint:
        while abs(np.log(outside / inside)) > 1e-6:
            middle = float(np.sqrt(inside * outside))
            if winner(allowed, middle, everything=everything) == now:
                inside = middle
            else:
                outside = middle
        return SwitchPoint(outside, winner(allowed, outside, everything=everything))

    return NearestSwitches(search(-1), search(1))


def odds_of(stakes: Stakes) -> float | None:
    """λ; None where it is 0 or infinite, so that nothing has to be weighed."""
    miss, alarm = stakes.base_rate * stakes.cost_miss, (1 - stakes.base_rate) * stakes.cost_alarm
    return miss / alarm if miss > 0 and alarm > 0 else None


def base_rate_at(odds: float, stakes: Stakes) -> float:
    """The base rate at which these costs come to the odds."""
    return odds * stakes.cost_alarm / (stakes.cost_miss + odds * stakes.cost_alarm)


def cost_miss_at(odds: float, stakes: Stakes) -> float:
    """What a miss would have to cost for them, everything else as it is."""
    return odds * (1 - stakes.base_rate) * stakes.cost_alarm / stakes.base_rate
