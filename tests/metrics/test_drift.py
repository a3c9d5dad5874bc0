"""The check for drifted benign scores: scipy's distance, and all permutations of a small case counted out."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import ks_2samp

from monitorbench.metrics.columns import Columns
from monitorbench.metrics.drift import drift


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
