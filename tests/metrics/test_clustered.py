"""Shares of grouped samples: Wilson where nothing is grouped, and never certain where it is.

Paired changes of rates and costs: Bonett & Price's interval, and what it covers.
"""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from statsmodels.stats.proportion import proportion_confint

from monitorbench.metrics.clustered import AnswerChanges as Changes
from monitorbench.metrics.clustered import agreeing, change_interval, share_interval
from monitorbench.metrics.rates import Interval

ROWS = st.lists(st.tuples(st.booleans(), st.integers(0, 8)), min_size=1, max_size=40)


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_with_one_sample_a_group_it_is_wilsons(hits: list[bool]):
    """Numbers of data that were never grouped must not move."""
    found = share_interval(np.array(hits), np.arange(len(hits)))
    low, high = proportion_confint(sum(hits), len(hits), method="wilson")
    assert found == pytest.approx((low, high), abs=1e-12)


@given(ROWS)
def test_it_holds_its_share_and_is_no_narrower_than_wilsons_of_all(rows: list[tuple[bool, int]]):
    """Property: within [0, 1], around the share, and never of more samples than there are."""
    hits, groups = (np.array(column) for column in zip(*rows, strict=True))
    found = share_interval(hits, groups)
    assert found is not None
    assert 0 <= found.low <= np.mean(hits) + 1e-12
    assert np.mean(hits) - 1e-12 <= found.high <= 1
    low, high = proportion_confint(hits.sum(), len(hits), method="wilson")
    assert found.high - found.low >= high - low - 1e-9


@given(ROWS, st.integers(2, 4))
def test_copies_are_no_evidence(rows: list[tuple[bool, int]], times: int):
    """Each sample k times over in its group is the same knowledge."""
    hits, groups = (np.array(column) for column in zip(*rows, strict=True))
    once, copied = share_interval(hits, groups), share_interval(np.tile(hits, times), np.tile(groups, times))
    assert once is not None
    assert copied is not None
    if len(set(groups.tolist())) < len(groups):
        assert (
            copied == pytest.approx(once, abs=0.02) or copied.high - copied.low <= once.high - once.low + 1e-9
        )


def test_groups_that_go_together_count_as_one_sample_each():
    """Four paraphrases with one answer each time are one question, not four."""
    hits = np.repeat(np.arange(50) < 10, 4)
    found = share_interval(hits, np.repeat(np.arange(50), 4))
    low, high = proportion_confint(10, 50, method="wilson")
    assert found == pytest.approx((low, high), abs=1e-9)


def test_no_error_among_few_questions_is_not_certain():
    """Ten questions, forty samples, none wrong: what ten questions show, not forty."""
    found = share_interval(np.zeros(40, dtype=bool), np.repeat(np.arange(10), 4))
    assert found == pytest.approx(proportion_confint(0, 10, method="wilson"))
    assert share_interval(np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64)) is None


@pytest.mark.parametrize("sizes", [[60, *[1] * 60], [20] * 3 + [1] * 40, [32] * 2 + [8] * 6 + [2] * 20])
def test_it_covers_the_share_where_groups_differ(sizes: list[int]):
    """A group that holds half of the samples is not one of sixty: .65 to .87 of intervals held the truth."""
    rng, groups, covered = np.random.default_rng(0), np.repeat(np.arange(len(sizes)), sizes), 0
    for _ in range(400):
        of_group = np.sqrt(0.7) * rng.normal(size=len(sizes))[groups]
        found = share_interval(of_group + np.sqrt(0.3) * rng.normal(size=len(groups)) < norm.ppf(0.2), groups)
        assert found is not None
        covered += found.low <= 0.2 <= found.high
    assert covered >= 0.93 * 400


@given(better=st.integers(0, 9), worse=st.integers(0, 9), same=st.integers(1, 30))
def test_with_one_sample_a_group_it_is_bonett_and_prices_interval(better: int, worse: int, same: int):
    """The interval would be of another method than the page says."""
    n = better + worse + same
    if n < 2:
        return
    changes = np.array([1] * worse + [-1] * better + [0] * same)
    p_12, p_21 = (worse + 1) / (n + 2), (better + 1) / (n + 2)
    reach = norm.ppf(0.975) * sqrt((p_12 + p_21 - (p_12 - p_21) ** 2) / (n + 2))
    found = change_interval([Changes(changes, np.arange(n))])
    assert found is not None
    assert found.low == pytest.approx(max(-1, p_12 - p_21 - reach))
    assert found.high == pytest.approx(min(1, p_12 - p_21 + reach))
    assert found.high > 0 > found.low or better != worse


def test_it_covers_the_truth_and_groups_widen_it():
    """A monitor would be called robust by an interval that is too narrow."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(1000):
        changes = rng.choice([-1, 0, 1], p=[0.02, 0.88, 0.10], size=40)
        found = change_interval([Changes(changes, np.arange(40))])
        assert found is not None
        covered += found.low <= 0.08 <= found.high
    assert covered >= 930
    alike = np.repeat(rng.choice([0, 1], size=20), 4)
    single = change_interval([Changes(alike, np.arange(80))])
    grouped = change_interval([Changes(alike, np.repeat(np.arange(20), 4))])
    assert single is not None
    assert grouped is not None
    assert grouped.high - grouped.low > 1.5 * (single.high - single.low)
    assert change_interval([Changes(alike, np.zeros(80, dtype=np.int64))]) is None


@pytest.mark.parametrize("sizes", [[1] * 40, [4] * 20, [60, *[1] * 60], [32, 32, *[8] * 6, *[2] * 20]])
def test_a_paired_cost_covers_its_truth_however_groups_differ(sizes: list[int]):
    """Percentiles of a bootstrap held a paired cost in 76 % of data sets, and had no width in 23 %."""
    rng = np.random.default_rng(0)
    groups, covered = np.repeat(np.arange(len(sizes)), sizes), []
    rates, weights = ((0.1, 0.2), (0.05, 0.05)), (1.0, 0.99)
    truth = sum(weight * (b - a) for weight, (a, b) in zip(weights, rates, strict=True))
    for _ in range(300):
        of_group = rng.normal(size=len(sizes))[groups] * sqrt(0.5)
        parts = []
        for weight, both in zip(weights, rates, strict=True):
            a, b = (of_group + sqrt(0.5) * rng.normal(size=len(groups)) < norm.ppf(rate) for rate in both)
            parts.append(Changes(b.astype(int) - a, groups, weight))
        found = change_interval(parts)
        assert found is not None
        assert found.high > found.low
        covered.append(found.low <= truth <= found.high)
    assert np.mean(covered) >= 0.93


def test_answers_that_never_changed_have_a_width_in_both_parts():
    """Two monitors that agree on forty questions are not known to agree on all."""
    none = Changes(np.zeros(40, dtype=int), np.arange(40), 2.0)
    found = change_interval([none, none._replace(weight=1.0)])
    assert found is not None
    assert found == pytest.approx((-found.high, found.high))
    assert found.high > change_interval([none]).high > 0.1  # type: ignore[union-attr]
    assert change_interval([none, Changes(np.zeros(0, int), np.zeros(0, int))]) is None, "a label is missing"


def test_an_interval_is_brought_to_its_test():
    """0 is inside where it is not rejected; where it is, what is left is of the side that was seen."""
    assert agreeing(Interval(0.01, 0.2), 0.1, 0.06) == (0, 0.2)
    assert agreeing(Interval(-0.01, 0.2), 0.1, 0.04) == pytest.approx((1e-9, 0.2))
    assert agreeing(Interval(-0.2, 0.01), -0.1, 0.04) == pytest.approx((-0.2, -1e-9))
    assert agreeing(Interval(-0.2, -0.01), -0.1, 0.04) == (-0.2, -0.01)
    assert agreeing(Interval(0.01, 0.2), 0.1, 0.04, confidence=0.99) == (0, 0.2)
