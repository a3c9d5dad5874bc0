"""TextWorld games made from a seed, and kept: the same settings and seed give the same game everywhere.

A game is a folder with `game.z8`, which is played, and `game.json`, which says what is true in it. It is
there whole or not at all. Games are made side by side: most of the time goes into Inform's compilers,
which are processes of their own.
"""

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from monitorbench.config.base import UserError
from monitorbench.config.pilot import TextWorldGames
from monitorbench.runs.files import folder_in_the_making, make_folder

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
        with folder_in_the_making(folder) as part:
            _make(settings, seed, part)
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
        (folder / "game.ni").unlink(missing_ok=True)
        return
    raise UserError(
        f"textworld: no quest of {settings.quest_length} actions fits {settings.rooms} rooms; set "
        "environment.quest_length lower or environment.rooms higher"
    )
