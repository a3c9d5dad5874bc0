"""What a user would lose here: a night's pilot, to a planner that crashes or never comes back."""

import os
import signal
from pathlib import Path

import pytest
from environment_checks import check_restoring, check_solution
from small_household import WALKTHROUGH, small_household

pytest.importorskip("fast_downward")

from monitorbench.intervention.environments.alfworld import AlfworldGame, HouseholdEnded
from monitorbench.intervention.loop.agents import ChosenAction, Policy, Situation
from monitorbench.intervention.loop.episode import EpisodeRun, RunLimits, run_episode

LIMITS = RunLimits(min_step=0, step_budget=9, max_interventions=3, warning="Look out.")
RUN = EpisodeRun("key", "none", 0)


class Asking:
    """An agent that follows the environment's solution, and may crash the planner before it asks."""

    name = "asking"

    def __init__(self, environment: AlfworldGame, crash_at: int | None = None) -> None:
        self._environment, self._crash_at = environment, crash_at

    def begin(self, task: str, seed: int, attempt: int = 0) -> Policy:
        def act(situation: Situation) -> ChosenAction:
            if situation.decision == self._crash_at:
                crash(self._environment)
            return ChosenAction(situation.plan()[0])

        return act

    def close(self) -> None:
        """Nothing to free."""


def crash(environment: AlfworldGame) -> None:
    """What a fault in native code does to the process."""
    assert environment.process is not None
    os.kill(environment.process, signal.SIGSEGV)


@pytest.fixture(scope="module")
def house():
    environment = AlfworldGame("small/attic", small_household(), 60)
    yield environment
    environment.close()
    environment.close()


def test_a_small_game_is_played_and_planned(house):
    """The rest of this file would prove nothing about a game that isn't one."""
    start = house.reset()
    assert house.goal == "see the attic."
    assert house.solution() == WALKTHROUGH
    assert check_solution(house, start) == len(WALKTHROUGH)


def test_restoring_is_exact(house):
    """A mark is a number in another process: the wrong one would be another state."""
    check_restoring(house, [0], [1, 0], [2, 0])


def test_a_crash_is_one_runs_reason(house):
    """One bad plan would end the pilot, or count as the agent's own failure.

    And a snapshot is a number of the process that died: it would lead anywhere in the next one.
    """
    house.reset()
    observation = house.step(WALKTHROUGH[0])
    snapshot, state = house.snapshot(), house.state()
    broken = run_episode(house, Asking(house, crash_at=1), RUN, LIMITS)
    assert not broken.success
    assert broken.reason == "environment: HouseholdEnded: the planner's process ended (SIGSEGV)"
    assert len(broken.steps) == 1
    with pytest.raises(HouseholdEnded, match="SIGSEGV"):
        house.restore(snapshot)
    well = run_episode(house, Asking(house), RUN, LIMITS)
    assert (well.success, well.reason) == (True, "")
    assert house.restore(snapshot) == observation
    assert house.state() == state


def test_a_plan_that_takes_too_long_ends_the_run():
    """A search without end would hold a pilot for ever, and take all of the memory."""
    endless = AlfworldGame("small/gems", small_household(gems=30), 0.1)
    try:
        found = run_episode(endless, Asking(endless), RUN, LIMITS)
        assert found.reason == "environment: HouseholdEnded: the planner found nothing within 0.1 s"
    finally:
        endless.close()


def test_who_strays_from_the_walkthrough_need_not_wait_for_the_planner():
    """A plan at every step takes half a minute each in ALFWorld, and here more than there is."""
    written = (*(f"look at gem{number}" for number in range(20)), *WALKTHROUGH)
    house = AlfworldGame("small/gems", small_household(20, written), 1)
    try:
        observation = house.reset()
        assert house.solution() == written
        for action in (*written[:19], written[-3]):
            observation = house.step(action)
        state = house.state()
        assert house.solution() == (written[19], *written[-2:])
        assert house.state() == state
        check_solution(house, observation)
    finally:
        house.close()


def test_a_game_that_cannot_be_compiled_is_a_reason():
    """It would end the pilot before the first step."""
    nonsense = AlfworldGame("small/nonsense", '{"grammar": "", "pddl_domain": "(", "pddl_problem": ""}', 60)
    try:
        found = run_episode(nonsense, Asking(nonsense), RUN, LIMITS)
        assert found.reason.startswith("environment: RuntimeError: the game's engine: ")
    finally:
        nonsense.close()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's /proc")
def test_the_planners_library_stays_out_of_this_process(house):
    """A second copy of it, once unloaded, is a segmentation fault at exit."""
    house.reset()
    assert "libdownward" not in Path("/proc/self/maps").read_text(encoding="utf-8")
    assert "libdownward" in Path(f"/proc/{house.process}/maps").read_text(encoding="utf-8")


def test_closing_ends_the_process(house):
    """A night of games would leave as many planners."""
    house.reset()
    process = house.process
    assert process is not None
    house.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
