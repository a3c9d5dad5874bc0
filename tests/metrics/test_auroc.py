"""AUROC and its variance over groups: scikit-learn, DeLong and the definition as oracles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from monitorbench.metrics import bootstrap
from monitorbench.metrics.auroc import (
    auroc,
    auroc_interval,
    clustered_variance,
    components,
    paired_auroc_difference,
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


@pytest.mark.parametrize("labels", [[], [True, True], [False, False]])
def test_auroc_of_one_class_is_none(labels: list[bool]) -> None:
    """A cell with one class must come out undefined, not as .5 or an exception in the middle of scoring."""
    scores = [0.5] * len(labels)
    assert auroc(scores, labels) is None
    assert auroc_interval(scores, labels, ["a"] * len(labels)) is None


def test_missing_scores_are_left_out() -> None:
    """A sample without a score counted as 0 would move AUROC towards whatever is unscored."""
    assert auroc([0.9, None, 0.1, None], [True, True, False, False]) == 1.0
    assert auroc([0.9, None], [True, False]) is None


def test_lengths_have_to_agree() -> None:
    """Scores paired with other samples' labels would be plausible nonsense."""
    with pytest.raises(ValueError, match="expected 2 scores"):
        auroc([0.1], [True, False])


def test_draws_take_whole_groups_with_replacement() -> None:
    """Each draw has as many groups as there are; none may be favoured, however the draws are batched."""
    batches = list(bootstrap.draws(7, 5000, 0, per_draw=2**20))
    assert len(batches) > 1
    drawn = np.concatenate(batches)
    assert drawn.shape == (5000, 7)
    assert set(drawn.sum(axis=1)) == {7}
    assert drawn.mean(axis=0) == pytest.approx(np.ones(7), abs=0.06)


ROWS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), st.booleans(), st.integers(0, 6)),
    min_size=2,
    max_size=40,
).filter(lambda rows: len({label for _, label, _ in rows}) == 2)


def test_interval_covers_the_truth() -> None:
    """A 95 % interval that covers far less often would announce differences that aren't there."""
    truth = 0.6914624612740131  # Φ(.5): scores N(0, 1) against N(1/√2, 1)
    covered = 0
    for seed in range(400):
        found = auroc_interval(*synthetic(120, 2**-0.5, seed))
        assert found is not None
        covered += found.low <= truth <= found.high
    assert covered >= 366


def test_interval_widens_with_clusters() -> None:
    """Copies of a question are no new evidence: they must not narrow the interval."""
    scores, labels, groups = synthetic(60, 0.7, 1)
    once = auroc_interval(scores, labels, groups)
    copied = auroc_interval(np.tile(scores, 5), np.tile(labels, 5), groups * 5)
    assert once == pytest.approx(copied)


def test_the_order_of_samples_says_nothing() -> None:
    """A report scored from a log in another order has to show the same figures."""
    scores, labels, groups = synthetic(80, 0.7, 2)
    turned = np.random.default_rng(0).permutation(80)
    first = auroc_interval(scores, labels, groups)
    assert first == pytest.approx(
        auroc_interval(scores[turned], labels[turned], [groups[i] for i in turned]), abs=1e-12
    )


def test_one_group_has_no_interval() -> None:
    """One question can't show any spread: an interval of width 0 would look like certainty."""
    assert auroc_interval([0.9, 0.1], [True, False], ["g", "g"]) is None


def perfect(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n pairs, each told apart."""
    return np.tile([0.9, 0.1], n), np.tile([True, False], n), np.repeat(np.arange(n), 2)


def test_a_few_perfect_pairs_are_not_certain() -> None:
    """[1, 1] from four questions promises what no four questions can show."""
    lows = []
    for n in (2, 4, 10, 50, 1000):
        found = auroc_interval(*perfect(n))
        assert found is not None
        assert found.high == 1
        lows.append(found.low)
        change = paired_auroc_difference(perfect(n)[0], *perfect(n))
        assert change.difference == 0
        assert change.interval is not None
        assert change.interval.high - change.interval.low == pytest.approx(2 * (1 - found.low), rel=1e-6)
    assert lows == sorted(lows)
    assert lows[0] < 0.5
    assert lows[1] < 0.65
    assert lows[-1] > 0.99


def test_no_inversion_of_independent_samples_is_as_the_exact_bound() -> None:
    """Beside the rule of three for groups: an AUROC that is missed in all n groups with a chance of 2.5 %."""
    for n in (10, 30, 100):
        found = auroc_interval(*perfect(n))
        assert found is not None
        assert found.low < 1 - 1 / n, "not narrower than one inverted group would be"


@given(ROWS, st.booleans())
def test_properties_of_the_interval(rows: list[tuple[float, bool, int]], turned: bool) -> None:
    """It holds its point within [0, 1], and is that of the labels swapped, or of any rising function."""
    scores, labels, groups = (np.array(column) for column in zip(*rows, strict=True))
    found = auroc_interval(scores, labels, groups)
    if found is None:
        return
    value = auroc(scores, labels)
    assert value is not None
    assert 0 <= found.low <= value + 1e-12
    assert value - 1e-12 <= found.high <= 1
    assert found.low < found.high
    assert auroc_interval(-scores, ~labels, groups) == pytest.approx(found, abs=1e-9)
    assert auroc_interval(np.exp(3 * scores), labels, groups) == pytest.approx(found, abs=1e-9)
    if turned:
        low, high = found
        assert auroc_interval(-scores, labels, groups) == pytest.approx((1 - high, 1 - low), abs=1e-9)


@given(ROWS)
def test_a_difference_turns_round_with_its_monitors(rows: list[tuple[float, bool, int]]) -> None:
    """Second minus first has to be minus first minus second, interval and all."""
    scores, labels, groups = (np.array(column) for column in zip(*rows, strict=True))
    other = np.round(np.sin(7 * scores + groups), 1)
    found = paired_auroc_difference(scores, other, labels, groups)
    back = paired_auroc_difference(other, scores, labels, groups)
    assert (found.interval is None) == (back.interval is None)
    if found.interval is None or back.interval is None or found.difference is None:
        return
    assert found.interval == pytest.approx((-back.interval.high, -back.interval.low), abs=1e-9)
    assert -1 <= found.interval.low <= found.difference <= found.interval.high <= 1


def test_difference_of_a_monitor_from_itself_is_near_zero() -> None:
    """What both do alike cancels out; else noise would pass for a change."""
    scores, labels, groups = synthetic(100, 0.7, 4)
    found = paired_auroc_difference(scores, scores * 3 - 1, labels, groups)
    alone = auroc_interval(scores, labels, groups)
    assert found.difference == 0
    assert found.interval is not None
    assert alone is not None
    assert found.interval.low < 0 < found.interval.high
    assert found.interval.high - found.interval.low < 0.4 * (alone.high - alone.low)


def test_difference_finds_a_planted_improvement_and_only_scored_pairs_count() -> None:
    """A real improvement must come out with its sign, over the samples that both scored."""
    base, labels, groups = synthetic(300, 0.2, 5)
    tuned, _, _ = synthetic(300, 1.5, 6)
    missing = [None if i % 10 == 0 else float(score) for i, score in enumerate(base)]
    found = paired_auroc_difference(missing, tuned, labels, groups)
    kept = [i for i in range(300) if i % 10]
    assert found.n == 270
    assert found.base == pytest.approx(roc_auc_score(labels[kept], base[kept]))
    assert found.tuned == pytest.approx(roc_auc_score(labels[kept], tuned[kept]))
    assert found.interval is not None
    assert 0 < found.interval.low < found.tuned - found.base < found.interval.high


def synthetic_groups(n_groups: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
    scores, labels, _ = synthetic_groups(400, 0)
    parts = components(scores, labels)
    delong = parts[labels].var(ddof=1) / labels.sum() + parts[~labels].var(ddof=1) / (~labels).sum()
    assert clustered_variance(parts, labels, np.arange(len(labels))) == pytest.approx(delong, rel=1e-12)


def test_samples_that_share_a_question_widen_it() -> None:
    """Copies are no new evidence: an interval that took them for it would be half as wide."""
    scores, labels, _ = synthetic_groups(300, 1)
    alone = clustered_variance(components(scores, labels), labels, np.arange(len(labels)))
    copied = [np.tile(column, 4) for column in (scores, labels, np.arange(len(labels)))]
    again = clustered_variance(components(*copied[:2]), copied[1], copied[2])
    assert again == pytest.approx(alone)


def test_it_agrees_with_the_bootstrap_of_many_groups() -> None:
    """With thousands of questions every sound method has one answer."""
    scores, labels, groups = synthetic_groups(3000, 2)
    other = np.round(scores + np.random.default_rng(3).normal(size=len(scores)), 1)
    settings = {"resamples": 500, "seed": 0}

    def one(weights: np.ndarray, of: np.ndarray = scores) -> np.ndarray:
        return np.array([roc_auc_score(labels, of, sample_weight=draw) for draw in weights])

    def difference(weights: np.ndarray) -> np.ndarray:
        return one(weights, other) - one(weights)

    found = auroc_interval(scores, labels, groups), paired_auroc_difference(scores, other, labels, groups)
    for fast, statistic in ((found[0], one), (found[1].interval, difference)):
        slow = bootstrap.interval(statistic, groups, **settings)
        assert fast is not None
        assert slow is not None
        # The 2.5 % point of 500 draws has a standard error of 6 % of the interval's half width.
        assert fast == pytest.approx(slow, abs=0.1 * (slow.high - slow.low))
