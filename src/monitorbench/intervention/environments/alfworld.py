"""ALFWorld's household games (Shridhar et al. 2021, arXiv:2010.03768) as environments.

A game is PDDL with a grammar for its text. TextWorld evaluates expressions of that grammar, so games are
read from the archive whose checksum the config names and from nowhere else.
"""

import json
import re
from functools import partial
from pathlib import PurePosixPath
from typing import NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.pilot import AlfworldGames
from monitorbench.intervention.environments.household import Household
from monitorbench.intervention.environments.protocol import Observation, ReplayedEnvironment
from monitorbench.intervention.environments.splits import Opens, draw, require_package
from monitorbench.sources import fetch

SPLITS = {
    "train": ("valid_train", "train"),
    "validation": ("valid_seen",),
    "pilot": ("valid_unseen",),
}
"""Ours and upstream's, the first that an archive has; they share no game, and the rooms of `valid_unseen` are
in no other."""
_GOAL = re.compile(r'Your task is to: ([^"\\\n]+)')
"""Finds the goal in the grammar, where it stands once."""
_ID = re.compile(r"\S+_bar_\S+")


def tasks(settings: AlfworldGames, n_tasks: int, seed: int, split: str) -> list[Opens]:
    """See `open.open_tasks`."""
    require_package("fast_downward", settings.name)
    games = read_games(settings, split)
    return [
        partial(AlfworldGame, task, games[task], settings.plan_seconds)
        for task in draw(settings.name, games, n_tasks, seed, split)
    ]


def read_games(settings: AlfworldGames, split: str) -> dict[str, str]:
    """A split's games by task id, each as the JSON text of its file.

    Raises `UserError` where the archive can't be had, is another one, or lacks the split.
    """
    files = fetch.find(settings.name, settings.source, settings.mirror, settings.cache, "error")
    for place, file in enumerate(files.matching()):
        if not file.config.sha256:
            raise UserError(
                f"{settings.name}: games run code, and no checksum is set for {file.path}; where it is "
                f"the one you trust, set environment.source.files.{place}.sha256={files.sha256(file)}"
            )
    by_folder: dict[str, dict[str, str]] = {folder: {} for folder in SPLITS[split]}
    for name, content in files.tar(""):
        parts = PurePosixPath(name).parts
        for folder in by_folder if parts[-1] == "game.tw-pddl" else ():
            if folder in parts:
                task = "/".join(("alfworld", *parts[parts.index(folder) : -1]))
                by_folder[folder][task] = content.decode()
    games = next(filter(None, by_folder.values()), {})
    if not games:
        raise UserError(
            f"{settings.name}: no game of {' or '.join(by_folder)} in the archive; get the file again"
        )
    return games


class _Inner(NamedTuple):
    owner: Household
    mark: int
    observation: Observation


class AlfworldGame(ReplayedEnvironment):
    """One game; see `Environment`. The first reset takes seconds: a process starts and compiles the PDDL.

    Where that process ends (see `Household`), all but `reset` raise that; a reset starts another.
    """

    def __init__(self, task: str, game: str, plan_seconds: float) -> None:
        """Take a game as the JSON text of its file; nothing is started.

        `plan_seconds` is the CPU time that a plan may take.
        """
        data = json.loads(game)
        goal = _GOAL.search(data["grammar"])
        super().__init__(task, goal[1] if goal else "")
        self._game, self._plan_seconds = game, plan_seconds
        self._written: tuple[str, ...] = tuple(data.get("walkthrough") or ())
        self._walkthrough: list[str] = []
        self._plans: dict[str, tuple[str, ...]] = {}
        self._household: Household | None = None

    def state(self) -> str:
        """A hash of what is true in the household."""
        return self._open().fingerprint()

    def solution(self) -> tuple[str, ...]:
        """Return what is left of the game's own walkthrough while it is followed; else a plan from here.

        That is a detour of two actions at most and a part of the walkthrough, or else the planner's, which
        takes from milliseconds to most of a minute. Plans are kept by state, what is left of a plan that is
        followed included.
        """
        if self._current().done:
            return ()
        followed = len(self._actions)
        if self._walkthrough and self._actions == self._walkthrough[:followed]:
            return tuple(self._walkthrough[followed:])
        here = self.state()
        if here not in self._plans:
            self._plans[here] = self._open().plan(self._plan_seconds, self._walkthrough)
        return self._plans[here]

    def close(self) -> None:
        """End the process."""
        if self._household is not None:
            self._household.close()

    @property
    def process(self) -> int | None:
        """The id of the process that plays the game; None before the first reset."""
        return None if self._household is None else self._household.pid

    def _open(self) -> Household:
        assert self._household is not None  # `reset` comes first
        return self._household

    def _begin(self) -> Observation:
        if self._household is None or self._household.has_ended:
            self.close()
            self._household = household = Household(self._game)
            # Some walkthroughs are written with names, some with ids; the training games have none.
            self._walkthrough = [
                _ID.sub(lambda id_: household.names.get(id_[0], id_[0]), action) for action in self._written
            ]
        return self._household.begin()

    def _take(self, action: str) -> Observation:
        action = " ".join(action.split())
        plan = self._plans.get(self.state(), ()) if self._plans else ()
        observation = self._open().step(action)
        if plan[1:] and plan[0] == action:
            self._plans.setdefault(self.state(), plan[1:])
        return observation

    def _inner(self) -> object:
        return _Inner(self._open(), self._open().mark(), self._current())

    def _return_to(self, inner: object | None) -> Observation | None:
        if not isinstance(inner, _Inner) or inner.owner is not self._household:
            return None
        inner.owner.return_to(inner.mark)
        return inner.observation
