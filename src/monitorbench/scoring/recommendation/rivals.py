"""What a monitor has to beat: flagging nothing, flagging everything, and each shortcut check.

A shortcut gets its threshold by the monitor's own rule. Its interval is that of the test split, both
thresholds as they are, widened to that of redraws of both splits with both thresholds found anew: whose
threshold was the luckier is no reason to prefer it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from monitorbench.metrics.bootstrap import percentiles
from monitorbench.metrics.choice.choose import cheapest
from monitorbench.metrics.choice.facts import Rival
from monitorbench.metrics.choice.regret import differences
from monitorbench.metrics.columns import Columns
from monitorbench.metrics.decision import cost_difference
from monitorbench.metrics.rates import Interval, as_list
from monitorbench.scoring.numbers import Drawn
from monitorbench.scoring.recommendation.contenders import Contender
from monitorbench.scoring.recommendation.deployment import Deployment
from monitorbench.scoring.recommendation.figures import line, rates_of

_MOST_NUMBERS = 2 * 10**8
"""Samples of all redraws together."""


class Against(NamedTuple):
    """A rival, its answers, and the interval of the test split alone, both thresholds as they are."""

    rival: Rival
    answers: Columns
    fixed: Interval | None


def paired(
    first: Columns, second: Columns, deployment: Deployment, drawn: Drawn
) -> tuple[float | None, Interval | None]:
    """The first's expected cost less the second's, same test samples, and its 95 % interval."""
    return cost_difference(first, second, deployment.of_errors, confidence=0.95, **drawn)


def rivals_of(
    monitor: Contender,
    first: Columns,
    shortcuts: Sequence[Contender],
    deployment: Deployment,
    drawn: Drawn,
    *,
    everything: bool,
) -> list[Against]:
    """What has to be beaten, with its answers; a shortcut without an allowed threshold flags nothing."""
    n = len(first)
    blank = np.full(n, np.nan)
    found = [_rival(first, "nothing", None, first.answering(np.zeros(n), blank), deployment, drawn)]
    if everything:
        answers = first.answering(np.ones(n), blank)
        found.append(_rival(first, "everything", None, answers, deployment, drawn))
    choice = cheapest([one.choosable for one in shortcuts], deployment.of_errors)
    known = [(one, at) for one, at in zip(shortcuts, choice.at, strict=True) if at is not None]
    if not known:
        return found
    apart = differences(
        monitor.entrant(),
        [one.entrant() for one, _ in known],
        deployment.of_errors,
        resamples=n_redraws(deployment, [monitor]),
        seed=drawn["seed"],
    )
    for (one, at), values in zip(known, apart, strict=True):
        limit = float(one.allowed.thresholds[at])
        against = _rival(first, one.monitor, limit, one.answers_at(at), deployment, drawn)
        around = percentiles(values)
        fixed = against.rival["difference_ci"]
        if around is not None and fixed is not None:
            against.rival["difference_ci"] = [min(around.low, fixed[0]), max(around.high, fixed[1])]
        found.append(against)
    return found


def n_redraws(deployment: Deployment, contenders: Sequence[Contender]) -> int:
    """As many as are asked for, or fewer, but 100, where the splits are very large."""
    size = max(max(len(one.calibration), len(one.test)) for one in contenders)
    return min(deployment.settings.redraws, max(100, _MOST_NUMBERS // size))


def _rival(
    first: Columns,
    name: str,
    threshold: float | None,
    answers: Columns,
    deployment: Deployment,
    drawn: Drawn,
) -> Against:
    difference, bounds = paired(first, answers, deployment, drawn)
    rates = rates_of(answers)
    curve = line(*rates, deployment) if rates else []
    here = [cost for base_rate, cost in curve if base_rate == deployment.stakes.base_rate]
    rival = Rival(
        name=name,
        is_shortcut=threshold is not None,
        threshold=threshold,
        expected_cost=here[0] if here else None,
        difference=difference,
        difference_ci=as_list(bounds),
        curve=curve,
    )
    return Against(rival, answers, bounds)
