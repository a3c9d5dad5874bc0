"""Which of an environment's tasks belong to which split, and which of these a seed draws.

Promises: the splits share no task, whatever their seeds; the same tasks, number, seed and split give the same
tasks in the same order on every machine; n tasks are the first n of more.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, get_args

from monitorbench.config.base import UserError
from monitorbench.intervention.environments.protocol import Environment

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
