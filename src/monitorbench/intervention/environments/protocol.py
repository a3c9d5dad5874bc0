"""The view that agents, critics and mechanisms have of a task, and the parts that environments share.

`Environment` is the one protocol; `ReplayedEnvironment` keeps the actions since reset, an end that stays
one, and snapshots by replay. Promises: `restore` gives the state and the observation of `snapshot` back
exactly, by the engine's own snapshot where it has one and by reset and the same actions otherwise. That rests
on engines that are deterministic after reset, which the tests compare by `state()`.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol


class Observation(NamedTuple):
    """The environment's answer to an action."""

    text: str
    """Text that the agent sees after its action."""
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


class ReplayedEnvironment(ABC):
    """An environment over an engine that knows how to begin and how to take one action."""

    def __init__(self, task: str, goal: str) -> None:
        """Keep task and goal; nothing is started before `reset`."""
        self._task, self._goal = task, goal
        self._actions: list[str] = []
        self._observation: Observation | None = None

    @property
    def task(self) -> str:
        """A stable id."""
        return self._task

    @property
    def goal(self) -> str:
        """The task in words, as the agent gets it."""
        return self._goal

    def reset(self) -> Observation:
        """Begin the task anew."""
        self._actions = []
        self._observation = self._begin()
        return self._observation

    def step(self, action: str) -> Observation:
        """Take an action; after the end the last observation is given again."""
        if not self._current().done:
            self._observation = self._take(action)
            self._actions.append(action)
        return self._current()

    def snapshot(self) -> Snapshot:
        """The current state."""
        self._current()
        return Snapshot(tuple(self._actions), self._inner())

    def restore(self, snapshot: Snapshot) -> Observation:
        """Go back to a snapshot of this task."""
        observation = self._return_to(snapshot.inner)
        if observation is None:
            observation = self.reset()
            for action in snapshot.actions:
                observation = self.step(action)
        self._actions, self._observation = list(snapshot.actions), observation
        return observation

    @abstractmethod
    def state(self) -> str:
        """A fingerprint of the whole state."""

    @abstractmethod
    def solution(self) -> tuple[str, ...]:
        """Actions that lead from the current state to success; () where none are known."""

    def close(self) -> None:  # noqa: B027 - most engines hold nothing
        """Free what the engine holds."""

    @abstractmethod
    def _begin(self) -> Observation:
        """Bring the engine to the start."""

    @abstractmethod
    def _take(self, action: str) -> Observation:
        """Let the engine take an action."""

    def _inner(self) -> object | None:
        """The engine's own snapshot, where it has one."""
        return None

    def _return_to(self, inner: object | None) -> Observation | None:
        """Go back to the engine's own snapshot; None where it has none, or this one is another's."""
        return None

    def _current(self) -> Observation:
        if self._observation is None:
            raise RuntimeError("reset() comes before everything else")
        return self._observation
