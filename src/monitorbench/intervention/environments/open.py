"""Which tasks an environment has, and how each is opened.

Promises: the splits share no task, whatever their seeds; the same settings, number, seed and split give
the same tasks in the same order on every machine; n tasks are the first n of more. What is yielded
opens nothing until it is called.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from monitorbench.config.base import UserError
from monitorbench.config.environments import AlfworldGames, Environments, Questions, TextWorldGames
from monitorbench.intervention.environments.protocol import Environment

Split = Literal["train", "validation", "pilot"]
SPLITS: tuple[Split, ...] = get_args(Split)
_SHARES = (0.3, 0.2, 0.5)
"""Of a source that has no splits of its own, in the order of `SPLITS`."""
_MOST_GAME_SEEDS = 2**29


def open_tasks(
    settings: Environments, n_tasks: int, seed: int, split: str
) -> Iterator[Callable[[], Environment]]:
    """`n_tasks` tasks of a split, each as what opens it; every call opens an environment of its own.

    Games are generated here, those that were not before, so that opening one is quick.

    Raises:
        UserError: where the tasks can't be had, or there are fewer of them.

    """
    if split not in SPLITS:
        raise ValueError(f"split={split!r}: expected one of {', '.join(SPLITS)}")
    match settings:
        case TextWorldGames():
            return iter(_games(settings, n_tasks, seed, split))
        case AlfworldGames():
            return iter(_households(settings, n_tasks, seed, split))
        case Questions(tools="search"):
            return iter(_searched(settings, n_tasks, seed, split))
        case Questions():
            return iter(_calculated(settings, n_tasks, seed, split))


def _games(settings: TextWorldGames, n_tasks: int, seed: int, split: str) -> list[Callable[[], Environment]]:
    _needs("textworld", settings.name)
    from monitorbench.intervention.environments.game_files import ensure_games, game_task

    seeds = game_seeds(n_tasks, seed, split)
    folders = ensure_games(settings, seeds)
    return [
        partial(_open_game, game_task(settings, game), folder)
        for game, folder in zip(seeds, folders, strict=True)
    ]


def game_seeds(n_tasks: int, seed: int, split: str) -> list[int]:
    """Seeds of games, below 2³¹: a split's are equal to its place modulo three, so no two splits meet."""
    found: dict[int, None] = {}
    number = 0
    while len(found) < n_tasks:
        drawn = int.from_bytes(_digest(f"{seed} {split} {number}")[:8], "big") % _MOST_GAME_SEEDS
        found.setdefault(len(SPLITS) * drawn + SPLITS.index(split))
        number += 1
    return list(found)


def _open_game(task: str, folder: Path) -> Environment:
    from monitorbench.intervention.environments.textworld_games import TextWorldGame

    return TextWorldGame(task, folder)


def _households(
    settings: AlfworldGames, n_tasks: int, seed: int, split: str
) -> list[Callable[[], Environment]]:
    _needs("fast_downward", settings.name)
    from monitorbench.intervention.environments.alfworld import read_games

    games = read_games(settings, split)
    return [
        partial(_open_household, task, games[task], settings.plan_seconds)
        for task in _drawn(settings, games, n_tasks, seed, split)
    ]


def _open_household(task: str, game: str, plan_seconds: float) -> Environment:
    from monitorbench.intervention.environments.alfworld import AlfworldGame

    return AlfworldGame(task, game, plan_seconds)


def _place(id_: str, text: str) -> bytes:
    """Where a paragraph stands among those that may distract from a question."""
    return _digest(f"{id_} {text}")


def _searched(settings: Questions, n_tasks: int, seed: int, split: str) -> list[Callable[[], Environment]]:
    from monitorbench.intervention.environments.question_sources import read_search_questions
    from monitorbench.intervention.environments.questions import SearchedQuestion

    questions = {question.id: question for question in read_search_questions(settings)}
    opened: list[Callable[[], Environment]] = []
    for id_ in _drawn(settings, _part(list(questions), split), n_tasks, seed, split):
        own = questions[id_].paragraphs
        others = [text for question in questions.values() for text in question.paragraphs if text not in own]
        others.sort(key=partial(_place, id_))
        distracting = others[: max(0, settings.paragraphs - len(own))]
        opened.append(partial(SearchedQuestion, questions[id_], distracting, settings.min_f1))
    return opened


def _calculated(settings: Questions, n_tasks: int, seed: int, split: str) -> list[Callable[[], Environment]]:
    from monitorbench.intervention.environments.question_sources import read_word_problems
    from monitorbench.intervention.environments.questions import CalculatedQuestion

    problems = {problem.id: problem for problem in read_word_problems(settings)}
    if split == "pilot":
        ids = [id_ for id_, problem in problems.items() if problem.is_test]
    else:
        ids = _part([id_ for id_, problem in problems.items() if not problem.is_test], split)
    return [partial(CalculatedQuestion, problems[id_]) for id_ in _drawn(settings, ids, n_tasks, seed, split)]


def _part(ids: Sequence[str], split: str) -> list[str]:
    """The ids of a split, by their share of all ids in the order of a hash."""
    ordered = sorted(ids, key=_digest)
    cuts = [0]
    for share in _SHARES:
        cuts.append(cuts[-1] + round(share * len(ordered)))
    place = SPLITS.index(split)
    return ordered[cuts[place] : cuts[place + 1]]


def _drawn(
    settings: AlfworldGames | Questions, ids: Iterable[str], n_tasks: int, seed: int, split: str
) -> list[str]:
    """The first `n_tasks` ids in an order that the seed decides."""
    ordered = sorted(ids, key=lambda id_: _digest(f"{seed} {id_}"))
    if n_tasks > len(ordered):
        raise UserError(
            f"environment={settings.name}: {n_tasks} {split} tasks were asked for, there are {len(ordered)}; "
            "ask for fewer"
        )
    return ordered[:n_tasks]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _needs(module: str, name: str) -> None:
    import importlib.util

    if importlib.util.find_spec(module) is None:
        raise UserError(
            f"environment={name} needs the package textworld[pddl]; install monitorbench[environments]"
        )
