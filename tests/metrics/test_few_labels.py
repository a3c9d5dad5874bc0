"""What a team would lose: rates from a few labels that are biased, too sure, or count the rest as benign."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logit
from scipy.stats import binomtest, gamma, norm, rankdata
from sklearn.metrics import roc_auc_score
from statsmodels.stats.proportion import proportion_confint

from benchmarks.coverage.labels import choice
from monitorbench.metrics.auroc import auroc_interval
from monitorbench.metrics.labelled import (
    LabelErrors,
    PartlyLabelled,
    differences_of,
    estimated,
    rates_of,
    weighted_share,
)
from monitorbench.metrics.labelled_scores import (
    auroc_estimate,
    contradictions,
    errors_from_readings,
    least_error_that_changes,
    promised_threshold,
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
        chances = probabilities(n, risk(scores, labels), flagged, np.isnan(labels), design)
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


@pytest.mark.parametrize("design", ["uniform", "stratified", "active", "alerts"])
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


def test_what_was_read_with_certainty_says_nothing_of_what_was_not():
    """A queue reads the riskiest alerts: as one ratio with the few blind labels they would be all alerts."""
    row = np.arange(N)
    flagged, certain, blind = row < 400, row < 100, row % 20 == 0
    is_bad = certain | (~flagged & (row // 20 % 8 == 0))
    is_labelled = certain | (blind & (~flagged | (row >= 340)))
    labels, weights = np.where(is_labelled, is_bad, np.nan), np.where(certain, 1.0, 20.0)
    of = PartlyLabelled(labels, weights, -row.astype(float), row)
    rates = estimated(of, flagged[None].astype(float), ALONE)
    missed, alarmed = (~flagged)[is_bad].mean(), flagged[~is_bad].mean()
    assert rates["miss_rate"].value == pytest.approx(missed)
    assert rates["false_alarm_rate"].value == pytest.approx(alarmed)
    assert rates["precision"].value == pytest.approx(0.25)


def test_alerts_that_nobody_read_may_all_be_false_and_none_so_far_is_not_never():
    row = np.arange(N)
    flagged, unread = row[None] < 80, (row >= 60) & (row < 80)
    blind = row % 20 == 0
    labels = np.where((row < 60) | (blind & ~unread), 0.0, np.nan)
    of = PartlyLabelled(labels, np.where(row < 60, 1.0, 20.0), -row.astype(float), row)
    far = estimated(of, flagged.astype(float), ALONE)["false_alarm_rate"]
    assert far.value is None
    assert far.interval.high >= proportion_confint(80, N, method="beta")[1]
    every = PartlyLabelled(np.zeros(N), np.ones(N), -row.astype(float), row)
    for n in (0, 1, 4):
        low, high = estimated(every, (row < n)[None].astype(float), ALONE)["false_alarm_rate"].interval
        exact = proportion_confint(n, N, method="beta")
        assert high == pytest.approx(exact[1], rel=0.02)
        assert low <= exact[0]


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


def test_a_cost_of_which_nothing_is_known_may_be_as_high_as_a_miss():
    """A monitor without any score would be said to cost at most 1 a sample, and no less than another."""
    of = PartlyLabelled(np.full(6, np.nan), np.zeros(6), np.linspace(0, 1, 6), np.arange(6))
    alone = estimated(of, np.full((1, 6), np.nan), ALONE)
    assert alone["expected_cost"].interval == (0.0, 100.0)
    assert alone["miss_rate"].interval == (0.0, 1.0)
    apart = estimated(of, np.full((2, 6), np.nan), differences_of(100.0, 1.0))
    assert apart["expected_cost"].interval == (-100.0, 100.0)


def test_where_few_are_free_all_are_asked_and_the_probability_is_one():
    _, scores, flagged = made(6)
    free = np.arange(N) < 20
    for design in ("active", "alerts"):
        chances = probabilities(50, np.full(N, 0.1), flagged, free, design)
        assert chances[:20] == pytest.approx(1)
        assert not chances[20:].any()
    assert draw(chances, scores[0], np.random.default_rng(0)).tolist() == list(range(20))


def test_strata_halve_and_risks_follow_the_labels():
    scores = np.arange(1024.0)
    assert np.bincount(strata(scores))[:3].tolist() == [512, 256, 128]
    labels = np.where(np.arange(1024) % 8 == 0, scores > 900, np.nan)
    risks = risk(scores[None], labels)
    assert risks[-100] > 0.3 > 0.05 > risks[0] > 0
    assert risk(scores[None], np.full(1024, np.nan))[-2:].tolist() == [0.25, 0.5]


def test_risk_is_the_logistic_regression_with_a_normal_prior():
    """The same optimum by a general minimiser; what is unscored ranks highest."""
    is_bad, scores, _ = made(9)
    told = np.where(np.arange(N) % 10 == 0, is_bad, np.nan)
    read = np.c_[np.ones(N), norm.ppf((rankdata(scores, axis=1) - 0.5) / N).T]
    rows = ~np.isnan(told)

    def loss(weights: np.ndarray) -> float:
        linear = read[rows] @ weights
        off = weights - (0, 1, 1)
        return np.logaddexp(0, linear).sum() - told[rows] @ linear + off @ (1e-4 * off[0], *off[1:]) / 2

    best = minimize(loss, np.array([-4.0, 1, 1]), method="BFGS", options={"gtol": 1e-8}).x
    assert logit(risk(scores, told)) == pytest.approx(read @ best, abs=1e-3)
    unscored = scores.copy()
    unscored[:, 0] = np.nan
    assert risk(unscored, told).argmax() == 0


def test_alerts_take_the_riskiest_that_is_flagged_and_a_share_blindly():
    _, scores, flagged = made(10)
    risks = risk(scores, np.full(N, np.nan))
    chances = probabilities(50, risks, flagged, np.ones(N, dtype=bool), "alerts", blind_share=0.2)
    certain = chances == 1
    alerts = flagged.any(axis=0)
    assert certain.sum() == 40
    assert alerts[certain].all()
    assert risks[certain].min() >= np.sort(risks[alerts])[-40]
    assert chances[~certain] == pytest.approx(10 / (N - 40))
    few = probabilities(500, risks, flagged * 0, np.ones(N, dtype=bool), "alerts")
    assert few == pytest.approx(500 / N)


@pytest.mark.parametrize("flip", [(0.0, 0.0), (0.1, 0.06)])
def test_auroc_of_few_labels_is_scikit_learns_and_that_of_wrong_labels_is_corrected(flip: tuple):
    is_bad, scores, _ = made(11, base_rate=0.3)
    rng = np.random.default_rng(1)
    weights = rng.uniform(1, 4, N)
    told = np.where(rng.random(N) < np.where(is_bad == 1, *flip), 1 - is_bad, is_bad)
    of = PartlyLabelled(told, weights, scores[0], np.arange(N))
    plain = auroc_estimate(of, scores[0])
    assert plain.value == pytest.approx(roc_auc_score(told, scores[0], sample_weight=weights))
    right = roc_auc_score(is_bad, scores[0])
    corrected = auroc_estimate(of, scores[0], [LabelErrors(*flip)])
    assert corrected.interval.low < right < corrected.interval.high
    if any(flip):
        assert plain.interval.high < right
    one_class = PartlyLabelled(np.ones(N), weights, scores[0], np.arange(N))
    assert auroc_estimate(one_class, scores[0]).value is None


def test_auroc_of_equal_weights_has_the_interval_of_a_whole_run():
    is_bad, scores, _ = made(12)
    of = PartlyLabelled(is_bad, np.full(N, 3.0), scores[0], np.arange(N))
    whole = auroc_interval(scores[0], is_bad == 1, np.arange(N))
    assert auroc_estimate(of, scores[0]).interval == pytest.approx(whole, abs=1e-4)


def test_a_threshold_keeps_its_promise_as_often_as_it_says():
    """Of 100 draws of labels at most a few may leave FAR above alpha; all of traffic drawn alike."""
    broken = there = 0
    for seed in range(60):
        is_bad, scores, flagged = made(seed)
        of = asked_for(is_bad, scores, flagged, "active", [200], seed)
        found = promised_threshold(of, scores[0], 0.05, 0.1)
        there += found.threshold is not None
        broken += found.threshold is not None and norm.sf(found.threshold) > 0.05
    assert there == 60
    assert broken <= 10


def test_a_threshold_that_is_not_shown_says_why():
    is_bad, scores, _ = made(13)
    none = PartlyLabelled(np.full(N, np.nan), np.ones(N), scores[0], np.arange(N))
    assert "no label" in promised_threshold(none, scores[0], 0.05, 0.05).reason
    few = PartlyLabelled(np.where(np.arange(N) < 8, is_bad, np.nan), np.ones(N), scores[0], np.arange(N))
    low = promised_threshold(few, scores[0], 0.001, 0.05)
    assert low.threshold is None
    assert "may be" in low.reason or "no label" in low.reason


def test_errors_of_readers_are_found_from_what_two_read():
    """Two readers who err by themselves, a third who knows: brute force over many samples."""
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(50):
        is_bad = rng.random(400) < 0.3
        often = np.where(is_bad, 0.1, 0.04)
        wrong = rng.random((2, 400)) < often
        differ = wrong[0] != wrong[1]
        agreed = ~differ & ~wrong[0]
        n = tuple(int((agreed | differ)[is_bad == label].sum()) for label in (True, False))
        apart = tuple(int(differ[is_bad == label].sum()) for label in (True, False))
        point, *corners = errors_from_readings(n, apart, 0)
        lows, highs = (np.array(end(corners)) for end in (lambda c: c[0], lambda c: c[-1]))
        held += bool((lows <= (0.1, 0.04)).all() and (highs >= (0.1, 0.04)).all())
        assert point == pytest.approx((0.1, 0.04), abs=0.07)
        open_ = errors_from_readings(n, apart, 20)
        assert open_[-1].of_benign > corners[-1].of_benign
    assert held >= 47


def test_what_would_change_the_answer_is_the_smallest_error_that_does():
    is_bad, scores, flagged = made(14)
    of = PartlyLabelled(is_bad, np.ones(N), scores[0], np.arange(N))
    alike = np.stack([flagged[0], np.zeros(N)])
    cost = rates_of(np.array([0.0, 1.0]), 3.0, 1.0)["expected_cost"]
    of_bad, of_good = least_error_that_changes(of, alike, 0, (3.0, 1.0), "ipw")
    assert of_bad is None  # more misbehavior than labelled speaks for the monitor that flags
    assert of_good is not None
    for error, is_best in ((of_good - 0.005, True), (of_good, False)):
        costs = [
            estimated(of, row[None], {"c": cost}, errors=[LabelErrors(0.0, error)])["c"].value
            for row in alike
        ]
        assert (costs[0] <= costs[1]) == is_best


def test_labels_that_most_monitors_contradict_come_worst_first():
    labels = np.array([1.0, 0.0, 1.0, 0.0, np.nan])
    flagged = np.array([[0.0, 1.0, 1.0, 0.0, 1.0], [0.0, np.nan, 0.0, 0.0, 1.0]])
    off = contradictions(labels, np.array([0.1, 0.7, 0.5, 0.1, 0.9]), flagged)
    assert off[0] > off[1] > 0 == off[2] == off[3]
    assert np.isnan(off[4])


def test_the_cheapest_monitor_is_found_with_a_hundred_labels_that_search():
    """Eight monitors, one in a hundred samples misbehavior: what a hundred blind labels never tell."""
    drawn = [choice(np.random.default_rng(seed), "normal", 100, "alerts", 2) for seed in range(20)]
    assert sum(regret <= 0.01 for regret, _ in drawn) >= 19
