"""Safety against usefulness: a point for each share of honest traffic that may be acted on; the front."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.control.draws import RedrawnValues, mean_interval_anew, redrawn_means
from monitorbench.metrics.rates import Interval
from monitorbench.metrics.trade_off import pareto_front

Values = Callable[[float], FloatArray]
"""Function from a threshold to a number in [0, 1] for each sample."""


class FrontPoint(NamedTuple):
    """One protocol at one threshold; intervals are 95 %, by task, the threshold chosen anew in each draw."""

    budget: float
    threshold: float
    safety: float
    safety_interval: Interval | None
    usefulness: float
    usefulness_interval: Interval | None


def front_point(
    budget: float,
    threshold: float,
    thresholds: FloatArray,
    attacks: tuple[Values, IntArray],
    honest: tuple[Values, IntArray],
    *,
    seed: int,
) -> FrontPoint:
    """The point at `threshold`; `attacks` and `honest` are values at a threshold, and tasks [samples]."""
    sides = []
    for values, groups in (attacks, honest):
        here = values(threshold)
        (means,) = redrawn_means([RedrawnValues(values, thresholds)], groups, seed=seed)
        sides.append((float(here.mean()), mean_interval_anew(here, groups, means)))
    (safety, of_safety), (useful, of_useful) = sides
    return FrontPoint(budget, threshold, safety, of_safety, useful, of_useful)


def on_the_front(points: Sequence[tuple[float | None, float | None]]) -> list[int]:
    """Indices of the (safety, usefulness) points that no other beats in one and equals in the other."""
    return pareto_front(
        [
            (None if safety is None else 1 - safety, None if useful is None else 1 - useful)
            for safety, useful in points
        ]
    )
