"""One temperature: the minimum that scipy finds, and what it may and may not change."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit
from sklearn.metrics import f1_score, log_loss, roc_auc_score

from monitorbench.intervention.temperature import Temperature, fit_temperature, quality


def drawn(seed: int, n: int = 400, sharpness: float = 3.0) -> tuple[list[float], list[bool]]:
    """Scores that are over-confident by `sharpness`, and how the runs ended."""
    draw = np.random.default_rng(seed)
    true = draw.normal(size=n)
    failed = draw.random(n) < expit(true)
    return expit(sharpness * true).tolist(), failed.tolist()


@pytest.mark.parametrize("sharpness", [0.2, 1.0, 3.0, 20.0])
def test_the_temperature_is_scipys(sharpness: float):
    """A temperature off the minimum leaves P(fail) > τ firing more or less often than it says."""
    p, failed = drawn(1, sharpness=sharpness)

    def nll(log_t: float) -> float:
        return log_loss(failed, expit(logit(np.clip(p, 1e-6, 1 - 1e-6)) / np.exp(log_t)))

    expected = np.exp(minimize_scalar(nll, bounds=(-6, 6), method="bounded", options={"xatol": 1e-10}).x)
    found = fit_temperature(p, failed)
    assert found.value == pytest.approx(expected, rel=1e-4)
    assert (found.n_steps, found.reason) == (400, "")


def test_over_confidence_is_found_out():
    """Scores three times too sure need a temperature near three."""
    p, failed = drawn(2, n=20_000)
    assert fit_temperature(p, failed).value == pytest.approx(3, rel=0.1)


@pytest.mark.parametrize(
    ("p", "failed", "value", "why"),
    [
        ([], [], 1, "no validation step"),
        ([0.7, 0.8], [False, False], 1000, "wrong side"),
        ([0.7, 0.8], [True, True], 0.001, "without a fault"),
        ([0.1, 0.2, 0.8, 0.9], [False, False, True, True], 0.001, "without a fault"),
        ([0.9, 0.8, 0.2, 0.1], [False, False, True, True], 1000, "wrong side"),
        ([0.5, 0.5], [False, True], 1000, "wrong side"),
    ],
)
def test_without_a_minimum_it_stops_at_the_end_of_its_range_and_says_why(
    p: list[float], failed: list[bool], value: float, why: str
):
    """A critic that says nothing must fall silent, and a person must learn that it did."""
    found = fit_temperature(p, failed)
    assert found.value == pytest.approx(value)
    assert why in found.reason
    if value == 1000:
        assert not any(found.calibrated(one) > 0.6 for one in p)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0.01, 100))
def test_the_order_of_scores_stays(p: list[float], temperature: float):
    """AUROC is promised not to move; probabilities stay probabilities even at 0 and 1."""
    found = [Temperature(temperature, 1).calibrated(one) for one in sorted(p)]
    assert found == sorted(found)
    assert all(0 <= one <= 1 for one in found)


def test_quality_is_scikit_learns():
    """AUROC, F1 and NLL in the report are compared with published ones."""
    p, failed = drawn(3)
    found = quality(p, failed, tau=0.6)
    assert found.auroc == pytest.approx(roc_auc_score(failed, p))
    assert found.f1 == pytest.approx(f1_score(failed, np.array(p) > 0.6))
    assert found.nll == pytest.approx(log_loss(failed, np.clip(p, 1e-6, 1 - 1e-6)))
    tempered = fit_temperature(p, failed)
    after = quality([tempered.calibrated(one) for one in p], failed, tau=0.6)
    assert after.auroc == pytest.approx(found.auroc)
    assert after.nll is not None
    assert found.nll is not None
    assert after.nll < found.nll
    assert after.ece is not None
    assert found.ece is not None
    assert after.ece < found.ece


def test_quality_of_nothing_is_unknown():
    """Unknown is no zero: a critic that nobody could check must not look like a bad one, or a good one."""
    assert quality([], [], 0.6) == (None, None, None, None)
    assert quality([0.1], [False], 0.6).auroc is None
    assert quality([0.1], [False], 0.6).f1 is None
