"""ALFWorld's household games (Shridhar et al. 2021, arXiv:2010.03768) as environments.

A game is PDDL with a grammar for its text. TextWorld evaluates expressions of that grammar, so games are
read from the archive whose checksum the config names and from nowhere else.
"""

import json
import re
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from monitorbench.config.environments import AlfworldGames
from monitorbench.config.errors import UserError
from monitorbench.intervention.environments.household_engine import HouseholdEngine, Mark
from monitorbench.intervention.environments.protocol import Observation
from monitorbench.intervention.environments.replay import ReplayedEnvironment
from monitorbench.sources import fetch

SPLITS = {"train": "valid_train", "validation": "valid_seen", "pilot": "valid_unseen"}
"""Ours and upstream's, which share no game; the rooms of `valid_unseen` are in no other."""
_GOAL = re.compile(r"Your task is to: (.+)")
_ID = re.compile(r"\S+_bar_\S+")


def read_games(settings: AlfworldGames, split: str) -> dict[str, str]:
    """A split's games by task id, each as the JSON text of its file.

    Raises `UserError` where the archive can't be had, is another one, or lacks the split.
    """
    if not all(file.sha256 for file in settings.source.files):
        raise UserError(f"{settings.name}: games run code; set environment.source.files[0].sha256")
    files = fetch.find(settings.name, settings.source, settings.mirror, settings.cache, "error")
    games = {}
    for name, content in files.tar(""):
        parts = PurePosixPath(name).parts
        if parts[-1] == "game.tw-pddl" and SPLITS[split] in parts:
            games["/".join(("alfworld", *parts[parts.index(SPLITS[split]) : -1]))] = content.decode()
    if not games:
        raise UserError(f"{settings.name}: no game of {SPLITS[split]} in the archive; get the file again")
    return games


class _Inner(NamedTuple):
    owner: HouseholdEngine
    mark: Mark
    observation: Observation


class AlfworldGame(ReplayedEnvironment):
    """One game; see `Environment`. It takes a second to open, for its PDDL is compiled."""

    def __init__(self, task: str, game: str) -> None:
        """Compile the game, given as the JSON text of its file."""
        data = json.loads(game)
        self._engine = HouseholdEngine(data)
        # Some walkthroughs are written with names, some with ids; the training games have none.
        self._walkthrough = [
            _ID.sub(lambda id_: self._engine.names.get(id_[0], id_[0]), action)
            for action in data.get("walkthrough", ())
        ]
        self._plans: dict[str, tuple[str, ...]] = {}
        intro = _GOAL.search(self._begin().text)
        super().__init__(task, intro[1] if intro else "")

    def state(self) -> str:
        """A hash of what is true in the household."""
        return self._engine.fingerprint()

    def solution(self) -> tuple[str, ...]:
        """What is left of the game's own walkthrough while it is followed; else a plan from here.

        The planner takes from milliseconds to half a minute. Plans are kept by state, what is left of a plan
        that is followed included.
        """
        if self._current().done:
            return ()
        followed = len(self._actions)
        if self._walkthrough and self._actions == self._walkthrough[:followed]:
            return tuple(self._walkthrough[followed:])
        here = self.state()
        if here not in self._plans:
            self._plans[here] = self._engine.plan()
        return self._plans[here]

    def close(self) -> None:
        """Free the planner."""
        self._engine.close()

    def _begin(self) -> Observation:
        return _observed(self._engine.begin())

    def _take(self, action: str) -> Observation:
        action = " ".join(action.split())
        plan = self._plans.get(self.state(), ()) if self._plans else ()
        observation = _observed(self._engine.step(action)[0])
        if plan[1:] and plan[0] == action:
            self._plans.setdefault(self.state(), plan[1:])
        return observation

    def _inner(self) -> object:
        return _Inner(self._engine, self._engine.mark(), self._current())

    def _return_to(self, inner: object | None) -> Observation | None:
        if not isinstance(inner, _Inner) or inner.owner is not self._engine:
            return None
        self._engine.return_to(inner.mark)
        return inner.observation


def _observed(state: Any) -> Observation:
    won = bool(state["won"])
    return Observation(state["feedback"].strip(), tuple(state["admissible_commands"]), done=won, success=won)
