"""Miss rates at one false alarm rate, two monitors: against scikit-learn's curve and counted-out draws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_curve

from monitorbench.metrics.bootstrap import draws
from monitorbench.metrics.low_far import paired_low_far_difference, weighted_miss_rate_at_far


def by_scikit_learn(scores: np.ndarray, flags: np.ndarray, alpha: float) -> float:
    alarms, caught, _ = roc_curve(flags, scores, drop_intermediate=False)
    return float(1 - caught[alarms <= alpha].max())


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
        assert found == pytest.approx(by_scikit_learn(some, of, alpha))


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
    assert found.first == pytest.approx(by_scikit_learn(base, flags, 0.05))
    assert found.second == pytest.approx(by_scikit_learn(tuned, flags, 0.05))
    assert found.difference == pytest.approx(found.second - found.first)
    values = []
    for batch in draws(60, 300, 4, per_draw=480):
        for weights in batch[:, groups]:
            of = np.repeat(flags, weights)
            values.append(
                by_scikit_learn(np.repeat(tuned, weights), of, 0.05)
                - by_scikit_learn(np.repeat(base, weights), of, 0.05)
            )
    assert found.interval is not None
    assert list(found.interval) == pytest.approx(list(np.quantile(values, [0.025, 0.975])))
    tail = min(np.count_nonzero(np.array(values) <= 0), np.count_nonzero(np.array(values) >= 0))
    assert found.p_value == pytest.approx(min(1, 2 * (tail + 1) / 301))


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
    assert found.second == pytest.approx(by_scikit_learn(tuned[3:], flags[3:], 0.05))
    nothing = paired_low_far_difference(base, tuned, np.ones(120, bool), groups, 0.05, resamples=100, seed=0)
    assert nothing[:5] == (None, None, None, None, None)
    with pytest.raises(ValueError, match="alpha"):
        paired_low_far_difference(base, tuned, flags, groups, 1.5, resamples=100, seed=0)
