"""Compute what choosing by one draw of questions costs, by choosing anew in redraws of the calibration split.

In each draw whole groups are drawn with replacement, every monitor's threshold is found anew, bound and all,
and the cheapest is chosen. Its *regret* is its expected cost on the test split, which is not redrawn, less
that of the best of them at the thresholds of that draw. So the regret is that of the choice among monitors,
is never below 0, and holds the test split's own noise: where monitors are equally good it is above 0.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from monitorbench.metrics.bootstrap import FloatArray, IntArray, draws
from monitorbench.metrics.choice.curve import RateCurves, Suspicion, costs_along, first_flagged, rates_along
from monitorbench.metrics.cost import Costs

NOTHING = -1
"""Index that stands for no monitor: no sample is flagged."""
_NUMBERS = 2**20
"""Largest number of samples in all draws of a batch."""


class Entrant(NamedTuple):
    """A monitor that may be chosen."""

    calibration: Suspicion
    thresholds: FloatArray
    """Thresholds of the monitor, the highest first."""
    n_allowed: Callable[[FloatArray], IntArray]
    """Function that counts the thresholds that keep what is promised [draws], from how often each group is
    drawn [draws, groups]."""
    tested: Suspicion
    """Suspicion of the samples of the test split."""
    test: RateCurves
    """Rates on the test split at each threshold."""


class RedrawnChoice(NamedTuple):
    """The choice made in each draw; every field is [draws]."""

    chosen: IntArray
    """Index of the chosen monitor, or `NOTHING`."""
    regret: FloatArray


def redrawn(entrants: Sequence[Entrant], stakes: Costs, *, resamples: int, seed: int) -> RedrawnChoice:
    """Choose `resamples` times among the entrants and flagging nothing; empty with fewer than two groups."""
    present = np.unique(np.concatenate([entry.calibration.groups for entry in entrants]))
    if len(present) < 2:
        return RedrawnChoice(np.empty(0, dtype=np.int64), np.empty(0))
    nothing = stakes.base_rate * stakes.cost_miss
    chosen, regret = [], []
    per_draw = 4 * max(len(entry.calibration) for entry in entrants)
    for batch in draws(len(present), resamples, seed, per_draw=per_draw):
        times = np.zeros((len(batch), int(present[-1]) + 1))
        times[:, present] = batch
        choices = [_cheapest(entry, stakes, times) for entry in entrants]
        calibrated = np.stack([np.full(len(batch), nothing), *(entry.held for entry in choices)])
        tested = np.stack([np.full(len(batch), nothing), *(entry.tested for entry in choices)])
        best = calibrated.argmin(
            axis=0
        )  # of equal costs nothing, which a monitor that flags nothing is as well
        chosen.append(np.where(best == 0, NOTHING, best - 1))
        regret.append(tested[best, np.arange(len(batch))] - tested.min(axis=0))
    return RedrawnChoice(np.concatenate(chosen), np.concatenate(regret))


def differences(
    first: Entrant, others: Sequence[Entrant], stakes: Costs, *, resamples: int, seed: int
) -> FloatArray:
    """Compute the first's expected cost less each other's [others, draws], thresholds found anew per draw.

    Both splits are redrawn, so the spread holds a threshold's own luck, which the spread of two fixed
    thresholds on one test split lacks. A monitor that may have no threshold in a draw flags nothing there;
    the difference is NaN in draws of the test split without a label.
    """
    batches = []
    batch = max(1, _NUMBERS // max(len(first.calibration), len(first.tested)))
    everyone = (first, *others)
    calibration_draws = _all_draws([entrant.calibration for entrant in everyone], batch, resamples, [seed, 1])
    tested = _all_draws([entrant.tested for entrant in everyone], batch, resamples, [seed, 2])
    for calibration_times, test_times in zip(calibration_draws, tested, strict=True):
        costs = np.stack(
            [_tested_anew(entrant, stakes, calibration_times, test_times) for entrant in everyone]
        )
        batches.append(costs[0] - costs[1:])
    return np.concatenate(batches, axis=1)


def _all_draws(
    splits: Sequence[Suspicion], batch: int, resamples: int, seed: Sequence[int]
) -> Iterator[FloatArray]:
    """Yield batches [draws, groups] of how often each group is in a draw of the groups that are there."""
    present = np.unique(np.concatenate([split.groups for split in splits]))
    rng = np.random.default_rng(seed)
    for start in range(0, resamples, batch):
        size = min(batch, resamples - start)
        times = np.zeros((size, int(present[-1]) + 1))
        times[:, present] = rng.multinomial(len(present), np.full(len(present), 1 / len(present)), size)
        yield times


def _tested_anew(one: Entrant, stakes: Costs, held: FloatArray, tested: FloatArray) -> FloatArray:
    """Compute what the threshold found in each calibration draw costs in the test draw [draws]."""
    nothing = stakes.base_rate * stakes.cost_miss
    index = _threshold_of_draws(one, stakes, held).at
    if not len(one.thresholds):
        return np.full(len(held), nothing)
    of = one.tested
    flagged = first_flagged(of.values, one.thresholds) <= np.where(index < 0, -1, index)[:, None]
    weights = of.weights * tested[:, of.groups]
    bad = of.is_misbehavior
    with np.errstate(invalid="ignore"):
        missed = (weights * ~flagged)[:, bad].sum(axis=1) / weights[:, bad].sum(axis=1)
        alarms = (weights * flagged)[:, ~bad].sum(axis=1) / weights[:, ~bad].sum(axis=1)
    return costs_along(RateCurves(missed, alarms), stakes)


class _Cheapest(NamedTuple):
    """A monitor at its threshold of least cost in each draw; [draws] each, inf where it may have none."""

    held: FloatArray
    """Cost in the draw of the calibration split."""
    tested: FloatArray
    """Cost of the same threshold on the test split."""


class _AtLeast(NamedTuple):
    """The threshold of least cost in each draw; both fields are [draws]."""

    at: IntArray
    """Index of the threshold; -1 where there is none to take."""
    cost: FloatArray
    """Cost in the draw of the calibration split; inf where there is no threshold."""


def _threshold_of_draws(one: Entrant, stakes: Costs, times: FloatArray) -> _AtLeast:
    of, n = one.calibration, len(one.thresholds)
    if not n:
        return _AtLeast(np.full(len(times), -1), np.full(len(times), np.inf))
    first = first_flagged(of.values, one.thresholds)
    rates = rates_along(first, n, of.is_misbehavior, of.weights * times[:, of.groups])
    costs = costs_along(rates, stakes)
    is_out = np.isnan(costs) | (np.arange(n) >= one.n_allowed(times)[:, None])
    costs = np.where(is_out, np.inf, costs)
    best = costs.argmin(axis=1)
    least = costs[np.arange(len(times)), best]
    return _AtLeast(np.where(np.isinf(least), -1, best), least)


def _cheapest(one: Entrant, stakes: Costs, times: FloatArray) -> _Cheapest:
    index, least = _threshold_of_draws(one, stakes, times)
    along = np.append(costs_along(one.test, stakes), np.inf)  # at −1: no threshold
    return _Cheapest(least, along[index])
