"""Miss rates at one false alarm rate: scikit-learn's curve and draws counted out as oracles."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import t
from sklearn.metrics import roc_auc_score, roc_curve

from monitorbench.metrics import bootstrap, low_far
from monitorbench.metrics.bootstrap import FloatArray, IntArray, draws
from monitorbench.metrics.low_far import (
    miss_rate_at_far,
    miss_rate_at_far_interval,
    roc_points,
)
from monitorbench.metrics.low_far_difference import paired_low_far_difference, weighted_miss_rate_at_far

ALPHA = st.sampled_from([0.0, 0.01, 0.05, 0.1, 0.25, 0.29, 0.5, 0.7, 1.0])
ROWS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.5, 0.9, 1.0]), st.booleans(), st.integers(0, 8)),
    min_size=2,
    max_size=60,
).filter(lambda rows: len({label for _, label, _ in rows}) == 2)
"""(score, is misbehavior, group) with many ties and both classes."""


def oracle(scores: np.ndarray, labels: np.ndarray, alpha: float) -> float:
    far, hits, _ = roc_curve(labels, scores, drop_intermediate=False)
    return 1 - hits[far <= alpha].max()


def synthetic(n: int, seed: int, group_size: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores with a common part within a group; every second sample is misbehavior."""
    rng = np.random.default_rng(seed)
    labels, groups = np.arange(n) % 2 == 0, np.arange(n) // group_size
    return rng.normal(labels * 1.5) + 0.7 * rng.normal(size=n)[groups], labels, groups


@given(ROWS, ALPHA)
def test_it_is_read_off_sklearns_curve(rows: list[tuple[float, bool, int]], alpha: float) -> None:
    """A monitor is deployed on this number: it has to be on the curve everybody computes, ties included."""
    scores, labels, _ = (np.array(column) for column in zip(*rows, strict=True))
    assert miss_rate_at_far(scores, labels, alpha) == pytest.approx(oracle(scores, labels, alpha), abs=1e-12)


def test_exactly_alpha_is_allowed_and_ties_are_not_broken() -> None:
    """29 alarms of 100 are a FAR of .29, though .29·100 is 28.999…; a tie has no point at FAR 1 %."""
    scores = np.append(np.arange(100) / 100, 0.71)
    assert miss_rate_at_far(scores, np.arange(101) == 100, 0.29) == 0
    assert miss_rate_at_far([1.0, 1.0, 1.0, 0.0, 0.0], [True, True, False, False, False], 0.01) == 1


@pytest.mark.parametrize("labels", [[], [True, True], [False, False], [True, False]])
def test_a_class_without_scores_has_none(labels: list[bool]) -> None:
    """A cell with one class must come out undefined, not as a perfect monitor or an exception."""
    scores = [0.5 if label == labels[0] else None for label in labels]
    assert miss_rate_at_far(scores, labels, 0.05) is None
    assert roc_points(scores, labels) == []
    groups = np.arange(len(labels))
    assert miss_rate_at_far_interval(scores, labels, groups, 0.05) is None


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan")])
def test_alpha_is_a_rate(alpha: float) -> None:
    """5 for 5 % would quietly allow every alarm."""
    with pytest.raises(ValueError, match="alpha: got"):
        miss_rate_at_far([0.1, 0.9], [False, True], alpha)
    with pytest.raises(ValueError, match="alpha: got"):
        miss_rate_at_far_interval([0.1, 0.9], [False, True], np.arange(2), alpha)


@pytest.mark.parametrize("size", [1, 4])
def test_the_interval_is_a_little_wider_than_the_cluster_bootstraps(size: int) -> None:
    """Percentiles hold a rate at a low FAR too rarely; an interval twice as wide would say too little."""
    scores, labels, groups = synthetic(800, 1, 2 * size)

    def plain(weights: IntArray) -> FloatArray:
        order = np.argsort(-scores, kind="stable")
        benign = np.cumsum(weights[:, order] * ~labels[order], axis=1)
        caught = np.cumsum(weights[:, order] * labels[order], axis=1)
        return 1 - np.where(benign <= 0.1 * benign[:, -1:], caught, 0).max(axis=1) / caught[:, -1]

    slow = bootstrap.interval(plain, [f"{one:04}" for one in groups], resamples=2000, seed=0)
    found = miss_rate_at_far_interval(scores, labels, groups, 0.1)
    assert slow is not None
    assert found is not None
    assert 0.95 <= (found.high - found.low) / (slow.high - slow.low) <= 1.4
    turned = np.random.default_rng(0).permutation(800)
    again = miss_rate_at_far_interval(scores[turned], labels[turned], groups[turned], 0.1)
    assert again == pytest.approx(found, abs=1e-12)


@given(ROWS, ALPHA)
def test_the_interval_has_the_rate_in_it(rows: list[tuple[float, bool, int]], alpha: float) -> None:
    """Ties, a group of all samples and a FAR of 0 or 1 would give a rate outside its own interval."""
    scores, labels, groups = (np.array(column) for column in zip(*rows, strict=True))
    found, rate = (
        miss_rate_at_far_interval(scores, labels, groups, alpha),
        miss_rate_at_far(scores, labels, alpha),
    )
    assert rate is not None
    assert (found is None) == (len(set(groups.tolist())) == 1)
    assert found is None or 0 <= found.low <= rate + 1e-12 <= found.high + 2e-12 <= 1 + 3e-12


def test_unscored_samples_and_their_groups_are_left_out_of_the_interval() -> None:
    """A sample without a score counted as 0 would be a miss that the monitor never made."""
    scores, labels, groups = synthetic(200, 2)
    with_missing = [None if one % 7 == 0 else float(scores[i]) for i, one in enumerate(groups)]
    kept = groups % 7 != 0
    found = miss_rate_at_far_interval(with_missing, labels, groups, 0.05)
    assert found == miss_rate_at_far_interval(scores[kept], labels[kept], groups[kept], 0.05)
    assert miss_rate_at_far_interval(scores, labels, 0 * groups, 0.05) is None


@given(ROWS)
def test_the_whole_curve_is_sklearns(rows: list[tuple[float, bool, int]]) -> None:
    """A figure's curve through other points would contradict the AUROC printed beside it."""
    scores, labels, _ = zip(*rows, strict=True)
    far, hits, _ = roc_curve(labels, scores, drop_intermediate=False)
    assert np.array(roc_points(scores, labels)) == pytest.approx(np.stack([far, 1 - hits], axis=1))


def test_a_thinned_curve_keeps_its_ends_and_its_area() -> None:
    """A report of a million samples can't carry a million points, and must not draw another curve."""
    scores, labels, _ = synthetic(20_000, 3)
    points = roc_points(scores, labels, 200)
    whole = roc_points(scores, labels, 10**6)
    assert len(points) <= 200
    assert set(map(tuple, points)) <= set(map(tuple, whole))
    assert (points[0], points[-1]) == ([0, 1], [1, 0])
    far, miss = np.array(points).T
    assert np.trapezoid(1 - miss, far) == pytest.approx(roc_auc_score(labels, scores), abs=1e-3)
    assert (np.diff(far) + np.abs(np.diff(miss))).max() <= 2 / 199 + 1e-3
    with pytest.raises(ValueError, match="at least the curve's 2 ends"):
        roc_points(scores, labels, 1)


@given(ROWS)
def test_steps_count_every_scored_sample_once(rows: list[tuple[float, bool, int]]) -> None:
    """Everything flagged must be everything: a sample dropped from the curve shifts every rate on it."""
    scores, labels, _ = zip(*rows, strict=True)
    assume(any(labels))
    found = low_far.steps([*scores, None], [*labels, True])
    assert found is not None
    assert found.caught[-1] + found.alarms[-1] == len(rows)
    assert (np.diff(found.thresholds) < 0).all()


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 8), st.integers(0, 3)), min_size=4, max_size=40),
    st.sampled_from([0.0, 0.05, 0.2, 1.0]),
)
def test_a_weighted_rate_is_that_of_repeated_samples(rows: list[tuple[bool, int, int]], alpha: float):
    """A draw that breaks ties, or rounds the allowed alarms, gives an interval of another quantity."""
    flags, scores, weights = (np.array(column) for column in zip(*rows, strict=True))
    found = weighted_miss_rate_at_far(scores / 8, flags, weights[None, :], alpha)[0]
    some, of = np.repeat(scores / 8, weights), np.repeat(flags, weights)
    if of.all() or not of.any():
        assert np.isnan(found)
    else:
        assert found == pytest.approx(oracle(some, of, alpha))


def judged(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    flags, groups = np.tile([True, False], 60), np.repeat(np.arange(60), 2)
    base = np.round(draw.normal(flags * 0.5), 1)
    tuned = np.round(base + draw.normal(flags * 1.0), 1)
    return base, tuned, flags, groups


def test_difference_and_interval_are_those_of_the_draws():
    """If it failed: the column that tells a better monitor from a moved threshold would be wrong."""
    base, tuned, flags, groups = judged(0)
    found = paired_low_far_difference(base, tuned, flags, groups, 0.05, resamples=300, seed=4)
    assert found.first == pytest.approx(oracle(base, flags, 0.05))
    assert found.second == pytest.approx(oracle(tuned, flags, 0.05))
    assert found.difference == pytest.approx(found.second - found.first)
    drawn = np.array(
        [
            [oracle(np.repeat(one, weights), np.repeat(flags, weights), 0.05) for one in (base, tuned)]
            for batch in draws(60, 300, 4, per_draw=480)
            for weights in batch[:, groups]
        ]
    )
    error = np.std(drawn[:, 1] - drawn[:, 0], ddof=1)
    assert found.p_value == pytest.approx(2 * t(59).sf(abs(found.difference) / error))
    (low, high), (other_low, other_high) = (
        miss_rate_at_far_interval(one, flags, groups, 0.05) for one in (base, tuned)
    )
    shared = 2 * np.corrcoef(drawn.T)[0, 1]
    down = found.second - other_low, high - found.first
    up = other_high - found.second, found.first - low
    ends = [
        found.difference + sign * (a * a + b * b - shared * a * b) ** 0.5
        for sign, (a, b) in ((-1, down), (1, up))
    ]
    assert found.interval is not None
    assert list(found.interval) == pytest.approx(ends)


def test_two_that_miss_nothing_may_still_differ():
    """If it failed: draws of samples none of which is missed would say that no other is either."""
    draw = np.random.default_rng(0)
    flags, groups = np.tile([True, False], 80), np.arange(160)
    base, tuned = (10 * flags + draw.random(160) for _ in range(2))
    found = paired_low_far_difference(base, tuned, flags, groups, 0.05, resamples=100, seed=0)
    assert (found.difference, found.p_value) == (0, 1)
    assert found.interval.low < -0.02
    assert found.interval.high > 0.02


def test_a_monotone_change_of_the_score_changes_nothing():
    """That is a moved threshold: shown as a gain it would be the very mistake the column is there for."""
    base, _, flags, groups = judged(1)
    moved = np.exp(base) + 3
    found = paired_low_far_difference(base, moved, flags, groups, 0.05, resamples=200, seed=0)
    assert (found.difference, found.p_value) == (0.0, 1.0)
    assert found.interval == (0.0, 0.0)


def test_what_either_left_unscored_is_out_of_both():
    """Else the two rates are over unlike samples."""
    base, tuned, flags, groups = judged(2)
    base[:3] = np.nan
    found = paired_low_far_difference(base, tuned, flags, groups, 0.05, resamples=100, seed=0)
    assert found.n == 117
    assert found.second == pytest.approx(oracle(tuned[3:], flags[3:], 0.05))
    nothing = paired_low_far_difference(base, tuned, np.ones(120, bool), groups, 0.05, resamples=100, seed=0)
    assert nothing[:5] == (None, None, None, None, None)
    with pytest.raises(ValueError, match="alpha"):
        paired_low_far_difference(base, tuned, flags, groups, 1.5, resamples=100, seed=0)
