"""The deployment that is chosen for: its stakes, a range of base rates, and what it can afford."""

from typing import NamedTuple

import numpy as np

from monitorbench.config.base import ConfigError
from monitorbench.config.deployment import Recommend
from monitorbench.config.evaluation import Calibrate, Stakes
from monitorbench.metrics.choice.curve import audited
from monitorbench.metrics.guarantees.allowed import AlertBudget
from monitorbench.metrics.usage import UsageFacts

_POINTS = 25
"""Base rates that the curves are drawn through."""
_MARGIN = 2.0
"""So far the curves reach beyond the range of base rates, as a factor."""


class Deployment(NamedTuple):
    """What errors cost there, and how much misbehavior there is."""

    stakes: Stakes
    """As given: without audits."""
    settings: Recommend
    delta: float
    """The chance at which a budget of alerts may be exceeded all the same."""

    @property
    def of_errors(self) -> Stakes:
        """With which errors alone cost what they and audits do, but for a constant."""
        return audited(self.stakes, self.settings.cost_audit)

    def constant(self, base_rate: float) -> float:
        """That constant, of a sample."""
        return base_rate * self.settings.cost_audit

    def base_rates(self) -> list[float]:
        """For the curves: from below the range to above it, the expected one among them."""
        low, high = self.settings.base_rates
        here = self.stakes.base_rate
        ends = min(low, here or low) / _MARGIN, min(max(high, here) * _MARGIN, 0.99)
        grid = np.geomspace(*ends, _POINTS).tolist()
        return sorted({*grid, here}) if here > 0 else grid


def deployment_of(stakes: Stakes, settings: Recommend, calibrate: Calibrate) -> Deployment:
    """Raises `ConfigError` where nothing is weighed: no misbehavior, or no cost of an alarm."""
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
    return Deployment(stakes, settings, calibrate.delta)


def budget_of(deployment: Deployment, taken: UsageFacts | None) -> AlertBudget | None:
    """How much may be flagged by the budgets of alerts and money, for verdicts that take so much."""
    settings = deployment.settings
    if settings.samples_per_day is None:
        return None
    shares = []
    if settings.alerts_per_day is not None:
        shares.append(settings.alerts_per_day / settings.samples_per_day)
    if settings.money_per_day is not None and settings.cost_audit > 0:
        price = (taken["cost"] or 0.0) if taken else 0.0
        left = settings.money_per_day / settings.samples_per_day - price
        shares.append(left / settings.cost_audit)
    share = min(shares, default=1.0)
    return AlertBudget(max(share, 0.0), settings.base_rates, deployment.delta) if share < 1 else None


def beyond_means(deployment: Deployment, taken: UsageFacts) -> str:
    """Why a monitor is out whatever it scores; empty where it is not, or where that was not measured."""
    settings = deployment.settings
    slow, price = taken["seconds_p95"], taken["cost"]
    if settings.seconds is not None and slow is not None and slow > settings.seconds:
        return f"takes {slow:.2g} s (95 % of verdicts), more than {settings.seconds:g}"
    if settings.money_per_day is not None and settings.samples_per_day is not None and price is not None:
        a_day = price * settings.samples_per_day
        if a_day > settings.money_per_day:
            return f"its verdicts cost {a_day:.3g} a day, more than {settings.money_per_day:g}"
    return ""
