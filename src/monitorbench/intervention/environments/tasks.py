"""A task for an agent: what all environments share, a split's tasks, and how each is opened.

`Environment` keeps the actions since reset, an end that stays one, and snapshots by replay. A new environment
is a file with a `tasks` function and a subclass of it, its settings in `config/pilot.py`, and a case in
`open_tasks`.

Promises: `restore` gives the state and the observation of `snapshot` back exactly, by the engine's own
snapshot where it has one and by reset and the same actions otherwise. That rests on engines that are
deterministic after reset, which the tests compare by `state()`. The splits share no task, whatever their
seeds; the same tasks, number, seed and split give the same tasks in the same order on every machine; n tasks
are the first n of more.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, get_args

from monitorbench.config.base import UserError
from monitorbench.config.pilot import AlfworldGames, Environments, TextWorldGames, ToolQuestions


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


class Environment(ABC):
    """One task, over an engine that knows how to begin and how to take one action.

    It is deterministic after `reset()`: equal actions lead to equal states on every machine.
    """

    def __init__(self, task: str, goal: str) -> None:
        """Keep an id, equal for equal tasks on every machine, and the task in words, as the agent gets it.

        Nothing is started before `reset`.
        """
        self.task, self.goal = task, goal
        self._actions: list[str] = []
        self._observation: Observation | None = None

    def reset(self) -> Observation:
        """Begin the task anew."""
        self._actions = []
        self._observation = self._begin()
        return self._observation

    def step(self, action: str) -> Observation:
        """Take an action. What the environment doesn't understand it answers; it raises no `UserError`.

        After the end nothing happens any more: the last observation is given again.
        """
        if not self._current().done:
            self._observation = self._take(action)
            self._actions.append(action)
        return self._current()

    def snapshot(self) -> Snapshot:
        """The current state, for `restore` of this environment or of another one of the same task."""
        self._current()
        return Snapshot(tuple(self._actions), self._inner())

    def restore(self, snapshot: Snapshot) -> Observation:
        """Go back to a snapshot; returns the observation that was current when it was made."""
        observation = self._return_to(snapshot.inner)
        if observation is None:
            observation = self.reset()
            for action in snapshot.actions:
                observation = self.step(action)
        self._actions, self._observation = list(snapshot.actions), observation
        return observation

    @abstractmethod
    def state(self) -> str:
        """A fingerprint of the whole state: equal states give equal strings, others differ."""

    @abstractmethod
    def solution(self) -> tuple[str, ...]:
        """Actions that lead from the current state to success; () where none are known."""

    def close(self) -> None:  # noqa: B027 - most engines hold nothing
        """Free what the engine holds; may be called twice."""

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


TaskSplit = Literal["train", "validation", "pilot"]
SPLITS: tuple[TaskSplit, ...] = get_args(TaskSplit)
Opens = Callable[[], Environment]
"""Opens one task; every call opens an environment of its own."""

_SHARES = (0.3, 0.2, 0.5)
"""Shares of a source that has no splits of its own, in the order of `SPLITS`."""
_MOST_GAME_SEEDS = 2**29


def game_seeds(n_tasks: int, seed: int, split: str) -> list[int]:
    """Seeds of games, below 2³¹: a split's are equal to its place modulo three, so no two splits meet."""
    seeds: dict[int, None] = {}
    number = 0
    while len(seeds) < n_tasks:
        drawn = int.from_bytes(digest(f"{seed} {split} {number}")[:8], "big") % _MOST_GAME_SEEDS
        seeds.setdefault(len(SPLITS) * drawn + SPLITS.index(split))
        number += 1
    return list(seeds)


def part_of(ids: Sequence[str], split: str) -> list[str]:
    """The ids of a split, by their share of all ids in the order of a hash."""
    ordered = sorted(ids, key=digest)
    cuts = [0]
    for share in _SHARES:
        cuts.append(cuts[-1] + round(share * len(ordered)))
    place = SPLITS.index(split)
    return ordered[cuts[place] : cuts[place + 1]]


def draw(environment: str, ids: Iterable[str], n_tasks: int, seed: int, split: str) -> list[str]:
    """The first `n_tasks` of a split's ids in an order that the seed decides.

    Raises `UserError`, with the name of the environment, where there are fewer.
    """
    ordered = sorted(ids, key=lambda id_: digest(f"{seed} {id_}"))
    if n_tasks > len(ordered):
        raise UserError(
            f"environment={environment}: {n_tasks} {split} tasks were asked for, there are {len(ordered)}; "
            "ask for fewer"
        )
    return ordered[:n_tasks]


def digest(text: str) -> bytes:
    """SHA-256 of a text, to order by."""
    return hashlib.sha256(text.encode()).digest()


def require_package(module: str, environment: str) -> None:
    """Raise `UserError` where an optional package of the environments is not installed."""
    import importlib.util

    if importlib.util.find_spec(module) is None:
        raise UserError(
            f"environment={environment} needs the package textworld[pddl]; install monitorbench[environments]"
        )


def open_tasks(settings: Environments, n_tasks: int, seed: int, split: str) -> Iterator[Opens]:
    """`n_tasks` tasks of a split, each as what opens it; every call opens an environment of its own.

    Games are generated here, those that were not before, so that opening one is quick.

    Raises:
        UserError: where the tasks can't be had, or there are fewer of them.

    """
    if split not in SPLITS:
        raise ValueError(f"split={split!r}: expected one of {', '.join(SPLITS)}")
    match settings:
        case TextWorldGames():
            from monitorbench.intervention.environments import textworld_games

            return iter(textworld_games.tasks(settings, n_tasks, seed, split))
        case AlfworldGames():
            from monitorbench.intervention.environments import alfworld

            return iter(alfworld.tasks(settings, n_tasks, seed, split))
        case ToolQuestions():
            from monitorbench.intervention.environments import questions

            return iter(questions.tasks(settings, n_tasks, seed, split))
