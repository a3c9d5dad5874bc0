"""Matched runs, and the rates of their 2×2."""

import numpy as np
import pytest
from fake_outcomes import counted, outcomes, run
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.base import UserError
from monitorbench.config.pilot import PilotStatistics
from monitorbench.intervention.statistics.analysis import analyse
from monitorbench.intervention.statistics.decision_rule import Decision
from monitorbench.intervention.statistics.effect import check_identity, matched, rates, undefined


def test_each_cell_is_where_the_paper_has_it() -> None:
    """Recoveries counted as disruptions would turn every decision round."""
    (one,) = matched(outcomes(["AB", "CD", "C"]))
    assert [pair.cell for pair in one.pairs] == list("ABCDC")
    table = one.by_task()
    assert table.tasks == ("t0000", "t0001", "t0002")
    assert table.cells.tolist() == [[1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 0]]
    assert table.changes.tolist() == [-1, 1, 1]


def test_only_the_same_agent_task_and_seed_make_a_pair() -> None:
    """Runs of other seeds or agents paired by their place in the file would be compared by chance."""
    found = matched(
        [
            run("t", 1, "rollback", True, "a"),
            run("t", 0, "none", False, "a"),
            run("t", 1, "none", False, "a"),
            run("u", 1, "rollback", True, "a"),
            run("t", 2, "rollback", True, "a"),
            run("t", 1, "append", True, "b"),
            run("t", 1, "none", True, "b"),
        ]
    )
    assert [(one.agent, one.condition) for one in found] == [("a", "rollback"), ("b", "append")]
    first, second = found
    assert [(pair.baseline.seed, pair.cell) for pair in first.pairs] == [(1, "C")]
    assert (first.unmatched_baseline, first.unmatched_treated) == (1, 2)
    assert (second.unmatched_baseline, second.unmatched_treated) == (0, 0)


def test_a_run_given_twice_is_refused() -> None:
    """Two files joined by mistake would count each task twice, and narrow every interval."""
    twice = [*outcomes(["C"]), run("t0000", 0, "rollback", False)]
    with pytest.raises(
        UserError, match=r"two runs of agent 'agent', task 't0000', seed 0, condition 'rollback'"
    ):
        matched(twice)


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ([run("t", 0, "none", True)], "no run with an intervention"),
        ([run("t", 0, "rollback", True)], "no run has a baseline run"),
        ([run("t", 0, "rollback", True), run("t", 1, "none", True)], "no run has a baseline run"),
        ([run("t", 0, "rollback", True), run("t", 0, "none", True, "other")], "no run has a baseline run"),
    ],
)
def test_nothing_to_compare(found: list, problem: str) -> None:
    """A pilot without pairs must say what is missing, not give a decision about nothing."""
    with pytest.raises(UserError, match=problem):
        matched(found)


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
