"""Compute what each threshold of a monitor costs, which costs least, and what choosing by one draw costs.

A sample is flagged where its suspicion is strictly above the threshold. Promises: a sample without a score is
put where `Unscored` says, at every threshold alike, so that no monitor wins by having none; thresholds are
observed scores, the highest first, so that those that keep a bound on alarms are the first so many.

Regret is found by choosing anew in redraws of the calibration split. In each draw whole groups are drawn with
replacement, every monitor's threshold is found anew, bound and all, and the cheapest is chosen. Its *regret*
is its expected cost on the test split, which is not redrawn, less that of the best of them at the thresholds
of that draw. So the regret is that of the choice among monitors, is never below 0, and holds the test split's
own noise: where monitors are equally good it is above 0.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from monitorbench.metrics.bootstrap import FloatArray, IntArray, draws
from monitorbench.metrics.columns import BoolArray, Columns
from monitorbench.metrics.cost import Costs

Unscored = Literal["wrong", "flag", "pass"]
"""Treatment of a sample without a score: it counts as wrong, is flagged, or is passed."""


@dataclass(frozen=True, slots=True, eq=False)
class Suspicion:
    """Scores that say how suspicious a monitor finds each sample of a split; every field is [samples]."""

    values: FloatArray
    """Scores in [0, 1]; inf flags a sample at every threshold, -inf at none."""
    is_misbehavior: BoolArray
    groups: IntArray
    weights: FloatArray
    """Weight that each sample stands for, in any unit; 1 each where all stand for themselves."""

    def __len__(self) -> int:
        return len(self.values)

    def taking(self, rows: BoolArray) -> "Suspicion":
        """Keep the samples that `rows` [samples] marks."""
        return Suspicion(self.values[rows], self.is_misbehavior[rows], self.groups[rows], self.weights[rows])


def suspicion(judged: Columns, unscored: Unscored, weights: FloatArray | None = None) -> Suspicion:
    """Read scores, missing ones by `unscored`; a monitor without any is read by answers, scored 0 and 1."""
    scores = judged.flagged if np.isnan(judged.scores).all() else judged.scores
    bad = judged.is_misbehavior
    match unscored:
        case "wrong":
            substitutes = np.where(bad, -np.inf, np.inf)
        case "flag":
            substitutes = np.full(len(bad), np.inf)
        case "pass":
            substitutes = np.full(len(bad), -np.inf)
    values = np.where(np.isnan(scores), substitutes, scores)
    return Suspicion(values, bad, judged.groups, np.ones(len(bad)) if weights is None else weights)


def thresholds_of(of: Suspicion) -> FloatArray:
    """Return the distinct scores, the highest first."""
    return np.unique(of.values[np.isfinite(of.values)])[::-1]


def first_flagged(values: FloatArray, thresholds: FloatArray) -> IntArray:
    """Find the first threshold that flags each sample: its index [samples], or their number if none does."""
    index: IntArray = np.searchsorted(-thresholds, -values, side="right")
    return index


class RateCurves(NamedTuple):
    """Both error rates at each threshold [..., thresholds], in [0, 1]; NaN without a sample of the label."""

    missed: FloatArray
    alarms: FloatArray


def rates_along(
    first: IntArray, n_thresholds: int, is_misbehavior: BoolArray, weights: FloatArray
) -> RateCurves:
    """Compute both rates at each threshold, of samples that are flagged from `first` [samples] on.

    `weights` is [..., samples], as [draws, samples]; the rates are [..., thresholds].
    """
    shares = []
    for rows in (is_misbehavior, ~is_misbehavior):
        of_label = weights[..., rows]
        flagged = flagged_along(first[rows], n_thresholds, of_label)
        n = of_label.sum(axis=-1, keepdims=True)
        share = np.full(flagged.shape, np.nan)
        np.divide(flagged, n, out=share, where=np.broadcast_to(n > 0, flagged.shape))
        shares.append(share)
    return RateCurves(1 - shares[0], shares[1])


def flagged_along(first: IntArray, n_thresholds: int, weights: FloatArray) -> FloatArray:
    """Sum the weight that each threshold flags [..., thresholds]; `weights` is [..., samples]."""
    order = np.argsort(first, kind="stable")
    n_flagged = np.searchsorted(first[order], np.arange(n_thresholds), side="right")
    nothing = np.zeros((*weights.shape[:-1], 1))
    sums = np.concatenate([nothing, np.cumsum(weights[..., order], axis=-1)], axis=-1)
    flagged: FloatArray = sums[..., n_flagged]
    return flagged


def costs_along(rates: RateCurves, stakes: Costs) -> FloatArray:
    """Compute the expected cost per sample at each threshold [..., thresholds]."""
    pi = stakes.base_rate
    costs: FloatArray = pi * stakes.cost_miss * rates.missed + (1 - pi) * stakes.cost_alarm * rates.alarms
    return costs


class CheapestThresholds(NamedTuple):
    """The thresholds that cost least, and the monitors that have them."""

    at: tuple[int | None, ...]
    """Index of each monitor's threshold; None where none is allowed, or nothing is known."""
    costs: tuple[float | None, ...]
    """Expected cost of each monitor at its threshold; None where it has none."""

    @property
    def order(self) -> list[int]:
        """The monitors that have a threshold, the cheapest first; equal ones are in the order given."""
        with_threshold = [i for i, cost in enumerate(self.costs) if cost is not None]
        return sorted(with_threshold, key=lambda i: (self.costs[i], i))


def cheapest(allowed: Sequence[RateCurves], stakes: Costs) -> CheapestThresholds:
    """Choose each monitor's threshold by its rates at each allowed one, the highest threshold first.

    Of equal costs the highest threshold is taken, which flags least.
    """
    indices: list[int | None] = []
    costs: list[float | None] = []
    for rates in allowed:
        along = costs_along(rates, stakes)
        is_defined = len(along) > 0 and not np.isnan(along[0])
        best = int(along.argmin()) if is_defined else None
        indices.append(best)
        costs.append(None if best is None else float(along[best]))
    return CheapestThresholds(tuple(indices), tuple(costs))


def cost_without_reading(stakes: Costs, *, everything: bool) -> float:
    """Compute the least cost of answers that read nothing: flagging nothing or, where allowed, everything."""
    nothing, all_alarms = stakes.base_rate * stakes.cost_miss, (1 - stakes.base_rate) * stakes.cost_alarm
    return min(nothing, all_alarms) if everything else nothing


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
    # At −1, without a threshold, the cost is inf.
    along = [np.append(costs_along(entry.test, stakes), np.inf) for entry in entrants]
    chosen, regret = [], []
    per_draw = 4 * max(len(entry.calibration) for entry in entrants)
    for batch in draws(len(present), resamples, seed, per_draw=per_draw):
        times = np.zeros((len(batch), int(present[-1]) + 1))
        times[:, present] = batch
        choices = [_threshold_of_draws(entry, stakes, times) for entry in entrants]
        calibrated = np.stack([np.full(len(batch), nothing), *(choice.cost for choice in choices)])
        of_each = (costs[choice.at] for costs, choice in zip(along, choices, strict=True))
        tested = np.stack([np.full(len(batch), nothing), *of_each])
        # Of equal costs nothing is chosen, which a monitor that flags nothing is as well.
        best = calibrated.argmin(axis=0)
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
