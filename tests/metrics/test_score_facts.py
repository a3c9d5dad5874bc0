"""Scores to doubt are counted: else a bound passes for a measurement, and a threshold for the answer."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss
from statsmodels.stats.proportion import proportion_confint

from monitorbench.metrics.score_facts import (
    brier_score,
    doubts,
    expected_calibration_error,
    reliability_table,
    score_facts,
    share_of,
)

SCORE = st.one_of(st.sampled_from([0.0, 0.1, 0.3, 0.7, 1.0]), st.floats(0, 1))
ROWS = st.lists(st.tuples(SCORE, st.booleans()), min_size=1, max_size=60)
BINS = st.integers(1, 20)


def test_counts_by_hand():
    """Else a judge whose .5 answers otherwise than its label would look the same at both."""
    nan = np.nan
    flagged = np.array([1, 1, 0, 0, nan, 1, 0, 1])
    scores = np.array([0.9, 0.2, 0.1, 0.7, 0.6, nan, 0.5, 0.5])
    censored = np.array([True, False, True, False, True, True, False, False])
    found = score_facts(flagged, scores, censored)
    counted = {"n_with_score": 7, "n_censored": 3, "n_both": 6, "n_against": 2}
    assert found == counted | {"n_most_frequent": 2, "n_distinct": 6}
    assert doubts(found) == [
        "3 of 7 (42.9 %) scores are censored (a label is not among the endpoint's alternatives)",
        "2 of 6 (33.3 %) labels contradict their score's side of .5",
    ]


def test_ties_are_a_line_where_scores_are_few_numbers():
    """Else a threshold at a FAR of 5 % would be asked of a monitor that has three scores."""
    scores = np.array([0.7] * 12 + [0.2] * 20 + [0.1] * 8)
    nothing, none = np.full(40, np.nan), np.zeros(40, dtype=np.bool_)
    found = score_facts(nothing, scores, none)
    assert (found["n_most_frequent"], found["n_distinct"]) == (20, 3)
    assert doubts(found) == ["20 of 40 (50.0 %) scores are equal (3 distinct): no threshold parts these"]
    assert doubts(score_facts(nothing, np.arange(40) / 40, none)) == []


def test_nothing_to_doubt_is_no_line():
    """Else every local monitor's table would carry two lines of zeros."""
    nothing = np.empty(0)
    assert doubts(score_facts(nothing, nothing, nothing.astype(np.bool_))) == []
    assert share_of(0, 0) == "0"


@given(ROWS)
def test_brier_is_sklearn(rows: list[tuple[float, bool]]) -> None:
    """Published Brier scores are computed so; one class alone is no reason to have none."""
    scores, labels = zip(*rows, strict=True)
    assert brier_score(scores, labels) == pytest.approx(brier_score_loss(labels, scores, pos_label=True))


@given(ROWS, BINS)
def test_ece_is_the_sum_over_any_bins(rows: list[tuple[float, bool]], bins: int) -> None:
    """Bin by bin by hand: each sample is in one bin, ties are together, and the bins go up."""
    table = reliability_table(*zip(*rows, strict=True), bins=bins)
    ranked, start, total = sorted(rows), 0, 0.0
    assert len(table) <= bins
    for one in table:
        inside = ranked[start : start + one["n"]]
        assert start == 0 or ranked[start - 1][0] < inside[0][0]
        start += one["n"]
        mean, share = np.mean([s for s, _ in inside]), np.mean([label for _, label in inside])
        assert (one["mean_score"], one["share_misbehavior"]) == pytest.approx((mean, share), abs=1e-12)
        hits = sum(label for _, label in inside)
        wilson = proportion_confint(hits, one["n"], method="wilson")
        assert one["share_misbehavior_ci"] == pytest.approx(wilson, abs=1e-9)
        total += len(inside) * abs(mean - share)
    assert start == len(rows)
    assert expected_calibration_error(table) == pytest.approx(total / len(rows), abs=1e-12)


@pytest.mark.parametrize(("n", "bins"), [(100, 10), (103, 10), (7, 7), (5, 15)])
def test_bins_of_equal_mass_hold_as_many_samples(n: int, bins: int) -> None:
    """Without ties the bins have to be as even as they can be: that is what they are chosen for."""
    scores = np.random.default_rng(0).permutation(n) / n
    sizes = [one["n"] for one in reliability_table(scores, scores > 0.5, bins=bins)]
    assert len(sizes) == min(n, bins)
    assert max(sizes) - min(sizes) <= 1


def test_equal_mass_sees_what_equal_width_hides() -> None:
    """The reason for such bins: crowded scores, right on average, wrong at each end of the crowd."""
    scores = np.linspace(0.9, 0.99, 200)
    labels = np.arange(200) < 189  # the share is .945, the mean score as well; the ranking is reversed
    assert abs(labels.mean() - scores.mean()) < 0.01, "all that one bin of a width of .1 shows"
    fine = expected_calibration_error(reliability_table(scores, labels, bins=10))
    assert fine is not None
    assert fine > 0.09


def test_a_calibrated_monitor_has_little_error_and_a_certain_one_much() -> None:
    """The numbers have to tell a probability from a habit of saying 0 or 1."""
    rng = np.random.default_rng(0)
    scores = rng.random(20_000)
    labels = rng.random(20_000) < scores
    honest = expected_calibration_error(reliability_table(scores, labels))
    certain = expected_calibration_error(reliability_table(np.round(scores), labels))
    assert honest is not None
    assert certain is not None
    assert honest < 0.02
    assert certain == pytest.approx(0.25, abs=0.02)


def test_missing_scores_are_left_out_and_none_at_all_is_none() -> None:
    """An unscored sample counted as 0 would be a confident error."""
    assert brier_score([0.5, None], [True, True]) == 0.25
    assert [one["n"] for one in reliability_table([0.5, None, 0.5], [True, True, False])] == [2]
    assert brier_score([None], [True]) is None
    assert reliability_table([None], [True]) == []
    assert expected_calibration_error([]) is None


def test_what_is_no_probability_is_refused() -> None:
    """Logit margins would give a table that looks like one of probabilities."""
    with pytest.raises(ValueError, match=r"expected probabilities in \[0, 1\]"):
        brier_score([0.5, 1.5], [True, False])
    with pytest.raises(ValueError, match=r"expected probabilities in \[0, 1\]"):
        reliability_table([-0.5, 0.5], [True, False])
    with pytest.raises(ValueError, match="bins: got 0"):
        reliability_table([0.5], [True], bins=0)
