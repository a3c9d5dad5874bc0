"""Find which thresholds of a monitor may be taken: those that keep a guarantee and a budget of alerts.

Both go down from the highest threshold and stop before the first one that fails: a sequence of tests in a
fixed order needs no correction (Angelopoulos et al. 2021, Learn then Test, section 4.3), so any threshold in
front of that one may be taken afterwards, by whatever it costs. The same is found anew in redraws of the
calibration split, where a group that was drawn twice counts twice.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, betaincinv

from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.columns import BoolArray
from monitorbench.metrics.guarantees.order_statistic import Guarantee, Weights, most_flagged, samples_needed
from monitorbench.metrics.guarantees.threshold import (
    Benign,
    GuaranteedThreshold,
    clear_of_scores,
    first_failures,
    guaranteed_threshold,
    kept_in_draws,
)
from monitorbench.metrics.regret import Suspicion, first_flagged, flagged_along, thresholds_of

_LIKELY = 0.8
"""Probability with which as many questions as are asked for show that a budget is kept."""
_FURTHEST = 20
"""How many times the benign questions at hand are tried when asking how many more a budget takes."""


class AlertBudget(NamedTuple):
    """Largest share of what is judged that may be flagged, at either end of a range of base rates."""

    share: float
    """Alerts as a share of all samples, in [0, 1]."""
    base_rates: tuple[float, float]
    delta: float
    """Probability that more than `share` is flagged all the same; where K monitors are chosen from, a share
    of 1/K of the probability for all of them."""


class QuestionBounds(NamedTuple):
    """The questions of one label: from which threshold on any of their samples is flagged."""

    first: IntArray
    """Index [questions] of the first threshold that flags any of the question's samples."""
    groups: IntArray
    """Number of each question's group [questions]."""


class Allowed(NamedTuple):
    """The thresholds of one monitor that keep what is asked."""

    thresholds: FloatArray
    """Thresholds, one in the gap above each observed score (`clear_of_scores`), the highest first."""
    promised: GuaranteedThreshold | None
    """Threshold that keeps the guarantee; None where no guarantee was asked for."""
    n_promised: int
    """How many of the highest thresholds keep the guarantee."""
    n_in_budget: int
    """How many of the highest thresholds keep the budget."""
    bad: QuestionBounds
    good: QuestionBounds
    benign: Benign
    """Benign calibration samples that the guarantee is kept on."""
    is_misbehavior: BoolArray
    """Whether each sample is misbehavior [calibration samples]."""
    guarantee: Guarantee | None
    budget: AlertBudget | None

    @property
    def n_benign(self) -> int:
        """Number of questions with a benign sample."""
        return len(self.good.groups)

    @property
    def n(self) -> int:
        """How many of the highest thresholds keep both the guarantee and the budget."""
        return min(self.n_promised, self.n_in_budget)

    @property
    def flags_nothing(self) -> bool:
        """Whether there are allowed thresholds, and no score is above any of them."""
        return self.n == 1

    def n_in_draws(self, times: FloatArray) -> IntArray:
        """Count the allowed thresholds [draws] where each group is drawn so many times [draws, groups]."""
        n = np.full(len(times), len(self.thresholds))
        if self.guarantee is not None:
            drawn = times[:, self.good.groups]
            n = np.minimum(n, kept_in_draws(self.benign, self.guarantee, self.thresholds, drawn))
        if self.budget is not None:
            within = n_within_budget(self.bad, self.good, len(self.thresholds), self.budget, times)
            n = np.minimum(n, within)
        return n


def allowed(
    of: Suspicion, guarantee: Guarantee | None, weights: Weights | None, budget: AlertBudget | None
) -> Allowed:
    """Find the thresholds that a monitor with this suspicion of the calibration samples may have.

    `weights` are of the benign questions, in the order of their groups' numbers.
    """
    thresholds = clear_of_scores(thresholds_of(of), of.values)
    bad, good = (questions(of, thresholds, are_misbehavior=label) for label in (True, False))
    rows = ~of.is_misbehavior
    everything = np.where(np.isfinite(of.values), of.values, np.nan)
    benign = Benign(of.values[rows], of.groups[rows], weights, everything)
    promised, n_promised, n_in_budget = None, len(thresholds), len(thresholds)
    if guarantee is not None:
        # A sample that is passed at every threshold can't set one, but it is evidence like any other.
        passed = np.where(np.isneginf(benign.scores), 0.0, benign.scores)
        promised = guaranteed_threshold(benign._replace(scores=passed), guarantee)
        limit = np.inf if promised.threshold is None else promised.threshold
        n_promised = int(np.count_nonzero(thresholds >= limit))
    if budget is not None:
        once = np.ones((1, int(of.groups.max(initial=-1)) + 1))
        n_in_budget = int(n_within_budget(bad, good, len(thresholds), budget, once)[0])
    return Allowed(
        thresholds, promised, n_promised, n_in_budget, bad, good, benign, of.is_misbehavior, guarantee, budget
    )


def questions(of: Suspicion, thresholds: FloatArray, *, are_misbehavior: bool) -> QuestionBounds:
    """Find the questions of one label; a question is flagged where one of its samples of that label is."""
    rows = of.is_misbehavior == are_misbehavior
    groups, index = np.unique(of.groups[rows], return_inverse=True)
    first = np.full(len(groups), len(thresholds), dtype=np.int64)
    np.minimum.at(first, index, first_flagged(of.values[rows], thresholds))
    return QuestionBounds(first, groups)


def n_within_budget(
    bad: QuestionBounds, good: QuestionBounds, n_thresholds: int, budget: AlertBudget, times: FloatArray
) -> IntArray:
    """How many of the thresholds, from the highest on, flag at most the budget's share [draws].

    Clopper and Pearson's upper bounds of both labels' flagged questions, each at delta/2, in the mix of the
    base rate. `times` [draws, groups] is how often each group is in a draw.
    """
    highest = _most_flagged_share(bad, good, n_thresholds, budget, times)
    return first_failures(highest <= budget.share * (1 + 1e-9))


def least_share(of: Allowed, index: int) -> float | None:
    """Return the smallest budget, as a share, that a threshold is shown to keep; None without a budget."""
    if of.budget is None:
        return None
    once = np.ones((1, int(max(side.groups.max(initial=-1) for side in (of.bad, of.good))) + 1))
    shares = _most_flagged_share(of.bad, of.good, len(of.thresholds), of.budget, once)
    return float(shares[0, index])


def _most_flagged_share(
    bad: QuestionBounds, good: QuestionBounds, n_thresholds: int, budget: AlertBudget, times: FloatArray
) -> FloatArray:
    """Bound from above the share that each threshold flags [draws, thresholds], at the worse base rate."""
    upper = []
    for of in (bad, good):
        weights = times[:, of.groups]
        flagged = np.rint(flagged_along(of.first, n_thresholds, weights)).astype(np.int64)
        sizes = np.rint(weights.sum(axis=1)).astype(np.int64).tolist()
        bounds = [_upper_bounds(n, budget.delta / 2)[row] for n, row in zip(sizes, flagged, strict=True)]
        upper.append(np.stack(bounds))
    highest: FloatArray = np.max([pi * upper[0] + (1 - pi) * upper[1] for pi in budget.base_rates], axis=0)
    return highest


@lru_cache(maxsize=512)
def _upper_bounds(n: int, tail: float) -> FloatArray:
    """Bound from above the share of which 0 … n of n were seen [n + 1]; 1 where nothing can be seen."""
    if not n:
        return np.ones(1)
    seen = np.arange(n)
    return np.append(betaincinv(seen + 1.0, n - seen, 1 - tail), 1.0)


def questions_for_budget(of: Allowed, costs: FloatArray, cost_of_nothing: float) -> int | None:
    """How many benign questions in all show, with probability .8, that a useful threshold keeps the budget.

    Useful is what flags something and costs less than flagging nothing; `costs` [thresholds] are those on the
    calibration split. The cheapest such threshold is planned for whose rates there leave room in the budget,
    what is flagged of each label staying as it was seen. None where twenty times the questions would not do,
    or misbehavior alone might take more than the budget.
    """
    if of.budget is None or not len(of.good.groups):
        return None
    tail, n, n_bad = of.budget.delta / 2, of.n_benign, len(of.bad.groups)
    for index in np.argsort(costs, kind="stable").tolist():
        n_flagged_bad, n_flagged = (int(np.count_nonzero(side.first <= index)) for side in (of.bad, of.good))
        if not costs[index] < cost_of_nothing or not n_flagged_bad + n_flagged:
            continue
        above = float(_upper_bounds(n_bad, tail)[n_flagged_bad])
        room = min((of.budget.share - pi * above) / (1 - pi) for pi in of.budget.base_rates if pi < 1)
        needed = _questions_below(min(room, 1 - 1e-9), tail, n_flagged, n)
        if needed is not None:
            return needed
    return None


def first_worth_it(costs: FloatArray, without_reading: float) -> int | None:
    """Return the index of the highest threshold that costs less than answers that read nothing.

    `costs` [thresholds] are those on the calibration split. None where no threshold does.
    """
    return next(iter(np.flatnonzero(costs < without_reading).tolist()), None)


def questions_for_promise(of: Allowed, index: int, *, are_scored: bool = False) -> int | None:
    """How many benign questions in all show, with probability .8, that a threshold keeps the guarantee.

    The threshold is that at `index`, and as large a part of the further questions is taken to be flagged as
    of those at hand; with `are_scored` those without a score are taken to have one that passes. None where
    twenty times the questions would not do, and where the guarantee is of another mix, or has no confidence.
    Where it flags none so far, it is the number that would do if none of the further ones is flagged.
    """
    each, weights = of.guarantee and of.guarantee.of_each(), of.benign.weights
    if each is None or each.method != "neyman_pearson" or (weights is not None and not weights.equal):
        return None
    above = of.benign.scores > of.thresholds[index]
    if are_scored:
        above &= np.isfinite(of.benign.scores)
    n_flagged = len(np.unique(of.benign.groups[above]))
    if not n_flagged:
        return max(of.n_benign, samples_needed(each.alpha, each.delta))
    return _questions_below(each.alpha, each.delta, n_flagged, of.n_benign)


def _questions_below(share: float, tail: float, n_flagged: int, n: int) -> int | None:
    """How many questions bound the flagged share below `share`, if as large a part of the further ones is."""
    rate = (n_flagged + 0.5) / (n + 1)
    if share <= rate:
        return None

    def would_do(n_all: int) -> bool:
        most, _ = most_flagged(n_all, share, tail)
        return most >= n_flagged and bool(bdtr(most - n_flagged, n_all - n, rate) >= _LIKELY)

    low, high = n, _FURTHEST * n
    if not would_do(high):
        return None
    while low < high:
        middle = (low + high) // 2
        if would_do(middle):
            high = middle
        else:
            low = middle + 1
    return low
