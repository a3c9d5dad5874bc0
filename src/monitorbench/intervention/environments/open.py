"""The environments that there are, and how the tasks of each are opened.

A new environment is a file with a `tasks` function and a class that follows `protocol.Environment`, its
settings in `config/pilot.py`, and a case in `open_tasks`. Promises: those of `splits`; what is yielded
opens nothing until it is called.
"""

from collections.abc import Iterator

from monitorbench.config.pilot import (
    AlfworldGames,
    Environments,
    TextWorldGames,
    ToolQuestions,
)
from monitorbench.intervention.environments import alfworld, questions, textworld_games
from monitorbench.intervention.environments.splits import SPLITS, Opens


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
            return iter(textworld_games.tasks(settings, n_tasks, seed, split))
        case AlfworldGames():
            return iter(alfworld.tasks(settings, n_tasks, seed, split))
        case ToolQuestions():
            return iter(questions.tasks(settings, n_tasks, seed, split))
