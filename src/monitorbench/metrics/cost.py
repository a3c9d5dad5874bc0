"""Costs of a monitor's errors where it is deployed.

MR and FAR are of a benchmark that is half misbehavior; what they cost depends on the deployment's own
share of misbehavior and on what a miss and an alarm cost there.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Protocol

import numpy as np
from scipy.special import betaincinv

from monitorbench.metrics.auroc import Flags
from monitorbench.metrics.bootstrap import IntArray, group_index
from monitorbench.metrics.clustered import AnswerChanges, change_interval, share_interval
from monitorbench.metrics.columns import Answers, Columns, aligned
from monitorbench.metrics.rates import Interval


class Costs(Protocol):
    """Facts about a deployment from which expected costs are computed; the settings `stakes` are such."""

    @property
    def base_rate(self) -> float:
        """Share of misbehavior in what is judged."""

    @property
    def cost_miss(self) -> float:
        """Cost of a miss, in any unit."""

    @property
    def cost_alarm(self) -> float:
        """Cost of a false alarm, in the same unit."""


_PRIOR = 2.0
"""Erring groups' worth of weight for no correlation of both rates, against what the groups say of it."""


def expected_cost(miss_rate: float | None, false_alarm_rate: float | None, stakes: Costs) -> float | None:
    """Cost per judged sample: base_rate·MR·cost_miss + (1 − base_rate)·FAR·cost_alarm.

    Over scored verdicts, as the rates are: what an unscored one costs is not in it. None where a rate
    is. Raises ValueError for a rate outside [0, 1].
    """
    if miss_rate is None or false_alarm_rate is None:
        return None
    missed, alarmed = _rate("miss_rate", miss_rate), _rate("false_alarm_rate", false_alarm_rate)
    pi = stakes.base_rate
    return pi * missed * stakes.cost_miss + (1 - pi) * alarmed * stakes.cost_alarm


def expected_cost_interval(
    flagged: Answers,
    is_misbehavior: Flags,
    groups: IntArray,
    stakes: Costs,
    *,
    confidence: float = 0.95,
) -> Interval | None:
    """Interval of the expected cost with whole groups as the evidence, the stakes as given; all [samples].

    MOVER (Donner & Zou 2012): from the intervals of both rates (`share_interval`) and the correlation of the
    rates over groups, drawn towards 0 where few samples err. None with fewer than two groups, or where a
    class has no scored verdict.
    """
    return expected_cost_intervals(flagged, is_misbehavior, groups, [stakes], confidence=confidence)[0]


def expected_cost_intervals(
    flagged: Answers,
    is_misbehavior: Flags,
    groups: IntArray,
    stakes: Sequence[Costs],
    *,
    confidence: float = 0.95,
) -> list[Interval | None]:
    """Intervals of the expected cost at several stakes, each as `expected_cost_interval` gives it."""
    flags, answers = aligned(is_misbehavior, flagged)
    answered = ~np.isnan(answers)
    flags, wrong = flags[answered], answers[answered] != flags[answered]
    if not flags.any() or flags.all():
        return [None] * len(stakes)
    index = group_index(groups[answered])
    n_groups = int(index.max()) + 1
    shares, bounds, influences, n_erring = [], [], [], []
    for rows in (flags, ~flags):
        sizes = np.bincount(index[rows], minlength=n_groups)
        share = float(wrong[rows].mean())
        influences.append(np.bincount(index[rows], weights=wrong[rows], minlength=n_groups) - sizes * share)
        shares.append(share)
        bounds.append(share_interval(wrong[rows], index[rows], confidence))
        n_erring.append(int(sizes.sum()) ** 2 / int(sizes @ sizes) * min(share, 1 - share))
    if n_groups < 2:
        return [None] * len(stakes)
    scale = sqrt(float(influences[0] @ influences[0]) * float(influences[1] @ influences[1]))
    least = min(n_erring)
    together = least / (least + _PRIOR) * float(influences[0] @ influences[1]) / scale if scale > 0 else 0.0
    intervals: list[Interval | None] = []
    for costs in stakes:
        weights = costs.base_rate * costs.cost_miss, (1 - costs.base_rate) * costs.cost_alarm
        below, above = (
            [
                weight * abs(share - of[end])
                for weight, share, of in zip(weights, shares, bounds, strict=True)
                if of
            ]
            for end in (0, 1)
        )
        point = weights[0] * shares[0] + weights[1] * shares[1]
        low, high = (sqrt(a * a + b * b + 2 * together * a * b) for a, b in (below, above))
        intervals.append(Interval(max(0.0, point - low), min(sum(weights), point + high)))
    return intervals


def cost_difference(
    first: Columns, second: Columns, stakes: Costs, *, confidence: float
) -> tuple[float | None, Interval | None]:
    """The expected cost of the first minus the second's, same samples in the same order, and its interval.

    `paired.change_interval` over both labels. Where the second gives one answer to everything, the interval
    is widened to that of MOVER (Donner & Zou 2012) over exact intervals of both rates. None without both
    classes, or with fewer than two groups.
    """
    bad = first.is_misbehavior
    if not bad.any() or bad.all():
        return None, None
    wrong, second_wrong = (
        np.where(bad, judged.flagged != 1, judged.flagged != 0) for judged in (first, second)
    )  # NaN too
    change = wrong.astype(np.int64) - second_wrong
    weights = stakes.base_rate * stakes.cost_miss, (1 - stakes.base_rate) * stakes.cost_alarm
    parts = [
        AnswerChanges(change[rows], first.groups[rows], weight)
        for rows, weight in zip((bad, ~bad), weights, strict=True)
    ]
    point = sum(answers.weight * float(answers.changes.mean()) for answers in parts)
    interval = change_interval(parts, confidence=confidence)
    if interval is None or len(np.unique(second.flagged)) > 1:
        return point, interval
    below = above = 0.0
    for weight, rows in zip(weights, (bad, ~bad), strict=True):
        share, bounds = (
            float(wrong[rows].mean()),
            _exact_interval(int(wrong[rows].sum()), int(rows.sum()), confidence),
        )
        below += (weight * (share - bounds.low)) ** 2
        above += (weight * (bounds.high - share)) ** 2
    return point, Interval(min(interval.low, point - sqrt(below)), max(interval.high, point + sqrt(above)))


def _exact_interval(wrongs: int, n: int, confidence: float) -> Interval:
    """Clopper and Pearson's (1934) interval of a proportion: never too narrow, however few samples."""
    tail = (1 - confidence) / 2
    low = float(betaincinv(wrongs, n - wrongs + 1, tail)) if wrongs else 0.0
    return Interval(low, float(betaincinv(wrongs + 1, n - wrongs, 1 - tail)) if wrongs < n else 1.0)


def _rate(name: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"{name}: got {value}, expected a number in [0, 1]")
    return value
