"""ALFWorld's household games (Shridhar et al. 2021, arXiv:2010.03768), each in a process of its own.

A game is PDDL with a grammar for its text. TextWorld evaluates expressions of that grammar, so games are
read from the archive whose checksum the config names and from nowhere else.

Fast Downward, the planner's library, is native code that has to be kept apart. It searches without an end
that could be set, it ends its process where memory runs out, and it is made to be loaded once: each copy that
TextWorld loads registers itself in one table of the process, and that table still points into a copy after it
was unloaded (`fast_downward.close_lib`), which is a segmentation fault at the third game or at exit.

Promises: whatever ends that process raises `HouseholdEnded` here, which says how; a plan gets a stated CPU
time, so that a busy machine changes no outcome; no such process outlives its owner for longer than a plan.
"""

import contextlib
import json
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.pilot import AlfworldGames
from monitorbench.intervention.environments.tasks import (
    Environment,
    Observation,
    Opens,
    draw,
    require_package,
)
from monitorbench.sources import fetch

_CHILD = "monitorbench.intervention.environments.household_engine"


class HouseholdEnded(RuntimeError):
    """The game's process is gone; a new `Household` begins anew."""


class Household:
    """One game, compiled; see `HouseholdEngine` for what it can be asked.

    A question raises `HouseholdEnded` where the process has ended, and `RuntimeError` with what the engine
    raised.
    """

    def __init__(self, game: str) -> None:
        """Start the process and compile the game, given as the JSON text of its file."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="ascii",
            # A terminal's interrupt is ours to handle.
            start_new_session=True,
        )
        try:
            self.names: dict[str, str] = self.ask("open", game)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.poll() is not None

    def ask(self, *question: Any) -> Any:
        """Return the engine's answer to a question: the name of its method and the arguments."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = ""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        if not line.endswith("\n"):
            raise HouseholdEnded(_how(self._process.wait(), *question))
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"the game's engine: {answer['error']}")
        return answer["value"]

    def close(self) -> None:
        """End the process; may be called twice."""
        self._process.kill()
        with contextlib.suppress(BrokenPipeError, ValueError):  # the pipes may be broken, or closed already
            self._process.communicate()


def _how(code: int, name: str, *arguments: Any) -> str:
    if name == "plan" and code == -signal.SIGPROF:
        return f"the planner found nothing within {arguments[0]:g} s"
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return f"the planner's process ended ({how})"


def _observation(answer: list[Any]) -> Observation:
    text, admissible, won = answer
    return Observation(text, tuple(admissible), done=won, success=won)


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


class AlfworldGame(Environment):
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
        return str(self._open().ask("fingerprint"))

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
            self._plans[here] = tuple(self._open().ask("plan", self._plan_seconds, self._walkthrough))
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
        return _observation(self._household.ask("begin"))

    def _take(self, action: str) -> Observation:
        action = " ".join(action.split())
        plan = self._plans.get(self.state(), ()) if self._plans else ()
        observation = _observation(self._open().ask("take", action))
        if plan[1:] and plan[0] == action:
            self._plans.setdefault(self.state(), plan[1:])
        return observation

    def _inner(self) -> object:
        return _Inner(self._open(), self._open().ask("mark"), self._current())

    def _return_to(self, inner: object | None) -> Observation | None:
        if not isinstance(inner, _Inner) or inner.owner is not self._household:
            return None
        inner.owner.ask("return_to", inner.mark)
        return inner.observation
