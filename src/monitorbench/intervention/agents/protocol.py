"""An agent is whatever, run by run, chooses one action at a time.

Promises to the matching of runs: an agent's random numbers depend on task, seed, attempt and the number of
the decision alone, never on the condition, so that two runs of one task and seed are the same until the
first intervention.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

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
    """What the monitor did to the last decision."""
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
    """What a reasoning model thought first: kept in the transcript, and shown to nobody in the run."""


Policy = Callable[[Situation], ChosenAction]
"""The agent in one run. It raises whatever it likes: the run then ends, with that as its reason."""


class Agent(Protocol):
    """An agent that is ready to act: its weights, if any, are loaded."""

    @property
    def name(self) -> str:
        """What outcomes call it."""
        ...

    def begin(self, task: str, seed: int, attempt: int = 0) -> Policy:
        """A policy for one run; `attempt` is 1 for the second run of best-of-2."""
        ...

    def close(self) -> None:
        """Give back memory."""
        ...
