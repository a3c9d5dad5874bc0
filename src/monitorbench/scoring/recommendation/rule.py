"""Decide by one rule, for every page and command, which monitor is deployed or what is missing.

1. *Allowed* are the thresholds that keep the promise and the budget, by the calibration split; an operating
   point has its own alone. With K monitors each keeps its promise at δ/K, so that the promise holds for the
   one that is chosen. Where no monitor has a threshold, the data is insufficient, as where none of those
   that have one is deployed and another lacks questions, or scores for them.
2. *Chosen* is the monitor and threshold of least expected cost on the calibration split. Where flagging
   nothing, or everything, costs no more there, none is deployed.
3. The choice is *confirmed* on the test split, where it is one candidate alone: its paired difference in
   expected cost to flagging nothing, to flagging everything and to each shortcut check lies below 0 with its
   95 % interval. Where the cost is lower, but an interval reaches 0, or where the test split lacks a label,
   the data is insufficient; where it isn't lower, none is deployed.

Without runs over the calibration split steps 2 and 3 are both done on the test split, and nothing is
promised. Then the intervals have a confidence of 1 − .05/K, and a shortcut check has the threshold that is
best there.

A shortcut check gets its threshold by the monitors' own rule. Its interval is that of the test split, both
thresholds as they are, widened to that of redraws of both splits with both thresholds found anew: whose
threshold was the luckier is no reason to prefer it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from monitorbench.metrics.bootstrap import percentiles
from monitorbench.metrics.choice import Kind, MoreFacts, RegretFacts, Rival
from monitorbench.metrics.columns import Columns
from monitorbench.metrics.cost import cost_difference
from monitorbench.metrics.guarantees.allowed import first_worth_it
from monitorbench.metrics.rates import Interval, as_list
from monitorbench.metrics.regret import (
    CheapestThresholds,
    cheapest,
    cost_without_reading,
    costs_along,
    differences,
    redrawn,
)
from monitorbench.scoring.recommendation.candidates import Contender
from monitorbench.scoring.recommendation.deployment import Deployment, cost_line, rates_of
from monitorbench.scoring.recommendation.more import (
    CostSeparation,
    Promise,
    alpha_at_hand,
    cell_names,
    more_for_budget,
    more_for_difference,
    more_for_promise,
    n_to_collect,
)

_MOST_NUMBERS = 2 * 10**8
"""Largest number of samples in all redraws together."""


class DeploymentDecision(NamedTuple):
    """Decision of the rule, and the evidence that it rests on."""

    kind: Kind
    best: int | None
    """Index of the deployed monitor, else of the one nearest to it; None without any."""
    choice: CheapestThresholds
    more: MoreFacts | None
    rivals: list[Rival]
    regret: RegretFacts
    confidence: float
    """Confidence of the intervals on the test split."""


class Against(NamedTuple):
    """A rival with its answers, and the interval of the test split alone, both thresholds as they are."""

    rival: Rival
    answers: Columns
    monitors: Columns
    """The monitor's answers on the same samples: of a very large split a shortcut check judges a part."""
    fixed: Interval | None


def answer(
    contenders: Sequence[Contender],
    shortcuts: Sequence[Contender],
    promises: Sequence[Promise | None],
    deployment: Deployment,
    seed: int,
    *,
    is_calibrated: bool = True,
) -> DeploymentDecision:
    """Decide among monitors, each with its promise; `shortcuts` have to be beaten.

    Unless thresholds are calibrated, the calibration samples of all of them are those of the test split.
    """
    stakes = deployment.of_errors
    choice = _cheapest_of(contenders, deployment)
    confidence = 0.95 if is_calibrated else 1 - 0.05 / max(1, len(contenders))
    everything = all(monitor.allowed.budget is None for monitor in contenders)
    best = next(iter(choice.order), None)
    if best is None:
        more = _least_missing(contenders, promises, deployment)
        lacks = any(
            not (monitor.outside or monitor.is_unpromised)
            and (not monitor.flags_nothing or monitor.n_in_the_way)
            for monitor in contenders
        )
        kind: Kind = "insufficient" if lacks or more is not None else "none"
        return DeploymentDecision(kind, None, choice, more, [], _no_regret(), confidence)
    index, cost = choice.at[best], choice.costs[best]
    assert index is not None
    assert cost is not None
    is_cheapest = cost < cost_without_reading(stakes, everything=everything)
    first = contenders[best].answers_at(index)
    rivals = _rivals(
        contenders[best],
        first,
        shortcuts,
        deployment,
        seed,
        everything=everything,
        confidence=confidence,
        redraws=is_calibrated,
    )
    kind, more = "none", None
    if is_cheapest and all(_is_below(against.rival) for against in rivals):
        kind = "recommend"
    elif is_cheapest and any(against.rival["difference"] is None for against in rivals):
        kind = "insufficient"  # the test split lacks a label
    elif is_cheapest and all((against.rival["difference"] or 0.0) < 0 for against in rivals):
        n_held = contenders[best].allowed.n_benign if is_calibrated else 0
        lacking = [
            _missing(n_held, against, deployment) for against in rivals if not _is_below(against.rival)
        ]
        if all(lacking):
            kind, more = "insufficient", max((each for each in lacking if each), key=lambda each: each["n"])
    if kind == "none" and (more := _least_missing(contenders, promises, deployment)) is not None:
        kind = "insufficient"  # a monitor without a threshold is not shown to be worth none
    return DeploymentDecision(
        kind=kind,
        best=best,
        choice=choice,
        more=more,
        rivals=[against.rival for against in rivals],
        regret=_regret(contenders, best, deployment, seed)
        if is_calibrated and all(monitor.only is None and monitor.limits is None for monitor in contenders)
        else _no_regret(),
        confidence=confidence,
    )


def _cheapest_of(contenders: Sequence[Contender], deployment: Deployment) -> CheapestThresholds:
    """Find each contender's threshold of least cost; those that flag nothing at any threshold get none."""
    choice = cheapest([monitor.choosable for monitor in contenders], deployment.of_errors)
    indices: list[int | None] = []
    costs: list[float | None] = []
    for monitor, index, cost in zip(contenders, choice.at, choice.costs, strict=True):
        is_idle = index is None or monitor.flags_nothing
        indices.append(None if index is None or is_idle else index + (monitor.only or 0))
        costs.append(None if is_idle else cost)
    return CheapestThresholds(tuple(indices), tuple(costs))


def _rivals(
    monitor: Contender,
    first: Columns,
    shortcuts: Sequence[Contender],
    deployment: Deployment,
    seed: int,
    *,
    everything: bool,
    confidence: float,
    redraws: bool,
) -> list[Against]:
    """List the rivals to beat, with their answers; a shortcut without an allowed threshold flags nothing."""
    n = len(first)
    blank = np.full(n, np.nan)

    def against(name: str, threshold: float | None, answers: Columns) -> Against:
        monitors = first
        if len(answers) < n:
            on_both = pc.is_in(first.sample_ids, value_set=answers.sample_ids)
            monitors = first.taking(on_both.to_numpy(zero_copy_only=False))
        difference, bounds = cost_difference(monitors, answers, deployment.of_errors, confidence=confidence)
        rates = rates_of(answers)
        missed, alarms = rates or (None, None)
        curve = cost_line(*rates, deployment) if rates else []
        here = [cost for base_rate, cost in curve if base_rate == deployment.stakes.base_rate]
        rival = Rival(
            name=name,
            is_shortcut=threshold is not None,
            threshold=threshold,
            miss_rate=missed,
            false_alarm_rate=alarms,
            expected_cost=here[0] if here else None,
            difference=difference,
            difference_ci=as_list(bounds),
            curve=curve,
        )
        return Against(rival, answers, monitors, bounds)

    constants = [against("nothing", None, first.answering(np.zeros(n), blank))]
    if everything:
        constants.append(against("everything", None, first.answering(np.ones(n), blank)))
    choice = cheapest([check.choosable for check in shortcuts], deployment.of_errors)
    checks = [(check, index) for check, index in zip(shortcuts, choice.at, strict=True) if index is not None]
    listed = [
        against(check.monitor, float(check.allowed.thresholds[index]), check.answers_at(index))
        for check, index in checks
    ]
    if not redraws or not checks:
        return [*constants, *listed]
    apart = differences(
        monitor.entrant(),
        [check.entrant() for check, _ in checks],
        deployment.of_errors,
        resamples=_n_redraws(deployment, [monitor]),
        seed=seed,
    )
    for check_rival, values in zip(listed, apart, strict=True):
        around, fixed = percentiles(values, confidence), check_rival.fixed
        if around is not None and fixed is not None:
            check_rival.rival["difference_ci"] = [min(around.low, fixed.low), max(around.high, fixed.high)]
    return [*constants, *listed]


def _n_redraws(deployment: Deployment, contenders: Sequence[Contender]) -> int:
    """Return the number of redraws asked for, or fewer, but at least 100, where the splits are very large."""
    size = max(max(len(monitor.calibration), len(monitor.test)) for monitor in contenders)
    return min(deployment.settings.redraws, max(100, _MOST_NUMBERS // size))


def _is_below(rival: Rival) -> bool:
    return rival["difference_ci"] is not None and rival["difference_ci"][1] < 0


def _missing(n_held: int, of: Against, deployment: Deployment) -> MoreFacts | None:
    difference, bounds = of.rival["difference"], of.rival["difference_ci"]
    if difference is None or bounds is None or of.fixed is None:
        return None
    separation = CostSeparation(difference, bounds[1] - difference, of.fixed.high - difference)
    return more_for_difference(of.monitors, of.answers, n_held, deployment.of_errors, separation)


def _least_missing(
    contenders: Sequence[Contender], promises: Sequence[Promise | None], deployment: Deployment
) -> MoreFacts | None:
    """Say what is missing for the monitor that lacks least; None where it isn't questions for one of them."""
    needed: list[tuple[MoreFacts, Contender, Promise | None, bool]] = []
    stakes = deployment.of_errors
    everything = all(monitor.allowed.budget is None for monitor in contenders)
    without_reading = cost_without_reading(stakes, everything=everything)
    for monitor, promise in zip(contenders, promises, strict=True):
        if monitor.outside:
            continue
        lacking = []
        costs = costs_along(monitor.on_calibration, stakes)
        worth_it = first_worth_it(costs, without_reading)
        if promise is not None and (monitor.n_in_the_way or not monitor.allowed.n_promised):
            index = 0 if monitor.reads_answers else worth_it
            lacking.append(more_for_promise(promise, monitor.allowed, index))
        if not monitor.allowed.n_in_budget:
            cells = promise.cells if promise is not None else cell_names(monitor.held)
            lacking.append(more_for_budget(monitor.allowed, cells, costs, without_reading))
        if lacking and all(each is not None for each in lacking):
            most = max((each for each in lacking if each), key=n_to_collect)
            needed.append((most, monitor, promise, worth_it is not None))
    if not needed:
        return None
    # What leads to a threshold that is worth it comes before any other, and scores for questions that are
    # there before any question that is not.
    more, monitor, promise, _ = min(
        needed, key=lambda each: (not each[3], n_to_collect(each[0]), each[0]["n_unscored"])
    )
    more["monitor"] = monitor.monitor
    if more["why"] == "promise" and promise is not None:
        more["alpha_at_hand"] = alpha_at_hand(promise, monitor.calibration, monitor.allowed.budget, stakes)
    return more


def _regret(contenders: Sequence[Contender], best: int, deployment: Deployment, seed: int) -> RegretFacts:
    inside = [i for i, contender in enumerate(contenders) if not contender.outside]
    regrets = redrawn(
        [contenders[i].entrant() for i in inside],
        deployment.of_errors,
        resamples=_n_redraws(deployment, contenders),
        seed=seed,
    )
    if not len(regrets.regret) or np.isnan(regrets.regret).any():  # the test split lacks a label
        return _no_regret()
    values = regrets.regret
    return RegretFacts(
        n=len(values),
        mean=float(values.mean()),
        high=float(np.quantile(values, 0.95)),
        share_same=float(np.mean(regrets.chosen == inside.index(best))),
    )


def _no_regret() -> RegretFacts:
    return RegretFacts(n=0, mean=None, high=None, share_same=None)
