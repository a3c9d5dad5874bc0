"""The conditions of a pilot: who decides that a run is intervened in, and what is done then.

| condition | decides | does |
| --- | --- | --- |
| `rollback`, `append` | the critic: calibrated P(fail) > τ | undoes the action; warns |
| `rollback_uncalibrated`, `append_uncalibrated` | the critic: its raw P(fail) > τ | the same |
| `random` | a coin, as often as `rollback` fired per judged step | undoes the action |
| `oracle` | the environment's own solution | undoes the action |
| `best_of_2` | nobody: two runs, the critic keeps the one it gives less P(fail) | |

ROLLBACK restores the environment exactly and tells the agent which action was undone; the undone action
counts as a step. APPEND lets the action stand and adds a warning to what the agent reads. The oracle fires
where the action made the shortest known way to success longer, or put success out of reach: just there an
undone step costs less than the mistake. An action that only wastes a step is not worth another.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

from monitorbench.config.pilot import ConditionName
from monitorbench.intervention.critic import CriticJudgement
from monitorbench.intervention.environments.tasks import Environment
from monitorbench.intervention.loop.agents import Mechanism
from monitorbench.intervention.temperature import Temperature
from monitorbench.records import Sample

Decider = Literal["calibrated", "raw", "random", "oracle"]


class Condition(NamedTuple):
    """One way to intervene: who decides on it, and what is done then."""

    decider: Decider
    mechanism: Mechanism


CONDITIONS: dict[str, Condition] = {
    "rollback": Condition("calibrated", "rollback"),
    "append": Condition("calibrated", "append"),
    "rollback_uncalibrated": Condition("raw", "rollback"),
    "append_uncalibrated": Condition("raw", "append"),
    "random": Condition("random", "rollback"),
    "oracle": Condition("oracle", "rollback"),
}
"""Every condition but `best_of_2`, in which nobody intervenes (`best_of_two`).

A new one is a line here and its name in `config.pilot.ConditionName`; one that is decided on in a new way
has a class below and a case in `open_trigger` as well.
"""
assert {*CONDITIONS, "best_of_2"} == set(get_args(ConditionName))


class Moment(NamedTuple):
    """A step that may be intervened in."""

    environment: Environment
    seed: int
    step: int
    so_far: Callable[[], Sample]
    """Gives the run up to here, as a critic is shown it."""


class TriggerDecision(NamedTuple):
    """Whether to intervene at a moment, and by which probabilities: None where no critic was asked."""

    fires: bool
    p_fail: float | None = None
    calibrated: float | None = None
    tokens: int = 0


class CriticFailed(Exception):
    """A critic, or the oracle, could not say anything; the run ends with that as its reason."""


class Trigger(ABC):
    """Decides, step by step, whether to intervene.

    Each of these may raise whatever it likes: the run then ends with that as its reason.
    """

    def begin(self, environment: Environment) -> None:  # noqa: B027 - the oracle alone looks
        """Look at the environment before the first action."""

    def before(self, moment: Moment) -> None:  # noqa: B027
        """Look at the environment before an action that may be undone."""

    @abstractmethod
    def decide(self, moment: Moment) -> TriggerDecision:
        """Decide, after the action, whether to intervene."""


JudgeRun = Callable[[Sample], CriticJudgement]
"""How a critic judges a run so far, given as a sample."""


class CriticTrigger(Trigger):
    """Fires where P(fail) > τ; `raw`: as the critic says it, else after the temperature."""

    def __init__(self, judge: JudgeRun, temperature: Temperature, tau: float, *, raw: bool) -> None:
        self._judge, self._temperature, self._tau, self._raw = judge, temperature, tau, raw

    def decide(self, moment: Moment) -> TriggerDecision:
        """See `Trigger.decide`."""
        judgement = self._judge(moment.so_far())
        p_fail = certain(judgement)
        calibrated = self._temperature.calibrated(p_fail)
        fires = (p_fail if self._raw else calibrated) > self._tau
        return TriggerDecision(fires, p_fail, calibrated, judgement.tokens)


class RandomTrigger(Trigger):
    """Fires with chance `rate` at each step, by task, seed and step alone."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def decide(self, moment: Moment) -> TriggerDecision:
        """See `Trigger.decide`."""
        draw = random.Random(f"random intervention/{moment.environment.task}/{moment.seed}/{moment.step}")
        return TriggerDecision(draw.random() < self.rate)


class OracleTrigger(Trigger):
    """Fires where an action took success further away, by the environment's own solutions."""

    def __init__(self) -> None:
        self._distance: int | None = None

    def begin(self, environment: Environment) -> None:
        """Refuse (`CriticFailed`) a world that knows no solution: it would pass for one without mistakes."""
        if not environment.solution():
            raise CriticFailed("the environment knows no solution of this task")

    def before(self, moment: Moment) -> None:
        """Note how many actions success is away; None: out of reach."""
        self._distance = len(moment.environment.solution()) or None

    def decide(self, moment: Moment) -> TriggerDecision:
        """See `Trigger.decide`."""
        if self._distance is None:  # there is nothing left to lose
            return TriggerDecision(False)
        after = len(moment.environment.solution()) or None
        return TriggerDecision(after is None or after > self._distance)


def open_trigger(
    decider: Decider, judge: JudgeRun, temperature: Temperature, tau: float, random_rate: float | None
) -> Trigger:
    """Open what decides in a condition; `random_rate` may be None where that is not chance."""
    match decider:
        case "calibrated" | "raw":
            return CriticTrigger(judge, temperature, tau, raw=decider == "raw")
        case "oracle":
            return OracleTrigger()
        case "random":
            assert random_rate is not None  # `rollback`, which it is taken from, has been run
            return RandomTrigger(random_rate)


def certain(judgement: CriticJudgement) -> float:
    """P(fail), or `CriticFailed` with why there is none."""
    if judgement.p_fail is None:
        raise CriticFailed(f"no P(fail): {judgement.reason}")
    return judgement.p_fail
