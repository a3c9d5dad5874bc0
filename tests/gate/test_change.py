"""The same samples judged again and again: evidence over all orders of looks, and what is unscored."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from benchmarks.coverage.looks import rate_evidence
from monitorbench.gate.change import (
    auroc_change,
    broken_p,
    evidence_of_rise,
    kept_p,
    needed,
    rate_change,
    state,
)

NAN = float("nan")


def looks(*of: np.ndarray) -> np.ndarray:
    return np.stack(of)


@pytest.mark.parametrize(
    "values",
    [
        [[0, 1, 0], [1, 1, 0], [0, 2, 1]],
        [[0.1, 0.4, 0.2], [0.3, 0.1, 0.2], [0.5, 0.4, 0.9]],
        [[0, 1, 0], [NAN, 1, 1], [0, 0, NAN]],
    ],
)
def test_the_mean_evidence_over_all_orders_of_looks_is_one(values: list[list[float]]):
    """Evidence that is too large on average fails an unchanged monitor more often than promised."""
    rows = np.array(values, dtype=float)
    of_group = [list(permutations(rows[:, g])) for g in range(rows.shape[1])]
    drawn = [evidence_of_rise(np.array(orders, dtype=float).T) for orders in product(*of_group)]
    if np.isnan(rows).any():
        assert np.mean(drawn) <= 1 + 1e-9
    else:
        assert np.mean(drawn) == pytest.approx(1)


def test_evidence_of_few_that_never_flipped_before_grows_with_the_looks():
    """Four anchors that were right on forty days and are wrong today are no noise."""
    steady = np.zeros((41, 100))
    assert evidence_of_rise(steady) == 1
    risen = steady.copy()
    risen[-1, :4] = 1
    assert evidence_of_rise(risen) > needed(40, 0.05)
    assert evidence_of_rise(-risen) < 1
    assert evidence_of_rise(risen[-2:]) < needed(1, 0.05)
    assert evidence_of_rise(risen[:, :1]) is None


def test_the_level_is_spent_once():
    """All looks there will ever be have the level together."""
    assert sum(1 / needed(look, 0.05) for look in range(1, 100_000)) == pytest.approx(0.05, abs=1e-6)


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
    whole = rate_change(looks(before, before), groups, of=False, margin=0.05)
    now = np.where(groups < 30, NAN, 0.0)
    found = rate_change(looks(before, now), groups, of=False, margin=0.05)
    assert state(whole, 0.05, 20) == "held"
    assert found.worse == 0
    assert found.evidence == 1
    assert found.p_margin > 0.5
    assert state(found, 0.05, 20) == "open"
    is_bad = groups % 2 == 0
    scores = np.where(is_bad, 0.8, 0.2) + groups / 1000
    auroc = auroc_change(looks(scores, np.where(groups < 30, NAN, scores)), is_bad, groups, 0.05)
    assert (auroc.before, auroc.now) == (1, 1)
    assert auroc.p_margin > 0.5


def test_few_questions_refute_no_margin():
    """Three anchors as they were would pass as three hundred do: by the rule of three 59 are needed."""
    for n, expected in ((58, "open"), (59, "held")):
        same = np.zeros(n)
        assert (
            state(rate_change(looks(same, same), np.arange(n), of=False, margin=0.05), 0.05, 20) == expected
        )
    none = rate_change(np.zeros((2, 0)), np.zeros(0, dtype=np.int64), of=True, margin=0.05)
    assert state(none, 0.05, 20) == "open"


def test_samples_of_one_question_are_one_piece_of_evidence():
    """Ten copies of an anchor would show a rise that one does not."""
    before, now = np.zeros(100), np.ones(100)
    groups = np.arange(100) // 50
    assert rate_change(looks(before, now), groups, of=False, margin=0.05).evidence < 4


def test_the_simulated_years_evidence_is_that_of_the_gate():
    """The benchmark takes all days at once; a year of another statistic would prove nothing."""
    is_wrong = np.random.default_rng(4).random((30, 40)) < 0.2
    at_once = rate_evidence(is_wrong)
    for look in (1, 7, 29):
        assert at_once[look] == pytest.approx(evidence_of_rise(is_wrong[: look + 1].astype(float)))
