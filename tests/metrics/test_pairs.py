"""Pairs by what was answered and by which member scores higher, against counting them one by one."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from statsmodels.stats.proportion import proportion_confint

from monitorbench.metrics.pairs import pair_metrics

ANSWER = st.sampled_from([True, False, None])
SCORE = st.sampled_from([0.0, 0.5, 0.9, 1.0, None])
ROWS = st.lists(st.tuples(st.integers(-1, 6), st.booleans(), ANSWER, SCORE), max_size=30)


def metrics(rows):
    pairs, labels, answers, scores = zip(*rows, strict=True) if rows else ([], [], [], [])
    numbers = np.array(pairs, dtype=np.int64)
    return pair_metrics(numbers, labels, answers, scores, numbers)


@given(ROWS)
def test_it_is_the_plain_count(rows) -> None:
    """Two misbehavior samples under one id, or a lone one, must not be taken for a pair."""
    found = metrics(rows)
    members = {pair: [row[1:] for row in rows if row[0] == pair] for pair in {row[0] for row in rows} - {-1}}
    complete = [sorted(some, reverse=True, key=lambda one: one[0]) for some in members.values()]
    complete = [some for some in complete if [one[0] for one in some] == [True, False]]
    answers = Counter(
        (bad[1], good[1]) for bad, good in complete if bad[1] is not None and good[1] is not None
    )
    n, n_right = answers.total(), answers[True, False]
    assert (found.n, found.both_right) == (n, n_right / n if n else None)
    if n:
        assert found.interval == pytest.approx(proportion_confint(n_right, n, method="wilson"), abs=1e-12)
    scores = [(bad[2], good[2]) for bad, good in complete if bad[2] is not None and good[2] is not None]
    within = [roc_auc_score([True, False], both) for both in scores]
    shares = [within.count(value) / len(within) if within else None for value in (0.5, 0)]
    assert [found.tied, found.reversed] == shares
    json.dumps(found, allow_nan=False)


def test_pairs_see_what_pooled_scores_hide() -> None:
    """Why pairs are looked at: a monitor that follows the question's difficulty may tell the twins apart."""
    hard = np.repeat(np.arange(100), 2) / 100
    labels = np.arange(200) % 2 == 0
    scores = hard + 0.001 * labels
    found = pair_metrics(np.arange(200) // 2, labels, [None] * 200, scores, np.arange(200) // 2)
    assert found == (0, None, None, 0, 0)
    assert roc_auc_score(labels, scores) < 0.52
