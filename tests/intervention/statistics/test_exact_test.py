import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar

from monitorbench.intervention.statistics.exact_test import swap_test


@given(st.lists(st.integers(-3, 3), max_size=9))
@settings(max_examples=40)
def test_it_is_the_share_of_all_sign_flips(changes: list[int]) -> None:
    """This p guards the decision with few tasks: it has to be the enumeration it stands for."""
    signs = np.array(list(itertools.product((-1, 1), repeat=len(changes))), dtype=np.int64)
    expected = np.mean(np.abs(signs @ np.array(changes, dtype=np.int64)) >= abs(sum(changes)))
    assert swap_test(np.array(changes, dtype=np.int64)) == pytest.approx(expected, abs=1e-12)


@given(st.integers(0, 300), st.integers(0, 300))
def test_with_one_seed_it_is_mcnemars(recovered: int, disrupted: int) -> None:
    """With one seed a task the paper's own test has to come out."""
    changes = np.repeat([1, -1, 0], [recovered, disrupted, 5])
    theirs = statsmodels_mcnemar([[1, disrupted], [recovered, 1]], exact=True).pvalue
    assert swap_test(changes) == pytest.approx(theirs, rel=1e-9)


def test_seeds_of_a_task_are_one_piece_of_evidence() -> None:
    """Nine recovered runs on three tasks are three tasks: p is 1/4, not the 1/256 of nine coin tosses."""
    assert swap_test(np.array([3, 3, 3])) == pytest.approx(0.25)
    assert binomtest(9, 9).pvalue == pytest.approx(1 / 256)
    assert swap_test(np.zeros(4, dtype=np.int64)) == 1.0
