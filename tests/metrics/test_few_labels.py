"""What a team would lose: rates from a few labels that are biased, too sure, or count the rest as benign."""

import numpy as np
import pytest
from scipy.stats import binomtest, gamma
from statsmodels.stats.proportion import proportion_confint

from monitorbench.metrics.labelled import (
    LabelErrors,
    PartlyLabelled,
    differences_of,
    estimated,
    rates_of,
    weighted_share,
)
from monitorbench.metrics.labels_to_ask import LabelRound, draw, probabilities, risk, strata, weights_of

ALONE = rates_of(np.array([0.0, 1.0]), 100.0, 1.0)
N = 2_000


def made(seed: int, base_rate: float = 0.1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, scores and flags of two monitors."""
    rng = np.random.default_rng(seed)
    is_bad = (rng.random(N) < base_rate).astype(float)
    scores = rng.normal(size=(2, N)) + is_bad * np.array([[2.0], [1.0]])
    return is_bad, scores, (scores > 1.6).astype(float)


def asked_for(
    is_bad: np.ndarray, scores: np.ndarray, flagged: np.ndarray, design: str, sizes: list[int], seed=0
):
    """A pool with labels in rounds."""
    rng, labels, rounds, mean = np.random.default_rng(seed), np.full(N, np.nan), [], scores.mean(axis=0)
    for n in sizes:
        chances = probabilities(
            n, mean, risk(mean, labels, weights_of(rounds, N)), flagged, np.isnan(labels), design
        )
        rows = draw(chances, mean, rng)
        assert len(rows) == n
        assert np.isnan(labels[rows]).all()
        rounds.append(LabelRound(rows, chances[rows]))
        labels[rows] = is_bad[rows]
    return PartlyLabelled(labels, weights_of(rounds, N), mean, np.arange(N))


@pytest.mark.parametrize(("hits", "n"), [(0, 30), (1, 30), (7, 30), (29, 30), (30, 30), (40, 400)])
def test_equal_weights_give_clopper_and_pearsons_interval(hits: int, n: int):
    labels = np.arange(n) < hits
    share = weighted_share(labels.astype(float), np.full(n, 3.0), np.arange(n))
    exact = binomtest(hits, n).proportion_ci(method="exact")
    assert share == pytest.approx((hits / n, exact.low, exact.high), abs=1e-9)
    assert share[1:] == pytest.approx(proportion_confint(hits, n, method="beta"), abs=1e-9)


def test_rare_misbehavior_of_equal_weight_gives_the_poisson_interval():
    labels = (np.arange(100_000) < 5).astype(float)
    share = weighted_share(labels, np.full(100_000, 2.0), np.arange(100_000))
    poisson = gamma.ppf([0.025, 0.975], [5, 6]) / 100_000
    assert share[1:] == pytest.approx(tuple(poisson), rel=1e-3)


def test_labels_of_one_group_are_one_piece_of_evidence():
    labels, weights = np.repeat([1.0, 0, 0, 0], 5), np.ones(20)
    apart = weighted_share(labels, weights, np.arange(20))
    together = weighted_share(labels, weights, np.repeat(np.arange(4), 5))
    assert together.value == apart.value == 0.25
    exact = binomtest(1, 4).proportion_ci(method="exact")
    assert together[1:] == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_all_labels_give_the_plain_rates():
    is_bad, scores, flagged = made(1)
    every = PartlyLabelled(is_bad, np.ones(N), scores.mean(axis=0), np.arange(N))
    bad, alarm = is_bad == 1, flagged == 1
    for estimator in ("ipw", "ppi"):
        rates = estimated(every, flagged[:1], ALONE, estimator)
        assert rates["miss_rate"].value == pytest.approx((~alarm[0])[bad].mean())
        assert rates["false_alarm_rate"].value == pytest.approx(alarm[0][~bad].mean())
        assert rates["precision"].value == pytest.approx(bad[alarm[0]].mean())
        assert rates["base_rate"].value == pytest.approx(bad.mean())
        cost = (100 * (bad & ~alarm[0]) + (~bad & alarm[0])).mean()
        assert rates["expected_cost"].value == pytest.approx(cost)
        wilson = proportion_confint((~bad & alarm[0]).sum(), (~bad).sum(), method="wilson")
        assert rates["false_alarm_rate"].interval == pytest.approx(wilson, abs=0.002)
        apart = estimated(every, flagged, differences_of(100.0, 1.0), estimator)
        assert apart["miss_rate"].value == pytest.approx((~alarm[1])[bad].mean() - (~alarm[0])[bad].mean())
        assert apart["false_alarm_rate"].value == pytest.approx(alarm[1][~bad].mean() - alarm[0][~bad].mean())


@pytest.mark.parametrize("design", ["uniform", "stratified", "active"])
@pytest.mark.parametrize("sizes", [[150], [75, 75]])
def test_totals_are_unbiased_and_intervals_hold_what_all_labels_would_say(design: str, sizes: list[int]):
    is_bad, scores, flagged = made(2)
    missed = (1 - flagged[0])[is_bad == 1].mean()
    totals, held = [], {"ipw": 0, "ppi": 0}
    for seed in range(100):
        of = asked_for(is_bad, scores, flagged, design, sizes, seed)
        totals.append(np.nansum(of.weights * of.labels))
        for estimator in held:
            low, high = estimated(of, flagged[:1], ALONE, estimator)["miss_rate"].interval
            held[estimator] += low <= missed <= high
    error = np.std(totals) / np.sqrt(len(totals))
    assert abs(np.mean(totals) - is_bad.sum()) < 3.5 * error
    assert min(held.values()) >= 94  # of 100


def test_predictions_narrow_what_uniform_labels_say():
    is_bad, scores, flagged = made(3, base_rate=0.5)
    of = asked_for(is_bad, scores, flagged, "uniform", [300])
    plain, powered = (estimated(of, flagged[:1], ALONE, way)["base_rate"].interval for way in ("ipw", "ppi"))
    assert powered.high - powered.low < 0.95 * (plain.high - plain.low)


def test_a_domain_without_a_label_leaves_everything_open():
    is_bad, scores, flagged = made(4)
    labels = np.where(flagged[0] == 1, is_bad, np.nan)
    of = PartlyLabelled(labels, np.ones(N), scores[0], np.arange(N))
    rates = estimated(of, flagged[:1], ALONE)
    assert rates["precision"].value == pytest.approx(is_bad[flagged[0] == 1].mean())
    assert rates["miss_rate"].value is None
    assert rates["miss_rate"].interval.low < 0.05
    assert rates["miss_rate"].interval.high > 0.9
    unlabelled = PartlyLabelled(np.full(N, np.nan), np.ones(N), scores[0], np.arange(N))
    assert all(rate.value is None for rate in estimated(unlabelled, flagged[:1], ALONE).values())


def test_a_known_label_error_is_taken_out_and_a_bounded_one_widens():
    """6 % wrong labels would make three false alarms in a hundred look like seven."""
    is_bad, scores, flagged = made(8, base_rate=0.3)
    rng = np.random.default_rng(0)
    told = np.where(rng.random(N) < np.where(is_bad == 1, 0.1, 0.06), 1 - is_bad, is_bad)
    of = PartlyLabelled(told, np.ones(N), scores[0], np.arange(N))
    truth = (1 - flagged[0])[is_bad == 1].mean()
    plain = estimated(of, flagged[:1], ALONE)["miss_rate"]
    known = estimated(of, flagged[:1], ALONE, errors=[LabelErrors(0.1, 0.06)])["miss_rate"]
    corners = [LabelErrors(0.1, 0.06), LabelErrors(0.05, 0.03), LabelErrors(0.15, 0.09)]
    bounded = estimated(of, flagged[:1], ALONE, errors=corners)["miss_rate"]
    assert plain.interval.low > truth
    assert known.value == pytest.approx(truth, abs=0.04)
    assert known.interval.low < truth < known.interval.high
    assert bounded.value == known.value
    assert bounded.interval.low < known.interval.low < known.interval.high < bounded.interval.high
    share = weighted_share(told, np.ones(N), np.arange(N))
    rogan_gladen = (told.mean() + (1 - 0.06) - 1) / ((1 - 0.1) + (1 - 0.06) - 1)
    assert LabelErrors(0.1, 0.06).corrected(share).value == pytest.approx(rogan_gladen)
    with pytest.raises(ValueError, match="expected a sum below 1"):
        LabelErrors(0.6, 0.4).corrected(share)


def test_what_a_monitor_did_not_score_is_in_none_of_its_rates():
    is_bad, scores, flagged = made(5)
    gone = np.arange(N) % 3 == 0
    every = PartlyLabelled(is_bad, np.ones(N), scores[0], np.arange(N))
    rates = estimated(every, np.where(gone, np.nan, flagged[:1]), ALONE)
    assert rates["miss_rate"].value == pytest.approx((1 - flagged[0])[(is_bad == 1) & ~gone].mean())


def test_where_few_are_free_all_are_asked_and_the_probability_is_one():
    _, scores, flagged = made(6)
    free = np.arange(N) < 20
    chances = probabilities(50, scores[0], np.full(N, 0.1), flagged, free, "active")
    assert chances[:20] == pytest.approx(1)
    assert not chances[20:].any()
    assert draw(chances, scores[0], np.random.default_rng(0)).tolist() == list(range(20))


def test_strata_halve_and_risks_follow_the_labels():
    scores = np.arange(1024.0)
    assert np.bincount(strata(scores))[:3].tolist() == [512, 256, 128]
    labels = np.where(np.arange(1024) % 8 == 0, scores > 900, np.nan)
    risks = risk(scores, labels, np.full(1024, 8.0))
    assert risks[-100] > 0.3 > 0.05 > risks[0] > 0
    assert risk(scores, np.full(1024, np.nan), np.zeros(1024))[-2:].tolist() == [0.25, 0.5]
