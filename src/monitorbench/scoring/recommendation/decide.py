"""The rule: who is recommended, or what is missing, and what would change that.

1. *Allowed* are thresholds that keep the promise and the budget, by the calibration split. Where no monitor
   has one for lack of questions, the data is insufficient.
2. *Chosen* is the monitor and threshold of least expected cost on the calibration split. Where flagging
   nothing, or everything, costs no more there, none is recommended.
3. *Confirmed* it is on the test split, where it is one candidate alone: its paired difference in expected
   cost to flagging nothing, to flagging everything and to each shortcut check lies below 0 with its 95 %
   interval (`rivals`). Where the cost is lower, but an interval reaches 0, the data is insufficient; where it
   isn't lower, none is recommended.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from monitorbench.metrics.choice.choose import (
    EVERYTHING,
    NOTHING,
    CheapestThresholds,
    NearestSwitches,
    SwitchPoint,
    base_rate_at,
    changes,
    cheapest,
    cost_miss_at,
    odds_of,
    winner,
)
from monitorbench.metrics.choice.curve import costs_along
from monitorbench.metrics.choice.facts import Kind, MoreFacts, RegretFacts, Rival, SwitchFacts, Way
from monitorbench.metrics.choice.regret import redrawn
from monitorbench.metrics.columns import Columns
from monitorbench.scoring.numbers import Drawn
from monitorbench.scoring.recommendation.contenders import Contender
from monitorbench.scoring.recommendation.deployment import Deployment
from monitorbench.scoring.recommendation.more import (
    CostSeparation,
    Promise,
    cell_names,
    more_for_budget,
    more_for_difference,
    more_for_promise,
)
from monitorbench.scoring.recommendation.rivals import Against, n_redraws, rivals_of

_EITHER = {NOTHING: "nothing", EVERYTHING: "everything"}


class DeploymentDecision(NamedTuple):
    """The decision, and what it rests on."""

    kind: Kind
    best: int | None
    """The recommended monitor's index; else of the nearest to it, None without any."""
    choice: CheapestThresholds
    more: MoreFacts | None
    rivals: list[Rival]
    changes: list[SwitchFacts]
    regret: RegretFacts
    is_cheapest: bool
    """Whether on the calibration split it costs less than flagging nothing, and than flagging everything."""


def answer(
    contenders: Sequence[Contender],
    shortcuts: Sequence[Contender],
    promises: Sequence[Promise | None],
    deployment: Deployment,
    drawn: Drawn,
) -> DeploymentDecision:
    """The answer among monitors, each with its promise; `shortcuts` have to be beaten."""
    stakes = deployment.of_errors
    choosable = [one.choosable for one in contenders]
    choice = cheapest(choosable, stakes)
    odds = odds_of(stakes)
    assert odds is not None  # a base rate inside (0, 1), and costs above 0
    everything = all(one.allowed.budget is None for one in contenders)
    best = next(iter(choice.order), None)
    if best is None:
        more = _least_missing(contenders, promises, deployment)
        kind: Kind = "insufficient" if more else "none"
        return DeploymentDecision(kind, None, choice, more, [], [], _no_regret(), False)
    is_cheapest = winner(choosable, odds, everything=everything) == best
    at = choice.at[best]
    assert at is not None
    first = contenders[best].answers_at(at)
    found = rivals_of(contenders[best], first, shortcuts, deployment, drawn, everything=everything)
    kind, more = "none", None
    if is_cheapest and all(_is_below(one.rival) for one in found):
        kind = "recommend"
    elif is_cheapest and all((one.rival["difference"] or 0.0) < 0 for one in found):
        lacking = [
            _missing(contenders[best], first, one, deployment) for one in found if not _is_below(one.rival)
        ]
        if all(lacking):
            kind, more = "insufficient", max((one for one in lacking if one), key=lambda one: one["n"])
    return DeploymentDecision(
        kind=kind,
        best=best,
        choice=choice,
        more=more,
        rivals=[one.rival for one in found],
        changes=_changes(changes(choosable, stakes, everything=everything), deployment),
        regret=_regret(contenders, best, deployment, drawn["seed"]),
        is_cheapest=is_cheapest,
    )


def _is_below(rival: Rival) -> bool:
    return rival["difference_ci"] is not None and rival["difference_ci"][1] < 0


def _missing(one: Contender, first: Columns, of: Against, deployment: Deployment) -> MoreFacts | None:
    difference, bounds = of.rival["difference"], of.rival["difference_ci"]
    if difference is None or bounds is None or of.fixed is None:
        return None
    shown = CostSeparation(difference, bounds[1] - difference, of.fixed.high - difference)
    return more_for_difference(first, of.answers, one.allowed.n_benign, deployment.of_errors, shown)


def _least_missing(
    contenders: Sequence[Contender], promises: Sequence[Promise | None], deployment: Deployment
) -> MoreFacts | None:
    """What is missing for the monitor that misses least; None where it isn't questions for one of them."""
    found = []
    for one, promise in zip(contenders, promises, strict=True):
        if one.outside:
            continue
        lacking = []
        if promise is not None and not one.allowed.n_promised:
            lacking.append(more_for_promise(promise, one.allowed))
        if not one.allowed.n_in_budget:
            cells = promise.cells if promise is not None else cell_names(one.held)
            stakes = deployment.of_errors
            nothing = stakes.base_rate * stakes.cost_miss
            costs = costs_along(one.on_calibration, stakes)
            lacking.append(more_for_budget(one.allowed, cells, costs, nothing))
        if lacking and all(each is not None for each in lacking):
            found.append(max((each for each in lacking if each), key=lambda each: each["n"]))
    return min(found, key=lambda each: each["n"], default=None)


def _changes(found: NearestSwitches, deployment: Deployment) -> list[SwitchFacts]:
    """The same as base rates, and as costs of a miss, audits in them."""
    stakes, audit = deployment.of_errors, deployment.settings.cost_audit
    listed = []
    ways: tuple[tuple[Way, SwitchPoint | None], ...] = (("below", found.below), ("above", found.above))
    for way, change in ways:
        if change is not None:
            instead = _EITHER.get(change.instead, str(change.instead))
            at = {
                "base_rate": base_rate_at(change.odds, stakes),
                "cost_miss": cost_miss_at(change.odds, stakes),
            }
            at["cost_miss"] += audit
            listed += [
                SwitchFacts(what=what, way=way, at=at[what], instead=instead, prompt="")
                for what in ("base_rate", "cost_miss")
            ]
    return listed


def _regret(contenders: Sequence[Contender], best: int, deployment: Deployment, seed: int) -> RegretFacts:
    inside = [i for i, one in enumerate(contenders) if not one.outside]
    found = redrawn(
        [contenders[i].entrant() for i in inside],
        deployment.of_errors,
        resamples=n_redraws(deployment, contenders),
        seed=seed,
    )
    if not len(found.regret) or np.isnan(found.regret).any():  # the test split lacks a label
        return _no_regret()
    values = found.regret
    return RegretFacts(
        n=len(values),
        mean=float(values.mean()),
        high=float(np.quantile(values, 0.95)),
        share_same=float(np.mean(found.chosen == inside.index(best))),
    )


def _no_regret() -> RegretFacts:
    return RegretFacts(n=0, mean=None, high=None, share_same=None)
