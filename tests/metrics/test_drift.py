"""The check for drifted benign scores: scipy's distance, and all permutations of a small case counted out.

The same samples judged twice: p values against scipy's, and what is unscored.
"""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, ks_2samp

from monitorbench.metrics.columns import Columns
from monitorbench.metrics.drift import auroc_change, broken_p, drift, kept_p, rate_change, state


def benign(scores: np.ndarray, tasks: np.ndarray | None = None, groups: np.ndarray | None = None) -> Columns:
    n = len(scores)
    none, nothing = np.zeros(n, dtype=np.int64), np.full(n, np.nan)
    return Columns(
        sample_ids=pa.array([f"{i}" for i in range(n)]),
        is_misbehavior=none.astype(np.bool_),
        flagged=nothing,
        scores=np.asarray(scores, dtype=np.float64),
        groups=np.arange(n) if groups is None else groups,
        group_names=pa.array([f"{i}" for i in range(n)]),
        pairs=none - 1,
        categories=none,
        category_names=("safety_permission",),
        tasks=none if tasks is None else tasks,
        task_names=("qa", "code"),
        sources=none,
        source_names=("made",),
        strata=none,
        stratum_names=("",),
        has_thinking=none.astype(np.bool_),
        n_quotes=none,
        n_grounded=none,
    )


def test_in_one_cell_it_is_scipys_distance() -> None:
    """A distance of our own would be looked up in nobody's table."""
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 20, 60) / 20, rng.integers(3, 20, 45) / 20
    found = drift(benign(first), benign(second), seed=0)
    assert found is not None
    assert found["distance"] == pytest.approx(ks_2samp(first, second).statistic)
    assert (found["n_calibration"], found["n_use"]) == (60, 45)
    assert found["higher"] > 0.5


def test_its_p_is_that_of_all_permutations() -> None:
    """A p that is too small cries drift at every scoring, one too large never does."""
    scores = np.array([0.1, 0.2, 0.2, 0.4, 0.3, 0.6, 0.7, 0.7])
    cut = 4
    observed = ks_2samp(scores[:cut], scores[cut:]).statistic
    splits = [np.isin(np.arange(8), one) for one in combinations(range(8), cut)]
    as_far = np.mean([ks_2samp(scores[one], scores[~one]).statistic >= observed - 1e-12 for one in splits])
    found = drift(benign(scores[:cut]), benign(scores[cut:]), permutations=20_000, seed=0)
    assert found is not None
    assert found["p_value"] == pytest.approx(as_far, abs=0.01)


def test_its_p_within_cells_is_that_of_all_permutations() -> None:
    """If it failed: cells whose smaller side differs would be put together with the wrong sign."""
    first, second = np.array([0.1, 0.2, 0.2, 0.5, 0.3]), np.array([0.3, 0.2, 0.6, 0.7, 0.4])
    first_tasks, second_tasks = np.array([0, 0, 0, 0, 1]), np.array([0, 0, 1, 1, 1])
    scores, tasks = np.concatenate([first, second]), np.concatenate([first_tasks, second_tasks])
    in_qa, in_code = np.flatnonzero(tasks == 0), np.flatnonzero(tasks == 1)

    def distance(before: np.ndarray) -> float:
        total = 0.0
        sums = np.zeros(len(scores))
        for rows in (in_qa, in_code):
            now = np.setdiff1d(rows, before)
            old = np.intersect1d(rows, before)
            h = len(old) * len(now) / len(rows)
            below = [np.mean(scores[side][:, None] <= scores, axis=0) for side in (old, now)]
            sums += h * (below[0] - below[1])
            total += h
        return float(np.abs(sums).max() / total)

    observed = distance(np.arange(5))
    splits = [
        distance(np.array([*qa, *code])) for qa in combinations(in_qa, 4) for code in combinations(in_code, 1)
    ]
    found = drift(benign(first, first_tasks), benign(second, second_tasks), permutations=20_000, seed=0)
    assert found is not None
    assert found["distance"] == pytest.approx(observed)
    assert found["p_value"] == pytest.approx(np.mean(np.array(splits) >= observed - 1e-12), abs=0.015)


def test_another_mix_is_no_drift_and_copies_are_no_evidence() -> None:
    """Each would warn of a threshold that holds: the promise is weighted over cells, and by question."""
    rng = np.random.default_rng(1)

    def drawn(n_qa: int, n_code: int) -> tuple[np.ndarray, np.ndarray]:
        tasks = np.repeat([0, 1], [n_qa, n_code])
        return rng.normal(2.0 * tasks), tasks

    first, second = drawn(80, 20), drawn(20, 80)
    assert ks_2samp(first[0], second[0]).pvalue < 1e-6
    mixed = drift(benign(*first), benign(*second), seed=0)
    assert mixed is not None
    assert mixed["p_value"] > 0.05
    few, other = rng.normal(size=12), rng.normal(size=12)
    groups = np.repeat(np.arange(12), 30)
    copied = drift(
        benign(np.repeat(few, 30), groups=groups), benign(np.repeat(other, 30), groups=groups), seed=0
    )
    once = drift(benign(few), benign(other), seed=0)
    assert copied == once


def test_nothing_shared_is_nothing_said() -> None:
    """Two datasets without a common cell would be compared as if they had one."""
    one, other = benign(np.ones(5)), benign(np.ones(5), tasks=np.ones(5, dtype=np.int64))
    assert drift(one, other, seed=0) is None
    assert drift(one, benign(np.full(5, np.nan)), seed=0) is None


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
