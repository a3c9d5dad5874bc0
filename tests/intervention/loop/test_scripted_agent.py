"""The scripted agent keeps its stated rates, and takes an intervention as it says."""

import random

import pytest
from corridor import ACTIONS, Corridor, scripted
from scipy.stats import binomtest

from monitorbench.config.base import ConfigError
from monitorbench.config.pilot import ScriptedAgent
from monitorbench.intervention.loop.agents import Mechanism, Scripted, Situation
from monitorbench.intervention.loop.episode import EpisodeRun, RunLimits, run_episode

LIMITS = RunLimits(min_step=2, step_budget=15, max_interventions=3, warning="Look out.")
N = 3000


def situation(
    decision: int, intervened: Mechanism | None = None, plan: tuple[str, ...] = ("forward",)
) -> Situation:
    """The corridor at some decision."""
    return Situation("goal", "", (), ACTIONS, decision, intervened, (), lambda: plan)


def mistakes(settings: ScriptedAgent, *path: Mechanism | None) -> list[bool]:
    """Whether the last of some decisions is a mistake, in many runs; `path`: what was done before each."""
    agent = Scripted(settings)
    found = []
    for seed in range(N):
        act = agent.begin("task", seed)
        chosen = [act(situation(number, done)).action for number, done in enumerate(path)]
        found.append(chosen[-1] != "forward")
    return found


def has_rate(found: list[bool], rate: float) -> bool:
    """Whether so many mistakes are no surprise at that rate (one in ten thousand)."""
    return binomtest(sum(found), len(found), rate).pvalue > 1e-4


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.3, 0.9, 1.0])
def test_its_error_rate_is_the_stated_one(rate: float):
    """Success rates are set by this number; off by a factor, the pilot is about another agent."""
    assert has_rate(mistakes(scripted(rate), None), rate)


def test_a_wrong_track_is_kept_as_often_as_stated():
    """After a mistake: P(mistake) = persistence + (1 − persistence) · error rate."""
    settings = scripted(0.4, persistence=0.75)
    agent = Scripted(settings)
    second = []
    for seed in range(2 * N):
        act = agent.begin("task", seed)
        if act(situation(0)).action != "forward":
            second.append(act(situation(1)).action != "forward")
    assert has_rate(second, 0.75 + 0.25 * 0.4)


@pytest.mark.parametrize("mechanism", ["rollback", "append"])
def test_an_intervention_ends_a_wrong_track_and_leaves_doubt(mechanism: Mechanism):
    """Why intervening helps the weak and hurts the strong: both rates are part of the result."""
    weak = scripted(0.6, persistence=1.0, doubt=0.3)
    assert has_rate(mistakes(weak, None, None), 0.6 + 0.4 * 0.6)
    assert has_rate(mistakes(weak, None, mechanism), 0.6)
    strong = scripted(0.02, persistence=0.0, doubt=0.3)
    assert has_rate(mistakes(strong, None, None), 0.02)
    assert has_rate(mistakes(strong, None, mechanism), 0.3)
    assert has_rate(mistakes(strong, None, mechanism, None), 0.02), "the doubt is for one decision"


def test_mistakes_are_spread_over_all_other_actions():
    """An agent that always errs the same way would teach a critic one word."""
    chosen = {Scripted(scripted(1.0)).begin("task", seed)(situation(0)).action for seed in range(200)}
    assert chosen == {"back", "drop key", "wait"}


def test_the_same_run_again_is_the_same():
    """A resumed pilot, or one on another machine, must not throw other dice."""
    agent = Scripted(scripted(0.5))

    def run(order: list[str], attempt: int = 0) -> list[str]:
        act = agent.begin("task", 3, attempt)
        return [act(situation(number)._replace(admissible=tuple(order))).action for number in range(30)]

    shuffled = random.Random(1).sample(ACTIONS, len(ACTIONS))
    assert run(list(ACTIONS)) == run(shuffled), "the order in which an engine lists actions decides nothing"
    assert run(list(ACTIONS)) != run(list(ACTIONS), attempt=1)


def test_out_of_reach_it_does_something_and_with_nothing_to_do_it_says_so():
    """A lost game must not crash a run; a world that lists nothing and knows nothing can't be scripted."""
    act = Scripted(scripted(0.0)).begin("task", 0)
    assert act(situation(0, plan=())).action in ACTIONS
    with pytest.raises(RuntimeError, match="no solution"):
        act(situation(1, plan=())._replace(admissible=()))
    assert act(situation(2, plan=("42",))._replace(admissible=())).action == "42"
    with pytest.raises(ConfigError, match="no mistake to draw"):  # not a run without a mistake
        Scripted(scripted(0.1)).begin("task", 0)(situation(0, plan=("42",))._replace(admissible=()))


def test_success_from_one_in_twenty_to_nineteen_in_twenty():
    """The pilot is for agents of any strength: one parameter has to span them."""

    def success(error_rate: float) -> float:
        agent = Scripted(scripted(error_rate))
        runs = [run_episode(Corridor(i), agent, EpisodeRun("k", "none", 0), LIMITS) for i in range(300)]
        return sum(run.success for run in runs) / len(runs)

    rates = [success(rate) for rate in (0.01, 0.1, 0.3, 0.7)]
    assert rates[0] >= 0.95
    assert rates[-1] <= 0.05
    assert rates == sorted(rates, reverse=True)
