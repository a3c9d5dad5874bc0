"""Reflexion's ALFWorld trials: both arms after the same number of retries."""

import pytest

from monitorbench.config.base import UserError
from monitorbench.intervention.outcomes import BASELINE
from monitorbench.intervention.recorded import reflexion_alfworld

FIRST = {"env_0": True, "env_1": False, "env_2": False}


def _trial(solved):
    return [
        {"name": game, "memory": ["Look closer."], "is_success": success} for game, success in solved.items()
    ]


@pytest.fixture
def loaded(archived, recorded):
    """The outcomes after `trial` retries of arms that are given trial by trial."""

    def load(baseline, treated, trial):
        members = [
            (f"alfworld_runs/root/{arm}/env_results_trial_{number}.json", content)
            for arm, trials in (("base_run_logs", baseline), ("reflexion_run_logs", treated))
            for number, content in enumerate(
                each if isinstance(each, list | bytes) else _trial(each) for each in trials
            )
        ]
        members.append(("alfworld_runs/root/base_run_logs/world.log", b"no results"))
        return reflexion_alfworld.load(
            recorded("reflexion_alfworld", trial=trial), archived("reflexion", *members)
        )

    return load


def test_attempts_end_with_the_trial_that_solved_the_game(loaded):
    """An arm's cost would be counted on beyond its success, or its retries not be seen as interventions."""
    found = loaded(
        [FIRST, FIRST | {"env_1": True}, FIRST | {"env_1": True}],
        [FIRST, FIRST, FIRST | {"env_2": True}],
        trial=2,
    )
    rows = {(one.task, one.condition): (one.success, one.interventions, one.steps) for one in found}
    assert rows == {
        ("env_0", BASELINE): (True, 0, 1),
        ("env_0", "reflexion"): (True, 0, 1),
        ("env_1", BASELINE): (True, 0, 2),
        ("env_1", "reflexion"): (False, 2, 3),
        ("env_2", BASELINE): (False, 0, 3),
        ("env_2", "reflexion"): (True, 2, 3),
    }


def test_arms_are_compared_after_the_same_number_of_retries(loaded):
    """More retries in one arm would pass for the effect of reflections."""
    treated = [FIRST, FIRST, FIRST | {"env_1": True}]
    after_one = loaded([FIRST, FIRST], treated, trial=1)
    assert not any(one.success for one in after_one if one.task == "env_1")
    with pytest.raises(UserError, match=r"base_run_logs has no trial 2; set recorded\.trial to at most 1"):
        loaded([FIRST, FIRST], treated, trial=2)


@pytest.mark.parametrize(
    ("second", "what"),
    [
        (FIRST | {"env_0": False}, "env_0 was solved before"),
        (FIRST | {"env_9": True}, "env_9 is there twice, or new"),
        ({"env_0": True}, "holds 1 of 3 games"),
        (_trial(FIRST) + _trial({"env_1": True}), "env_1 is there twice"),
        (FIRST | {"env_1": "no"}, "neither true nor false"),
        (b"{}", "no JSON array"),
        (b"[{", "no JSON"),
    ],
)
def test_trials_that_do_not_fit_together_are_refused(loaded, second, what):
    """A mixed-up log would give counts that look like any others."""
    with pytest.raises(UserError, match=what):
        loaded([FIRST, second], [FIRST, FIRST], trial=1)
