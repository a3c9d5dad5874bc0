"""The variance of an AUROC over groups: against its definition, against DeLong, against the bootstrap."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from monitorbench.metrics import auroc as curves
from monitorbench.metrics import bootstrap
from monitorbench.metrics.auroc import (
    auroc_interval,
    clustered_variance,
    components,
    paired_auroc_difference,
    weighted_auroc,
)

ROWS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), st.booleans(), st.integers(0, 6)),
    min_size=2,
    max_size=40,
).filter(lambda rows: len({label for _, label, _ in rows}) == 2)


def synthetic(n_groups: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One to four samples a group, whose scores hang together, with ties."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), rng.integers(1, 5, size=n_groups))
    labels = rng.random(len(groups)) < 0.5
    scores = rng.normal(labels * 0.8) + rng.normal(size=n_groups)[groups]
    return np.round(scores, 1), labels, groups


def naive(scores: np.ndarray, labels: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, float | None]:
    """Obuchowski 1997, pair by pair: psi is 1, 1/2 or 0."""
    bad, good = scores[labels], scores[~labels]
    psi = (bad[:, None] > good) + 0.5 * (bad[:, None] == good)
    v_10, v_01 = psi.mean(axis=1), psi.mean(axis=0)
    theta = psi.mean()
    m, n = len(bad), len(good)
    found = np.empty(len(scores))
    found[labels], found[~labels] = v_10, v_01
    names = sorted(set(groups.tolist()))
    x = {g: sum(v_10[groups[labels] == g] - theta) for g in names}
    y = {g: sum(v_01[groups[~labels] == g] - theta) for g in names}
    i_10, i_01 = len(set(groups[labels].tolist())), len(set(groups[~labels].tolist()))
    if min(i_10, i_01) < 2:
        return found, None
    s_10 = i_10 / ((i_10 - 1) * m) * sum(value**2 for value in x.values())
    s_01 = i_01 / ((i_01 - 1) * n) * sum(value**2 for value in y.values())
    s_11 = len(names) / (len(names) - 1) * sum(x[g] * y[g] for g in names)
    return found, s_10 / m + s_01 / n + 2 * s_11 / (m * n)


@given(ROWS)
def test_it_is_obuchowskis_formula_pair_by_pair(rows: list[tuple[float, bool, int]]) -> None:
    """A slip in the sorted sums would give intervals of a plausible but wrong width."""
    scores, labels, groups = (np.array(column) for column in zip(*rows, strict=True))
    parts, variance = naive(scores, labels, groups)
    assert components(scores, labels) == pytest.approx(parts, abs=1e-12)
    assert parts[labels].mean() == pytest.approx(roc_auc_score(labels, scores))
    found = clustered_variance(components(scores, labels), labels, groups)
    assert found == (None if variance is None else pytest.approx(variance, abs=1e-12))


def test_one_sample_a_group_is_delong() -> None:
    """The published special case: sample variances of the components over each class's size."""
    scores, labels, _ = synthetic(400, 0)
    parts = components(scores, labels)
    delong = parts[labels].var(ddof=1) / labels.sum() + parts[~labels].var(ddof=1) / (~labels).sum()
    assert clustered_variance(parts, labels, np.arange(len(labels))) == pytest.approx(delong, rel=1e-12)


def test_samples_that_share_a_question_widen_it() -> None:
    """Copies are no new evidence: an interval that took them for it would be half as wide."""
    scores, labels, _ = synthetic(300, 1)
    alone = clustered_variance(components(scores, labels), labels, np.arange(len(labels)))
    copied = [np.tile(column, 4) for column in (scores, labels, np.arange(len(labels)))]
    again = clustered_variance(components(*copied[:2]), copied[1], copied[2])
    assert again == pytest.approx(alone)


def test_it_agrees_with_the_bootstrap_where_that_ends() -> None:
    """An interval must not jump when a benchmark grows by one question."""
    scores, labels, groups = synthetic(3000, 2)
    other = np.round(scores + np.random.default_rng(3).normal(size=len(scores)), 1)
    settings = {"resamples": 2000, "seed": 0}
    fast = auroc_interval(scores, labels, groups, **settings)
    change = paired_auroc_difference(scores, other, labels, groups, **settings)

    def one(weights: np.ndarray) -> np.ndarray:
        return weighted_auroc(scores, labels, weights)

    def difference(weights: np.ndarray) -> np.ndarray:
        return weighted_auroc(other, labels, weights) - weighted_auroc(scores, labels, weights)

    for found, statistic in ((fast, one), (change.interval, difference)):
        slow = bootstrap.interval(statistic, groups, **settings)
        assert found is not None
        assert slow is not None
        assert found != slow
        # The 2.5 % point of 2,000 draws has a standard error of 3 % of the interval's half width.
        assert found == pytest.approx(slow, abs=0.06 * (slow.high - slow.low))
    assert fast is not None
    half = (fast.high - fast.low) / 2
    variance = naive(scores, labels, groups)[1]
    assert half == pytest.approx(norm.ppf(0.975) * variance**0.5)


def test_which_of_the_two_is_taken_depends_on_the_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small benchmarks keep the exact bootstrap, however many samples a question has."""
    scores, labels, groups = synthetic(50, 4)
    drawn = auroc_interval(scores, labels, groups, resamples=200, seed=0)
    assert drawn == bootstrap.interval(
        lambda weights: weighted_auroc(scores, labels, weights), groups, resamples=200, seed=0
    )
    monkeypatch.setattr(curves, "MOST_DRAWN_GROUPS", 49)
    assert auroc_interval(scores, labels, groups, resamples=200, seed=0) != drawn
    perfect = auroc_interval(labels.astype(float), labels, groups, resamples=200, seed=0)
    assert perfect == (1.0, 1.0)
    assert auroc_interval(scores[labels], labels[labels], groups[labels], resamples=200, seed=0) is None
