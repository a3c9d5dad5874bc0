"""Who decides to intervene: the critic, before and after its temperature, chance, the oracle."""

import pytest
from corridor import Corridor, FixedActions, scripted
from scipy.stats import binomtest

from monitorbench.intervention.critic import CriticJudgement
from monitorbench.intervention.loop.agents import Scripted
from monitorbench.intervention.loop.episode import EpisodeRun, RunLimits, best_of_two, run_episode
from monitorbench.intervention.loop.mechanisms import CriticTrigger, Moment, OracleTrigger, RandomTrigger
from monitorbench.intervention.temperature import Temperature
from monitorbench.records import Sample

LIMITS = RunLimits(min_step=2, step_budget=15, max_interventions=3, warning="Look out.")


def says(p_fail: float | None) -> CriticJudgement:
    """A judgement."""
    return CriticJudgement(p_fail, "" if p_fail is not None else "too_long", tokens=5)


def moment(world: Corridor, seed: int = 0, step: int = 2) -> Moment:
    """A moment at which nothing was done yet."""

    def nothing() -> Sample:
        raise AssertionError("nobody asked for the run")

    return Moment(world, seed, step, nothing)


@pytest.mark.parametrize(
    ("p_fail", "temperature", "raw_fires", "calibrated_fires"),
    [(0.7, 1.0, True, True), (0.7, 4.0, True, False), (0.55, 0.2, False, True), (0.6, 1.0, False, False)],
)
def test_the_threshold_is_applied_before_or_after_the_temperature(
    p_fail: float, temperature: float, raw_fires: bool, calibrated_fires: bool
):
    """A calibrated condition that fires on raw scores makes calibration look useless."""
    for raw, fires in ((True, raw_fires), (False, calibrated_fires)):
        trigger = CriticTrigger(lambda _: says(p_fail), Temperature(temperature, 9), 0.6, raw=raw)
        found = run_episode(
            Corridor(),
            FixedActions("forward", "forward", "wait"),
            EpisodeRun("k", "c", 0),
            LIMITS,
            trigger,
            "append",
        )
        assert (found.steps[2].intervention == "append") is fires
        assert found.steps[2].p_fail == p_fail
        assert found.steps[2].calibrated == pytest.approx(Temperature(temperature, 9).calibrated(p_fail))
        assert found.tokens == 7 * len(found.steps) + 5 * found.judged_steps


def test_a_critic_without_an_answer_breaks_the_run_down():
    """Unscored is never "will succeed": such a run would pass for one in which nothing was to be done."""
    trigger = CriticTrigger(lambda _: says(None), Temperature(1.0, 9), 0.6, raw=False)
    found = run_episode(Corridor(), FixedActions(), EpisodeRun("k", "rollback", 0), LIMITS, trigger)
    assert found.reason == "critic: CriticFailed: no P(fail): too_long"
    assert not found.success


def test_chance_fires_at_its_rate_and_by_step_alone():
    """The control of `rollback`: as many interventions, none of them for a reason."""
    world = Corridor()
    fired = [
        RandomTrigger(0.3).decide(moment(world, seed, step)).fires for seed in range(500) for step in range(6)
    ]
    assert binomtest(sum(fired), len(fired), 0.3).pvalue > 1e-4
    again = [
        RandomTrigger(0.3).decide(moment(world, seed, step)).fires for seed in range(500) for step in range(6)
    ]
    assert fired == again
    assert not RandomTrigger(0.0).decide(moment(world)).fires
    assert RandomTrigger(1.0).decide(moment(world)).fires


@pytest.mark.parametrize(
    ("action", "fires"), [("forward", False), ("wait", False), ("back", True), ("drop key", True)]
)
def test_the_oracle_fires_where_success_got_further_away(action: str, fires: bool):
    """Its gain is the most that any critic could bring with ROLLBACK; one that errs is no bound."""
    world = Corridor()
    trigger = OracleTrigger()
    world.reset()
    world.step("forward")
    trigger.before(moment(world))
    world.step(action)
    assert trigger.decide(moment(world)).fires is fires


def test_the_oracle_saves_what_can_be_saved_and_nothing_twice():
    """A dropped key can be undone just when it is dropped: not later, and there is no use in trying."""
    world = Corridor()
    at_once = run_episode(
        world,
        FixedActions("forward", "forward", "drop key"),
        EpisodeRun("k", "o", 0),
        LIMITS,
        OracleTrigger(),
    )
    assert at_once.success
    assert at_once.interventions == 1
    too_late = run_episode(world, FixedActions("drop key"), EpisodeRun("k", "o", 0), LIMITS, OracleTrigger())
    assert not too_late.success
    assert too_late.interventions == 0


def test_an_oracle_of_a_world_without_solutions_says_so():
    """Silence would be read as: the oracle found nothing to undo."""

    class Unknown(Corridor):
        def solution(self) -> tuple[str, ...]:
            return ()

    world = Unknown()
    found = run_episode(world, FixedActions(), EpisodeRun("k", "oracle", 0), LIMITS, OracleTrigger())
    assert found.reason == "critic: CriticFailed: the environment knows no solution of this task"


def test_an_oracle_whose_world_breaks_ends_the_run_and_not_the_pilot():
    """A planner that crashes on one game of fifty must not cost the other forty-nine."""

    class Broken(Corridor):
        def solution(self) -> tuple[str, ...]:
            raise RuntimeError("no plan")

    found = run_episode(Broken(), FixedActions(), EpisodeRun("k", "oracle", 0), LIMITS, OracleTrigger())
    assert found.reason == "critic: RuntimeError: no plan"
    assert not found.success
    assert not found.steps


def test_the_oracle_never_does_worse_than_nothing_here():
    """In the corridor an undone step costs one action and a mistake two: the oracle can only gain."""
    agent = Scripted(scripted(0.3, doubt=0.0))
    gains = []
    for seed in range(100):
        world, run = Corridor(seed), EpisodeRun("k", "o", seed)
        alone = run_episode(world, agent, run, LIMITS)
        helped = run_episode(world, agent, run, LIMITS, OracleTrigger())
        gains.append(helped.success - alone.success)
    assert sum(gains) > 10


# --- best of two --------------------------------------------------------------------------------------


def by_length(sample: Sample) -> CriticJudgement:
    """A critic that takes the longer run for the worse one."""
    return says(min(1.0, len(sample.response) / 40))


def test_best_of_two_keeps_the_run_that_the_critic_prefers_and_pays_for_both():
    """A second try is the cheapest alternative to intervening; at half its price it would always win."""
    kept = set()
    for seed in range(30):
        agent, run = Scripted(scripted(0.3)), EpisodeRun("k", "best_of_2", seed)
        found = best_of_two(Corridor(), agent, run, LIMITS, by_length)
        tries = [run_episode(Corridor(), agent, run._replace(attempt=i), LIMITS) for i in (0, 1)]
        assert found.steps == (*tries[0].steps, *tries[1].steps)
        assert found.kept_attempt == int(len(tries[1].steps) < len(tries[0].steps))
        assert found.success == tries[found.kept_attempt].success
        assert found.tokens == 10
        assert found.interventions == 0
        kept.add(found.kept_attempt)
    assert kept == {0, 1}


def test_best_of_two_without_a_judgement_is_a_failure_with_a_reason():
    """Keeping the first run in silence would credit the critic with a choice it never made."""
    found = best_of_two(
        Corridor(), FixedActions(), EpisodeRun("k", "best_of_2", 0), LIMITS, lambda _: says(None)
    )
    assert found.reason == "critic: CriticFailed: no P(fail): too_long"
    assert not found.success
