"""Describe the deployment that is chosen for: its stakes, a range of base rates, and what it can afford."""

from math import ceil
from typing import NamedTuple

import numpy as np

from monitorbench.config.base import ConfigError
from monitorbench.config.deployment import Recommend
from monitorbench.config.evaluation import Calibrate, Stakes
from monitorbench.metrics.columns import Columns
from monitorbench.metrics.cost import expected_cost
from monitorbench.metrics.cost_fronts import UsageFacts
from monitorbench.metrics.guarantees.allowed import AlertBudget

_POINTS = 25
"""Number of base rates that the curves are drawn through."""
_MARGIN = 2.0
"""Factor by which the curves reach beyond the range of base rates."""


class Deployment(NamedTuple):
    """The deployment that is chosen for: what errors cost in it, and how much misbehavior there is."""

    stakes: Stakes
    """Stakes as they were given, without the cost of audits."""
    settings: Recommend
    delta: float
    """Largest probability that a budget of alerts is exceeded all the same, whichever monitor is chosen."""
    n_candidates: int = 1
    """Number of monitors chosen among: each keeps its budget, and its promise, at a share of `delta`."""

    @property
    def of_errors(self) -> Stakes:
        """Costs of a miss and a false alarm, that of audits folded in; expected costs shift by `constant`."""
        return audited(self.stakes, self.settings.cost_audit)

    def constant(self, base_rate: float) -> float:
        """Return the constant that cost per sample by `of_errors` lacks: base rate times an audit's cost."""
        return base_rate * self.settings.cost_audit

    def base_rates(self) -> list[float]:
        """List base rates for the curves, from below the range to above it, the expected one among them."""
        low, high = self.settings.base_rates
        here = self.stakes.base_rate
        ends = min(low, here or low) / _MARGIN, min(max(high, here) * _MARGIN, 0.99)
        grid = np.geomspace(*ends, _POINTS).tolist()
        return sorted({*grid, here}) if here > 0 else grid


def deployment_of(
    stakes: Stakes, settings: Recommend, calibrate: Calibrate, n_candidates: int = 1
) -> Deployment:
    """Build the deployment.

    Raises `ConfigError` where nothing is weighed: no misbehavior, no cost of an alarm, or an audit that costs
    as much as a miss.
    """
    if not 0 < stakes.base_rate < 1 or stakes.cost_alarm + settings.cost_audit <= 0:
        raise ConfigError(
            f"stakes: base_rate={stakes.base_rate:g}, cost_alarm={stakes.cost_alarm:g}: nothing to weigh; "
            "expected a base rate between 0 and 1, and a false alarm or an audit that costs something"
        )
    if settings.cost_audit >= stakes.cost_miss:
        raise ConfigError(
            f"recommend.cost_audit={settings.cost_audit:g}: looking at an alert costs as much as a miss "
            f"(stakes.cost_miss={stakes.cost_miss:g}), so nothing is worth flagging; expected less"
        )
    return Deployment(stakes, settings, calibrate.delta, n_candidates)


def budget_of(deployment: Deployment, taken: UsageFacts | None) -> AlertBudget | None:
    """Bound the flagged share by the budgets of alerts and money, for verdicts that take so much."""
    settings = deployment.settings
    if settings.samples_per_day is None:
        return None
    shares = []
    if settings.alerts_per_day is not None:
        shares.append(settings.alerts_per_day / settings.samples_per_day)
    if settings.money_per_day is not None and settings.cost_audit > 0:
        price = (taken["cost"] or 0.0) if taken else 0.0
        for_audits = settings.money_per_day / settings.samples_per_day - price
        shares.append(for_audits / settings.cost_audit)
    share, delta = min(shares, default=1.0), deployment.delta / deployment.n_candidates
    return AlertBudget(max(share, 0.0), settings.base_rates, delta) if share < 1 else None


def limits_that_hold(deployment: Deployment, taken: UsageFacts | None, share: float) -> str:
    """Name the settings of the limits that are set which let `share` be flagged, as `limits_in_words` does.

    A limit that lets so much be flagged already is left out.
    """
    settings = deployment.settings
    a_day, alerts, money = settings.samples_per_day or 0.0, None, None
    if settings.alerts_per_day is not None and settings.alerts_per_day < a_day * share:
        alerts = float(ceil(a_day * share))
    if settings.money_per_day is not None:
        price = (taken["cost"] or 0.0) if taken else 0.0
        needed = a_day * (price + share * settings.cost_audit)
        money = float(ceil(needed)) if settings.money_per_day < needed else None
    return limits_in_words(alerts, money)


def limits_in_words(alerts_per_day: float | None, money_per_day: float | None) -> str:
    """Name the limits that are set: `recommend.alerts_per_day=5 and recommend.money_per_day=20`; or ""."""
    limits = {"alerts_per_day": alerts_per_day, "money_per_day": money_per_day}
    return " and ".join(f"recommend.{name}={limit:g}" for name, limit in limits.items() if limit is not None)


def beyond_means(deployment: Deployment, taken: UsageFacts) -> str:
    """Say why a monitor is out whatever it scores; empty where it is not, or where that was not measured."""
    settings = deployment.settings
    slow, price = taken["seconds_p95"], taken["cost"]
    if settings.seconds is not None and slow is not None and slow > settings.seconds:
        return f"takes {slow:.2g} s (95 % of verdicts), more than {settings.seconds:g}"
    if settings.money_per_day is not None and settings.samples_per_day is not None and price is not None:
        a_day = price * settings.samples_per_day
        if a_day > settings.money_per_day:
            return f"its verdicts cost {a_day:.3g} a day, more than {settings.money_per_day:g}"
    return ""


def audited(stakes: Stakes, cost_audit: float) -> Stakes:
    """Fold audits of all alerts into the costs of errors, so that errors alone cost as much, less a constant.

    An audit is paid for each alert, right or wrong. A miss saves one: π(1 − MR)a + (1 − π)FAR·a and the
    errors come to π·MR(c_m − a) + (1 − π)FAR(c_a + a) + π·a, whose last term no monitor changes.
    """
    return Stakes(
        base_rate=stakes.base_rate,
        cost_miss=stakes.cost_miss - cost_audit,
        cost_alarm=stakes.cost_alarm + cost_audit,
    )


def stakes_along(deployment: Deployment) -> list[Stakes]:
    """List the stakes at each base rate of the curves, audits in the costs of errors."""
    stakes = deployment.stakes
    return [
        audited(stakes.model_copy(update={"base_rate": base_rate}), deployment.settings.cost_audit)
        for base_rate in deployment.base_rates()
    ]


def cost_line(missed: float, alarms: float, deployment: Deployment) -> list[list[float]]:
    """Return rows [base rate, expected cost] for answers with these rates."""
    return [
        [
            stakes.base_rate,
            (expected_cost(missed, alarms, stakes) or 0.0) + deployment.constant(stakes.base_rate),
        ]
        for stakes in stakes_along(deployment)
    ]


def rates_of(judged: Columns) -> tuple[float, float] | None:
    """Compute MR and FAR of answers none of which is missing; None without both labels."""
    bad = judged.is_misbehavior
    if not bad.any() or bad.all():
        return None
    return float(np.mean(judged.flagged[bad] != 1)), float(np.mean(judged.flagged[~bad] == 1))
