import pytest
from fake_outcomes import outcomes, run

from monitorbench.config.base import UserError
from monitorbench.intervention.statistics.effect import matched


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
