"""Partial AUROC against scikit-learn; its influence against the difference that each sample makes."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from monitorbench.metrics.low_far import (
    enough_for,
    partial_auroc,
    partial_auroc_with_interval,
    questions_needed,
)

ROWS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), st.booleans(), st.integers(0, 9)),
    min_size=2,
    max_size=60,
)
ALPHA = st.sampled_from([0.01, 0.05, 0.3, 0.5, 0.99])


@given(ROWS, ALPHA)
def test_it_is_scikit_learns(rows: list[tuple[float, bool, int]], alpha: float):
    """Ties and a cut within them included: another number under McClish's name would be compared with his."""
    scores, flags, groups = (np.array(column) for column in zip(*rows, strict=True))
    assume(flags.any() and not flags.all())
    found = partial_auroc(scores, flags, alpha)
    assert found == pytest.approx(roc_auc_score(flags, scores, max_fpr=alpha), abs=1e-9)
    _, bounds = partial_auroc_with_interval(scores, flags, groups, alpha)
    if len(set(groups.tolist())) > 1:
        assert bounds is not None
        assert bounds.low <= found + 1e-9
        assert found - 1e-9 <= bounds.high <= 1


def test_its_spread_is_that_of_many_samples():
    """The interval's width against the standard deviation of the number itself, over new samples."""
    draw = np.random.default_rng(0)
    flags, groups = np.tile([True, False], 400), np.repeat(np.arange(400), 2)
    values, widths = [], []
    for _ in range(150):
        scores = draw.normal(flags * 2.0) + draw.normal(0, 0.5, 400)[groups]
        values.append(partial_auroc(scores, flags, 0.05))
        _, bounds = partial_auroc_with_interval(scores, flags, groups, 0.05)
        assert bounds is not None
        widths.append(bounds.high - bounds.low)
    assert np.mean(widths) / 2 == pytest.approx(2.09 * np.std(values), rel=0.12)


def test_perfect_separation_is_not_certain():
    """Sixty perfect pairs leave room for one that is not."""
    flags, groups = np.tile([True, False], 60), np.repeat(np.arange(60), 2)
    _, bounds = partial_auroc_with_interval(flags * 1.0, flags, groups, 0.05)
    assert bounds is not None
    assert bounds.high == 1
    assert bounds.low < 0.97


@pytest.mark.parametrize("labels", [[], [True, True], [False]])
def test_one_class_has_none(labels: list[bool]):
    """Undefined, not .5."""
    assert partial_auroc([0.5] * len(labels), labels, 0.05) is None
    with pytest.raises(ValueError, match="alpha"):
        partial_auroc([0.1, 0.2], [True, False], 0.0)


def test_how_many_benign_questions_a_low_rate_takes():
    """As many as let one of them score above the threshold with a chance of 95 %."""
    assert (questions_needed(0.05), questions_needed(0.01)) == (59, 299)
    for alpha in (0.01, 0.05, 0.2):
        n = questions_needed(alpha)
        assert (1 - alpha) ** n <= 0.05 < (1 - alpha) ** (n - 1)
    scores, groups = np.linspace(0, 1, 118), np.repeat(np.arange(59), 2)
    benign = np.zeros(118, dtype=bool)
    assert enough_for(0.05, scores, benign, groups)
    assert not enough_for(0.05, scores, benign, groups // 2), "samples of a question are one question"
    assert not enough_for(0.05, np.where(groups == 0, np.nan, scores), benign, groups), "unscored"
