import numpy as np
import pytest
from fake_outcomes import counted, outcomes
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.pilot import PilotStatistics
from monitorbench.intervention.statistics.analysis import analyse
from monitorbench.intervention.statistics.decision_rule import Decision
from monitorbench.intervention.statistics.effect import check_identity, rates, undefined

COUNTS = st.lists(st.integers(0, 300), min_size=4, max_size=4).map(np.array)


def test_the_papers_printed_pilot() -> None:
    """2602.03338's own figures: p 89 %, r 12 %, d 56 %, p* 82 %, +4.7 points, McNemar one-sided .115."""
    found = analyse(outcomes(counted(A=118, B=9, C=16, D=7)), PilotStatistics())
    assert found.p == pytest.approx(134 / 150) == pytest.approx(0.893, abs=5e-4)
    assert found.r == pytest.approx(0.119, abs=5e-4)
    assert found.d == pytest.approx(0.5625)
    assert found.p_star == pytest.approx(0.825, abs=5e-4)
    assert found.delta_success == pytest.approx(0.0467, abs=5e-5)
    assert found.mcnemar_p / 2 == pytest.approx(0.115, abs=5e-4)
    # p > p*, and yet nothing is decided: both intervals span 0.
    assert found.p_minus_p_star > 0
    assert found.p_minus_p_star_ci[0] < 0 < found.p_minus_p_star_ci[1]
    assert found.delta_success_ci[0] < 0 < found.delta_success_ci[1]
    assert found.decision is Decision.INCONCLUSIVE


@given(COUNTS)
def test_p_above_p_star_is_a_gain_and_nothing_else(cells: np.ndarray) -> None:
    """The two statements of the rule must never disagree in a report."""
    found = rates(cells)
    if not np.isnan(found.p_star):
        assert np.sign(np.round(found.p_minus_p_star, 12)) == np.sign(found.delta_success)
        gain = found.p * found.r - (1 - found.p) * found.d
        assert found.delta_success == pytest.approx(gain, abs=1e-12)


@given(COUNTS)
def test_a_rate_without_denominator_is_undefined(cells: np.ndarray) -> None:
    """A baseline that never succeeds has no disruption rate; 0 would read as "it never disrupts"."""
    failed, succeeded = cells[0] + cells[2], cells[1] + cells[3]
    found = rates(cells)
    assert np.isnan(found.r) == (failed == 0)
    assert np.isnan(found.d) == (succeeded == 0)
    assert np.isnan(found.p) == np.isnan(found.delta_success) == (failed + succeeded == 0)
    assert np.isnan(found.p_star) == (failed == 0 or succeeded == 0 or cells[1] + cells[2] == 0)
    assert bool(undefined(cells)) == np.isnan(found.p_star)


def test_counts_and_rates_of_different_runs_are_caught() -> None:
    """The paper's raw counts disagree with its success table; here that is an error, not a footnote."""
    found = rates(np.array([10, 2, 4, 4]))
    check_identity(found, 0.3, 0.4)
    with pytest.raises(ValueError, match="by the counts"):
        check_identity(found, 0.3, 0.45)
