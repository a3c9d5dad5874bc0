"""What an agent is: something that, run by run, chooses one action at a time.

Promises to the matching of runs: an agent's random numbers depend on task, seed, attempt and the number of
the decision alone, never on the condition, so that two runs of one task and seed are the same until the
first intervention.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

Mechanism = Literal["rollback", "append"]


class Turn(NamedTuple):
    """An action that stands, what the agent thought, what the world answered, and what it was told then."""

    action: str
    thought: str
    result: str
    warning: str = ""


class Situation(NamedTuple):
    """All that an agent may use for a decision."""

    goal: str
    opening: str
    """The world's first words."""
    turns: tuple[Turn, ...]
    """Undone ones left out."""
    admissible: tuple[str, ...]
    """Empty: any text."""
    decision: int
    """How many decisions came before in this run, undone ones included."""
    intervened: Mechanism | None
    """What the monitor did to the last decision."""
    undone: tuple[str, ...]
    """Actions that were undone in just this situation."""
    plan: Callable[[], tuple[str, ...]]
    """The environment's own solution from here, for a scripted agent; a model has no business with it."""


class Choice(NamedTuple):
    """An action, and what it cost."""

    action: str
    thought: str = ""
    tokens: int = 0


Policy = Callable[[Situation], Choice]
"""The agent in one run. It raises whatever it likes: the run then ends, with that as its reason."""


class Agent(Protocol):
    """An agent with its weights, if any, loaded."""

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
