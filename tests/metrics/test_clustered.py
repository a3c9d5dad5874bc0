"""Shares of grouped samples: Wilson where nothing is grouped, and never certain where it is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from statsmodels.stats.proportion import proportion_confint

from monitorbench.metrics.clustered import share_interval

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
