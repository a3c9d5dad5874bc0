import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from monitorbench.metrics import bootstrap
from monitorbench.metrics.auroc import (
    auroc,
    auroc_interval,
    paired_auroc_difference,
    weighted_auroc,
)

SAMPLES = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.5, 0.9, 1.0]), st.booleans(), st.integers(0, 5)),
    min_size=2,
    max_size=40,
).filter(lambda rows: len({label for _, label, _ in rows}) == 2)
"""(score, is misbehavior, group) with many ties and both classes."""


def synthetic(n: int, skill: float, seed: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2 == 0
    return rng.normal(labels * skill), labels, [f"g{i // 2}" for i in range(n)]


@given(SAMPLES)
def test_auroc_is_sklearn(rows: list[tuple[float, bool, int]]) -> None:
    """The number that decides between monitors has to be the one everybody else computes, ties included."""
    scores, labels, _ = zip(*rows, strict=True)
    assert auroc(scores, labels) == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)


def test_auroc_on_continuous_scores_is_sklearn() -> None:
    """The same on a thousand distinct scores, where a rank off by one would show."""
    scores, labels, _ = synthetic(1001, 0.7, 3)
    assert auroc(scores, labels) == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)


@pytest.mark.parametrize("labels", [[], [True, True], [False, False]])
def test_auroc_of_one_class_is_none(labels: list[bool]) -> None:
    """A cell with one class must come out undefined, not as .5 or an exception in the middle of scoring."""
    scores = [0.5] * len(labels)
    assert auroc(scores, labels) is None
    assert auroc_interval(scores, labels, ["a"] * len(labels), resamples=100, seed=0) is None


def test_missing_scores_are_left_out() -> None:
    """A sample without a score counted as 0 would move AUROC towards whatever is unscored."""
    assert auroc([0.9, None, 0.1, None], [True, True, False, False]) == 1.0
    assert auroc([0.9, None], [True, False]) is None


def test_lengths_have_to_agree() -> None:
    """Scores paired with other samples' labels would be plausible nonsense."""
    with pytest.raises(ValueError, match="expected 2 scores"):
        auroc([0.1], [True, False])


@given(SAMPLES, st.integers(0, 2**31 - 1))
def test_weights_equal_resampling(rows: list[tuple[float, bool, int]], seed: int) -> None:
    """The fast bootstrap has to be the plain one: repeat each drawn group's samples, take sklearn's AUROC."""
    scores, labels, groups = (np.array(column) for column in zip(*rows, strict=True))
    index = bootstrap.group_index([str(group) for group in groups])
    batches = bootstrap.draws(index.max() + 1, 5, seed, per_draw=len(index))
    weights = np.concatenate([batch[:, index] for batch in batches])
    for draw, value in zip(weights, weighted_auroc(scores, labels, weights), strict=True):
        drawn_labels = np.repeat(labels, draw)
        if len(set(drawn_labels)) == 2:
            assert value == pytest.approx(roc_auc_score(drawn_labels, np.repeat(scores, draw)), abs=1e-12)
        else:
            assert np.isnan(value)


def test_draws_take_whole_groups_with_replacement() -> None:
    """Each draw has as many groups as there are; none may be favoured, however the draws are batched."""
    batches = list(bootstrap.draws(7, 5000, 0, per_draw=2**20))
    assert len(batches) > 1
    drawn = np.concatenate(batches)
    assert drawn.shape == (5000, 7)
    assert set(drawn.sum(axis=1)) == {7}
    assert drawn.mean(axis=0) == pytest.approx(np.ones(7), abs=0.06)


def test_interval_covers_the_truth() -> None:
    """A 95 % interval that covers far less often would announce differences that aren't there."""
    truth = 0.6914624612740131  # Φ(.5): scores N(0, 1) against N(1/√2, 1)
    covered = 0
    for seed in range(200):
        scores, labels, groups = synthetic(120, 2**-0.5, seed)
        found = auroc_interval(scores, labels, groups, resamples=300, seed=seed)
        assert found is not None
        covered += found.low <= truth <= found.high
    assert covered >= 180


def test_interval_widens_with_clusters() -> None:
    """Copies of a question are no new evidence: they must not narrow the interval."""
    scores, labels, groups = synthetic(60, 0.7, 1)
    once = auroc_interval(scores, labels, groups, resamples=2000, seed=0)
    copied = auroc_interval(np.tile(scores, 5), np.tile(labels, 5), groups * 5, resamples=2000, seed=0)
    assert once == pytest.approx(copied)


def test_same_seed_same_interval_in_any_order() -> None:
    """A report scored twice, or from a log in another order, has to show the same figures."""
    scores, labels, groups = synthetic(80, 0.7, 2)
    turned = np.random.default_rng(0).permutation(80)
    first = auroc_interval(scores, labels, groups, resamples=500, seed=7)
    second = auroc_interval(
        scores[turned], labels[turned], [groups[i] for i in turned], resamples=500, seed=7
    )
    assert first == second
    assert first != auroc_interval(scores, labels, groups, resamples=500, seed=8)


def test_one_group_has_no_interval() -> None:
    """One question can't show any spread: an interval of width 0 would look like certainty."""
    assert auroc_interval([0.9, 0.1], [True, False], ["g", "g"], resamples=100, seed=0) is None


def test_difference_of_a_monitor_from_itself_is_exactly_zero() -> None:
    """Both monitors are resampled on the same draw; else noise would pass for a change."""
    scores, labels, groups = synthetic(100, 0.7, 4)
    found = paired_auroc_difference(scores, scores * 3 - 1, labels, groups, resamples=300, seed=0)
    assert (found.difference, found.interval) == (0.0, (0.0, 0.0))


def test_difference_finds_a_planted_improvement_and_only_scored_pairs_count() -> None:
    """A real improvement must come out with its sign, over the samples that both scored."""
    base, labels, groups = synthetic(300, 0.2, 5)
    tuned, _, _ = synthetic(300, 1.5, 6)
    missing = [None if i % 10 == 0 else float(score) for i, score in enumerate(base)]
    found = paired_auroc_difference(missing, tuned, labels, groups, resamples=500, seed=0)
    kept = [i for i in range(300) if i % 10]
    assert found.n == 270
    assert found.base == pytest.approx(roc_auc_score(labels[kept], base[kept]))
    assert found.tuned == pytest.approx(roc_auc_score(labels[kept], tuned[kept]))
    assert found.interval is not None
    assert 0 < found.interval.low < found.tuned - found.base < found.interval.high
