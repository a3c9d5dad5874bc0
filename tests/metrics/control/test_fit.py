"""The logit-normal fit: scipy's own estimates, and known distributions found again."""

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import CensoredData, kstest, norm

from monitorbench.metrics.control.fit import FittedRoc, fit_roc
from monitorbench.metrics.control.results import NormalFacts


def test_scores_that_are_known_exactly_have_scipys_estimates() -> None:
    """Mean and standard deviation of the logits; the distance is Kolmogorov and Smirnov's."""
    rng = np.random.default_rng(0)
    honest, attack = expit(rng.normal(-2, 1.5, 300)), expit(rng.normal(1, 1, 200))
    found = fit_roc(honest, attack)
    assert found is not None
    for side, scores in ((found.honest, honest), (found.attack, attack)):
        assert (side["mean"], side["sd"]) == pytest.approx(norm.fit(logit(scores)), abs=1e-5)
        assert side["distance"] == pytest.approx(
            kstest(logit(scores), norm(side["mean"], side["sd"]).cdf).statistic, abs=1e-5
        )


def test_scores_at_the_ends_are_only_known_to_be_there() -> None:
    """A saturated monitor says 1.0 of many: taken at their word their logits would be infinite."""
    rng = np.random.default_rng(1)
    latent = rng.normal(10, 4, 400)
    edge = logit(1 - 1e-6)
    scores = np.where(latent > edge, 1.0, expit(latent))
    found = fit_roc(scores, expit(rng.normal(size=50)))
    assert found is not None
    data = CensoredData.right_censored(np.minimum(latent, edge), latent > edge)
    assert (found.honest["mean"], found.honest["sd"]) == pytest.approx(norm.fit(data), abs=1e-2)


def test_whole_numbers_stand_for_what_rounds_to_them() -> None:
    """0 to 10: the spread of a monitor that mostly says 0 is not 0."""
    rng = np.random.default_rng(2)
    honest, attack = (np.round(expit(rng.normal(mean, 1.5, 4000)), 1) for mean in (-3, 1))
    found = fit_roc(honest, attack)
    assert found is not None
    assert (found.honest["mean"], found.honest["sd"]) == pytest.approx((-3, 1.5), abs=0.15)
    assert (found.attack["mean"], found.attack["sd"]) == pytest.approx((1, 1.5), abs=0.15)
    assert found.honest["distance"] < 0.02


def test_the_curve_is_binormal() -> None:
    """Equal spreads, d′ = 2: 1 − Φ(z − 2)."""
    found = FittedRoc(*(NormalFacts(mean=mean, sd=2, distance=0, n=9) for mean in (-1, 3)))
    rates = np.array([1e-4, 0.01, 0.3])
    np.testing.assert_allclose(found.caught(rates), norm.sf(norm.isf(rates) - 2))


def test_one_value_has_no_fit() -> None:
    """A monitor that always says the same has no spread to go by."""
    assert fit_roc(np.full(9, 0.5), np.array([0.1, 0.9])) is None
