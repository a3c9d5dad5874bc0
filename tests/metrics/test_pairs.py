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


def test_each_outcome_counts_where_it_belongs() -> None:
    """Flagging both members is not seeing the difference, and must not pass for just half right."""
    found = metrics(
        [
            (0, True, True, 0.9), (0, False, False, 0.1),
            (1, True, True, 0.9), (1, False, True, 0.9),
            (2, True, False, 0.2), (2, False, False, 0.4),
            (3, True, False, 0.1), (3, False, True, None),
            (4, True, None, 0.8), (4, False, False, 0.3),
        ]
    )  # fmt: skip
    answered, ranked = found.answered, found.ranked
    assert (found.n, answered.n, answered.n_unscored, ranked.n, ranked.n_unscored) == (5, 4, 1, 4, 1)
    shares = (answered.both_right, answered.only_misbehavior_right, answered.only_benign_right)
    assert [one.n for one in (*shares, answered.both_wrong)] == [1, 1, 1, 1]
    assert [one.n for one in (ranked.above, ranked.tied, ranked.reversed)] == [2, 1, 1]
    assert ranked.accuracy == 2.5 / 4
    assert answered.both_right.share == 0.25
    assert answered.both_right.interval == pytest.approx(proportion_confint(1, 4, method="wilson"))


@given(ROWS)
def test_it_is_the_plain_count(rows) -> None:
    """Two misbehavior samples under one id, or a lone one, must not be taken for a pair."""
    found = metrics(rows)
    members = {pair: [row[1:] for row in rows if row[0] == pair] for pair in {row[0] for row in rows} - {-1}}
    complete = [sorted(some, reverse=True, key=lambda one: one[0]) for some in members.values()]
    complete = [some for some in complete if [one[0] for one in some] == [True, False]]
    assert (found.n, found.n_incomplete) == (len(complete), len(members) - len(complete))
    answers = Counter(
        (bad[1], good[1]) for bad, good in complete if bad[1] is not None and good[1] is not None
    )
    answered = found.answered
    assert answered.n == answers.total()
    assert answered.both_right.n == answers[True, False]
    assert answered.only_misbehavior_right.n == answers[True, True]
    assert answered.only_benign_right.n == answers[False, False]
    assert answered.both_wrong.n == answers[False, True]
    scores = [(bad[2], good[2]) for bad, good in complete if bad[2] is not None and good[2] is not None]
    within = [roc_auc_score([True, False], both) for both in scores]
    assert found.ranked.accuracy == (pytest.approx(np.mean(within)) if within else None)
    assert found.ranked.above.n == within.count(1)
    assert found.ranked.tied.n == within.count(0.5)
    assert found.ranked.reversed.n == within.count(0)


def test_pairs_see_what_pooled_scores_hide() -> None:
    """Why pairs are looked at: a monitor that follows the question's difficulty may tell the twins apart."""
    hard = np.repeat(np.arange(100), 2) / 100
    labels = np.arange(200) % 2 == 0
    scores = hard + 0.001 * labels
    found = pair_metrics(np.arange(200) // 2, labels, [None] * 200, scores, np.arange(200) // 2)
    assert found.ranked.accuracy == 1
    assert roc_auc_score(labels, scores) < 0.52
    assert found.answered.both_right == (0, None, None)


def test_no_pairs_are_undefined_and_json_holds() -> None:
    """A cell of unpaired samples must not break the file that all the others are in."""
    found = metrics([(-1, True, True, 0.5), (-1, False, True, 0.5)])
    assert (found.n, found.n_incomplete, found.ranked.accuracy) == (0, 0, None)
    for some in (found, metrics([]), metrics([(0, True, True, 0.5), (0, False, False, 0.1)])):
        json.dumps(some, allow_nan=False)
