"""Generated TextWorld games: made from a seed, kept, and played by their own text and commands.

The same settings and seed give the same game everywhere. A game is a folder with `game.z8`, which is played,
and `game.json`, which says what is true in it; it is there whole or not at all. Games are made side by side:
most of the time goes into Inform's compilers, which are processes of their own.

Only what the game prints reaches the agent; facts, policy and score stay inside. A command that the game
did not list is still put to its parser, which answers as in any text adventure, provided that it is one
line of one command with a verb of the game's: Inform also knows commands to save to disk, to quit and to
undo, and takes "a. b" for two.
"""

import hashlib
import os
import re
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from monitorbench.config.base import UserError
from monitorbench.config.pilot import TextWorldGames
from monitorbench.intervention.environments.tasks import (
    Environment,
    Observation,
    Opens,
    game_seeds,
    require_package,
)
from monitorbench.runs.files import folder_in_the_making, make_folder, unwritable

_ATTEMPTS = 20
_NEXT_SEED = 999_999
"""The distance to the next seed; divisible by three, since a seed's remainder is its split's
(`splits.game_seeds`)."""
_making = threading.Lock()
"""TextWorld has one random generator for the whole process."""


def game_task(settings: TextWorldGames, seed: int) -> str:
    """The id of a game: TextWorld's version, the settings and the seed decide all of it."""
    sizes = f"r{settings.rooms}-o{settings.objects}-q{settings.quest_length}"
    return f"textworld-{version('textworld')}-{sizes}-s{seed}"


def ensure_games(settings: TextWorldGames, seeds: Sequence[int]) -> list[Path]:
    """The folders of these seeds' games, in their order; those that are missing are made.

    Raises `UserError` for sizes that allow no game, and where the folder can't be written.
    """
    make_folder(settings.games)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(lambda seed: ensure_game(settings, seed), seeds))


def ensure_game(settings: TextWorldGames, seed: int) -> Path:
    """The folder of one game; see `ensure_games`."""
    folder = settings.games / game_task(settings, seed)
    if not (folder / "game.z8").is_file():
        with folder_in_the_making(folder) as unfinished:
            try:
                _make(settings, seed, unfinished)
            except OSError as error:
                raise unwritable(unfinished, error) from error
    return folder


@cache
def _knowledge() -> Any:
    """TextWorld's rules and wordings. Parsing them takes longer than a game; nothing changes them."""
    from textworld.generator.data import KnowledgeBase

    return KnowledgeBase.load()


def _make(settings: TextWorldGames, seed: int, folder: Path) -> None:
    import textworld
    from textworld.generator import compile_game, make_game
    from textworld.generator.chaining import QuestGenerationError
    from textworld.generator.vtypes import NotEnoughNounsError

    for attempt in range(_ATTEMPTS):
        with _making:
            options = textworld.GameOptions()
            options.kb = _knowledge()
            options.nb_rooms, options.nb_objects = settings.rooms, settings.objects
            options.quest_length = settings.quest_length
            # Some seeds have no quest of this length, or one with a short cut; what is tried next follows
            # from the seed too.
            options.seeds = seed + attempt * _NEXT_SEED
            textworld.g_rng.set_seed(options.seeds["map"])
            options.path = str(folder / "game.z8")
            try:
                game = make_game(options)
            except (QuestGenerationError, NotEnoughNounsError):
                continue
            if len(game.walkthrough or ()) != settings.quest_length:
                continue
        compile_game(game, options)
        _undate(folder / "game.z8")
        (folder / "game.ni").unlink(missing_ok=True)
        return
    raise UserError(
        f"textworld: no quest of {settings.quest_length} actions fits {settings.rooms} rooms; set "
        "environment.quest_length lower or environment.rooms higher"
    )


_SERIAL = 0x12
"""Where the Z-machine's header holds the six digits of its serial number; see the Z-machine Standards
Document, section 11."""


def _undate(file: Path) -> None:
    """Set the serial number to zeros: the compiler writes the day there, and a game follows from its seed."""
    with file.open("r+b") as story:
        story.seek(_SERIAL)
        story.write(b"000000")


_SEED = 1
"""The seed of the Z-machine's random numbers, which otherwise follow the clock."""
_ONE_COMMAND = re.compile(r"(?!.*\bthen\b)[a-z0-9' -]{1,120}")
_NOT_UNDERSTOOD = "That's not a verb I recognise."
"""Inform's own words."""
_PROMPT = re.compile(r"(\n\s*Would you like to RESTART[^\n]*)?\n>[^\n]*\Z")


def tasks(settings: TextWorldGames, n_tasks: int, seed: int, split: str) -> list[Opens]:
    """See `open.open_tasks`; games that are missing are generated."""
    require_package("textworld", settings.name)
    seeds = game_seeds(n_tasks, seed, split)
    folders = ensure_games(settings, seeds)
    return [
        partial(TextWorldGame, game_task(settings, game), folder)
        for game, folder in zip(seeds, folders, strict=True)
    ]


class TextWorldGame(Environment):
    """One game; see `Environment`. Snapshots are replayed: a step takes some milliseconds."""

    def __init__(self, task: str, folder: Path) -> None:
        """Start the interpreter on the game in `folder` (see `game_files`)."""
        self._file = folder / "game.z8"
        self._engine = _start(self._file, tracks_quest=False)
        self._guide: _Guide | None = None
        self._sent: list[str] = []
        super().__init__(task, self._engine._game.objective.strip())
        self._verbs = frozenset(self._engine._game.verbs)

    def state(self) -> str:
        """A hash of the Z-machine's memory and of what TextWorld takes to be true."""
        ram, stack, *registers = self._engine.unwrapped._jericho.get_state()
        # The stack grows downwards, in words of two bytes; below its pointer lies what is over and done with.
        stack = stack[2 * registers[1] :]
        facts = sorted(map(str, self._engine.state["_facts"]))
        parts = (ram.tobytes(), stack.tobytes(), repr(registers).encode(), "\n".join(facts).encode())
        return hashlib.sha256(b"".join(hashlib.sha256(content).digest() for content in parts)).hexdigest()

    def solution(self) -> tuple[str, ...]:
        """TextWorld's winning policy, tracked by a second interpreter; () where it has lost track."""
        if self._current().done:
            return ()
        if self._guide is None:
            self._guide = _Guide(self._file)
        return self._guide.policy(self._sent)

    def close(self) -> None:
        """End the interpreters."""
        self._engine.close()
        if self._guide is not None:
            self._guide.close()

    def _begin(self) -> Observation:
        self._sent = []
        return _observed(self._engine.reset(), self.goal)

    def _take(self, action: str) -> Observation:
        command = " ".join(action.split())
        admissible = self._current().admissible
        if command not in admissible:
            verb = command.partition(" ")[0]
            if verb not in self._verbs or not _ONE_COMMAND.fullmatch(command):
                return Observation(_NOT_UNDERSTOOD, admissible, done=False, success=False)
        self._sent.append(command)
        return _observed(self._engine.step(command)[0], self.goal)


class _Guide:
    """A second interpreter on the same game, which follows the actions and tracks the quest."""

    def __init__(self, file: Path) -> None:
        self._engine = _start(file, tracks_quest=True)
        self._followed: list[str] | None = None

    def policy(self, actions: list[str]) -> tuple[str, ...]:
        """The winning policy after these actions."""
        if self._followed is None or actions[: len(self._followed)] != self._followed:
            self._engine.reset()
            self._followed = []
        for action in actions[len(self._followed) :]:
            self._engine.step(action)
            self._followed.append(action)
        return tuple(self._engine.state["policy_commands"])

    def close(self) -> None:
        self._engine.close()


def _start(file: Path, *, tracks_quest: bool) -> Any:
    import textworld

    wanted = textworld.EnvInfos(admissible_commands=True, policy_commands=tracks_quest)
    engine = textworld.start(str(file), wanted)
    engine.seed(_SEED)
    return engine


def _observed(state: Any, goal: str) -> Observation:
    return Observation(
        _game_text(state["feedback"], goal),
        tuple(state["admissible_commands"]),
        done=bool(state["won"] or state["lost"]),
        success=bool(state["won"]),
    )


def _game_text(feedback: str, goal: str) -> str:
    """Return the game's output without its banner, its prompt, its status line and runs of empty lines."""
    text = _PROMPT.sub("", feedback.rstrip())
    text = text[max(text.find(goal), 0) :] if goal else text
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+\n", "\n", text)).strip()
