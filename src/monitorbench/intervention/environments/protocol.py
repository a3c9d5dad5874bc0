"""What an agent, a critic and a mechanism see of a task: one protocol for every environment."""

from typing import NamedTuple, Protocol


class Observation(NamedTuple):
    """The environment's answer to an action."""

    text: str
    """What the agent sees after its action."""
    admissible: tuple[str, ...]
    """Actions it may take; empty: any text."""
    done: bool
    success: bool
    """Whether the task was solved; it has a meaning only when `done`."""


class Snapshot(NamedTuple):
    """A state to come back to."""

    actions: tuple[str, ...]
    """The actions since reset; replayed when the engine has no snapshot of its own."""
    inner: object | None
    """The engine's own snapshot, where it has one. It belongs to the environment that made it."""


class Environment(Protocol):
    """One task. Deterministic after `reset()`: equal actions lead to equal states on every machine."""

    @property
    def task(self) -> str:
        """A stable id: equal tasks have equal ids on every machine."""
        ...

    @property
    def goal(self) -> str:
        """The task in words, as the agent gets it."""
        ...

    def reset(self) -> Observation:
        """Begin the task anew."""
        ...

    def step(self, action: str) -> Observation:
        """Take an action. What the environment doesn't understand it answers; it raises no `UserError`.

        After the end nothing happens any more: the last observation is given again.
        """
        ...

    def snapshot(self) -> Snapshot:
        """The current state, for `restore` of this environment or of another one of the same task."""
        ...

    def restore(self, snapshot: Snapshot) -> Observation:
        """Go back to a snapshot; returns the observation that was current when it was made."""
        ...

    def state(self) -> str:
        """A fingerprint of the whole state: equal states give equal strings, others differ."""
        ...

    def solution(self) -> tuple[str, ...]:
        """Actions that lead from the current state to success; () where none are known."""
        ...

    def close(self) -> None:
        """Free what the engine holds; may be called twice."""
        ...
