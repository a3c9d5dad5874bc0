"""Agents that a pilot can run: whatever, run by run, chooses one action at a time.

Promises to the matching of runs: an agent's random numbers depend on task, seed, attempt and the number of
the decision alone, never on the condition, so that two runs of one task and seed are the same until the
first intervention. A new kind of agent is a case in each of `open_agent`, `agent_name` and `agent_identity`.

`agent=scripted` follows the environment's own solution with mistakes at stated rates. A decision is a
*mistake* (an admissible action other than the solution's next one, each as likely) with chance `error_rate`.
After a mistake the next decision is one as well with chance `persistence`, without a fresh draw: the agent is
on a wrong track, as models that go round in circles are. How it takes an intervention, whichever it is: it
leaves the wrong track and draws afresh, and what it was told leaves it in doubt, so that this one decision is
a mistake at the larger of `doubt` and `error_rate`. An agent that is mostly on a wrong track gains by that;
one that seldom is loses. ROLLBACK besides costs the undone action's step, and takes back what it did, good or
bad; it may choose the undone action again. Where the solution is unknown or out of reach every admissible
action is as likely. A world that lists no actions can only be followed without mistakes; any other rate is
refused.
"""

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from monitorbench.config.base import ConfigError
from monitorbench.config.pilot import Agent as AgentSettings
from monitorbench.config.pilot import ScriptedAgent

Mechanism = Literal["rollback", "append"]


class AgentTurn(NamedTuple):
    """An action that was not undone, with the agent's thought, the environment's answer, and a warning if
    any."""

    action: str
    thought: str
    result: str
    warning: str = ""


class Situation(NamedTuple):
    """All that an agent may use for a decision."""

    goal: str
    opening: str
    """The first text that the environment gave."""
    turns: tuple[AgentTurn, ...]
    """The turns so far; undone ones are left out."""
    admissible: tuple[str, ...]
    """The actions that are allowed; empty where any text is."""
    decision: int
    """The number of decisions before this one in the run, undone ones included."""
    intervened: Mechanism | None
    """Intervention of the monitor on the last decision."""
    undone: tuple[str, ...]
    """Actions that were undone in just this situation."""
    plan: Callable[[], tuple[str, ...]]
    """The environment's own solution from here, for a scripted agent; a model has no business with it."""


class ChosenAction(NamedTuple):
    """The action that an agent chose, and the tokens that choosing it took."""

    action: str
    thought: str = ""
    tokens: int = 0
    thinking: str = ""
    """A reasoning model's thinking: kept in the transcript, and shown to nobody in the run."""


Policy = Callable[[Situation], ChosenAction]
"""The agent in one run. It raises whatever it likes: the run then ends, with that as its reason."""


class Agent(Protocol):
    """An agent that is ready to act: its weights, if any, are loaded."""

    @property
    def name(self) -> str:
        """Name of the agent in outcomes."""
        ...

    def begin(self, task: str, seed: int, attempt: int = 0) -> Policy:
        """A policy for one run; `attempt` is 1 for the second run of best-of-2."""
        ...

    def close(self) -> None:
        """Give back memory."""
        ...


class Scripted:
    """An `Agent`. Random numbers: three a decision, from task, seed, attempt and the decision's number."""

    def __init__(self, settings: ScriptedAgent) -> None:
        self.name = settings.name
        self._settings = settings

    def begin(self, task: str, seed: int, attempt: int = 0) -> Policy:
        """See `Agent.begin`."""
        settings = self._settings
        astray = False

        def act(situation: Situation) -> ChosenAction:
            nonlocal astray
            draw = random.Random(f"scripted/{task}/{seed}/{attempt}/{situation.decision}")
            error, persists, choice = draw.random(), draw.random(), draw.random()
            rate = settings.error_rate
            if situation.intervened:
                astray, rate = False, max(rate, settings.doubt)
            plan = situation.plan()
            right = plan[:1]
            wrong = [action for action in situation.admissible if action not in right]
            if right and not situation.admissible and rate > 0:
                raise ConfigError(
                    "agent=scripted: this world lists no actions, so there is no mistake to draw; expected "
                    "agent.error_rate=0 agent.doubt=0, or a world of games"
                )
            astray = (astray and persists < settings.persistence) or error < rate
            if right and not (astray and wrong):
                return ChosenAction(right[0])
            if not wrong:
                raise RuntimeError("no solution is known from here, and there is nothing to choose from")
            # By name, so that the choice does not hang on the order in which an engine lists them.
            return ChosenAction(sorted(wrong)[int(choice * len(wrong))])

        return act

    def close(self) -> None:
        """Do nothing: there is nothing to give back."""


def open_agent(
    settings: AgentSettings, models: Path, tasks_at_once: int = 1
) -> AbstractContextManager[Agent]:
    """The agent, given back on leaving; `models` is the folder that models are kept in.

    So many tasks may ask it at once, each from a thread of its own.
    """
    if isinstance(settings, ScriptedAgent):
        return closing(Scripted(settings))
    from monitorbench.intervention.loop.language_model import open_language_model

    return closing(open_language_model(settings, models, tasks_at_once))


def agent_name(settings: AgentSettings) -> str:
    """Name of the agent in outcomes."""
    return settings.name if isinstance(settings, ScriptedAgent) else settings.model.name


def agent_identity(settings: AgentSettings) -> dict[str, Any]:
    """All that decides what the agent does."""
    if isinstance(settings, ScriptedAgent):
        return settings.model_dump(mode="json")
    from monitorbench.intervention.loop.language_model import prompt
    from monitorbench.judging.identity import judge_identity

    how = {"kind": settings.kind, "choose": settings.choose}
    return {**how, **judge_identity(settings.model, settings.engine, prompt(settings))}
