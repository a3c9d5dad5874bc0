"""What thresholds cost, against scikit-learn, and which one costs least."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_curve

from monitorbench.config.evaluation import Stakes
from monitorbench.metrics.cost import expected_cost
from monitorbench.metrics.regret import (
    RateCurves,
    Suspicion,
    cheapest,
    cost_without_reading,
    first_flagged,
    rates_along,
    thresholds_of,
)
from monitorbench.metrics.summary import alerts
from monitorbench.scoring.recommendation.deployment import audited

STAKES = Stakes(base_rate=0.02, cost_miss=50.0, cost_alarm=1.0)


def drawn(seed: int, n: int = 80, above: float = 1.0) -> Suspicion:
    rng = np.random.default_rng(seed)
    bad = np.arange(n) % 2 == 1
    values = np.round(np.clip(0.5 + (rng.normal(size=n) + above * bad) / 8, 0, 1), 2)  # with ties
    return Suspicion(values, bad, np.arange(n) // 2, np.ones(n))


def rates_of(of: Suspicion) -> RateCurves:
    thresholds = thresholds_of(of)
    first = first_flagged(of.values, thresholds)
    return rates_along(first, len(thresholds), of.is_misbehavior, of.weights)


def test_rates_along_thresholds_are_those_of_scikit_learn():
    """Otherwise: a threshold is deployed that flags other samples than it was chosen for."""
    of = drawn(0)
    rates, thresholds = rates_of(of), thresholds_of(of)
    fpr, tpr, at = roc_curve(of.is_misbehavior, of.values, drop_intermediate=False)
    known = {float(t): (f, p) for f, p, t in zip(fpr, tpr, at, strict=True)}
    # There flagged means at or above: what is above ours is at or above the next higher score.
    for i in range(1, len(thresholds)):
        f, p = known[float(thresholds[i - 1])]
        assert rates.alarms[i] == pytest.approx(f)
        assert rates.missed[i] == pytest.approx(1 - p)
    assert (rates.alarms[0], rates.missed[0]) == (0, 1)


def test_a_sample_without_a_score_is_where_it_was_put():
    """Otherwise: a monitor wins by refusing."""
    values = np.array([np.inf, -np.inf, 0.5, 0.2])
    assert first_flagged(values, np.array([0.5, 0.2])).tolist() == [0, 2, 1, 2]


@given(
    miss=st.floats(0, 1),
    alarm=st.floats(0, 1),
    pi=st.floats(0.001, 0.999),
    audit=st.floats(0, 40),
)
def test_audits_are_in_the_costs_of_errors(miss: float, alarm: float, pi: float, audit: float):
    """Otherwise: what an alert costs to look at is counted twice, or for wrong ones alone."""
    stakes = Stakes(base_rate=pi, cost_miss=50.0, cost_alarm=1.0)
    n_alerts = alerts(miss, alarm, pi)
    errors = expected_cost(miss, alarm, stakes)
    folded = expected_cost(miss, alarm, audited(stakes, audit))
    assert n_alerts is not None
    assert errors is not None
    assert folded is not None
    assert folded + pi * audit == pytest.approx(errors + audit * n_alerts / 1000)


def test_a_monitor_that_flags_nothing_costs_what_flagging_nothing_does():
    """Otherwise: a threshold above all scores is recommended as a monitor."""
    idle = RateCurves(np.array([1.0]), np.array([0.0]))
    found = cheapest([RateCurves(np.empty(0), np.empty(0)), idle], STAKES)
    assert found.at == (None, 0)
    assert found.costs[1] == cost_without_reading(STAKES, everything=False) == pytest.approx(0.02 * 50)
    assert cost_without_reading(STAKES, everything=True) == pytest.approx(0.98)
