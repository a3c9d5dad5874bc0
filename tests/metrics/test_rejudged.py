"""The same samples judged twice: p values against scipy's, and what is unscored."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from monitorbench.metrics.drift import auroc_change, broken_p, kept_p, rate_change, state

NAN = float("nan")


@given(st.integers(0, 12), st.integers(0, 12), st.integers(20, 60))
def test_a_rise_of_single_samples_is_the_sign_test(new: int, gone: int, same: int):
    """A p of another test would fail an unchanged monitor more often than promised."""
    before = np.array([0.0] * new + [1.0] * gone + [0.0] * same)
    now = np.array([1.0] * new + [0.0] * gone + [0.0] * same)
    found = rate_change(before, now, np.arange(len(now)), of=False, margin=0.1)
    assert found.worse == pytest.approx((new - gone) / len(now))
    if new > gone:
        expected = binomtest(new, new + gone, alternative="greater").pvalue
        assert found.p_worse == pytest.approx(expected)
    else:
        assert found.p_worse >= 0.5


@given(st.integers(0, 40), st.integers(1, 40), st.floats(0.01, 0.5))
def test_the_promise_is_tested_by_the_exact_binomial(n_alarmed: int, more: int, alpha: float):
    """An approximate test of five in a hundred is off by half."""
    n = n_alarmed + more
    assert broken_p(n_alarmed, n, alpha) == pytest.approx(
        binomtest(n_alarmed, n, alpha, alternative="greater").pvalue
    )
    assert kept_p(n_alarmed, n, alpha) == pytest.approx(
        binomtest(n_alarmed, n, alpha, alternative="less").pvalue
    )


def test_what_is_unscored_is_no_evidence_of_a_rise_and_none_against_it():
    """A provider that refuses the hard half of the anchors would pass, or be called worse for it."""
    before, groups = np.zeros(100), np.arange(100)
    whole = rate_change(before, before, groups, of=False, margin=0.05)
    now = np.where(groups < 30, NAN, 0.0)
    found = rate_change(before, now, groups, of=False, margin=0.05)
    assert state(whole, 1.0, 0.05) == "held"
    assert found.worse == 0
    assert found.p_worse == 1
    assert found.p_margin > 0.5
    assert state(found, found.p_worse, 0.05) == "open"
    is_bad = groups % 2 == 0
    scores = np.where(is_bad, 0.8, 0.2) + groups / 1000
    auroc = auroc_change(scores, np.where(groups < 30, NAN, scores), is_bad, groups, 0.05)
    assert (auroc.before, auroc.now) == (1, 1)
    assert auroc.p_margin > 0.5


def test_few_questions_refute_no_margin():
    """Three anchors as they were would pass as three hundred do: by the rule of three 59 are needed."""
    for n, expected in ((58, "open"), (59, "held")):
        same = np.zeros(n)
        assert state(rate_change(same, same, np.arange(n), of=False, margin=0.05), 1.0, 0.05) == expected
    none = rate_change(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64), of=True, margin=0.05)
    assert state(none, None, 0.05) == "open"


def test_samples_of_one_question_are_one_piece_of_evidence():
    """Ten copies of an anchor would show a rise that one does not."""
    before, now = np.zeros(100), np.ones(100)
    groups = np.arange(100) // 50
    assert rate_change(before, now, groups, of=False, margin=0.05).p_worse == pytest.approx(0.25)
