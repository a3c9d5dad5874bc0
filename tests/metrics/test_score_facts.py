"""Scores to doubt are counted: else a bound passes for a measurement, and a threshold for the answer."""

import numpy as np

from monitorbench.metrics.score_facts import doubts, score_facts, share_of


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
