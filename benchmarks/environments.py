"""Steps a second of our environments beside bare `textworld`, on the same games and actions.

Both play random admissible commands, 15 to an episode, in turns: game by game, ours first in one round and
last in the next. Bare is `textworld.start`, `reset` and `step` with the admissible commands asked for, as
any agent needs them; for ALFWorld that is TextWorld's own PDDL engine. Ours adds cleaned text, the guard on
what may reach the interpreter, and a snapshot before every step. ALFWorld is left out without its files
(MONITORBENCH_SOURCES).
"""

import os
import random
import statistics
import time
from pathlib import Path
from typing import Any

import textworld

from benchmarks.judged import composed
from benchmarks.measuring import Ratio, Result, in_turns
from monitorbench.intervention.environments.open import open_tasks

STEPS, BAR = 15, 0.8
ROUNDS = {"textworld": 6, "alfworld": 2}
"""Rounds of each game; a step of ALFWorld takes a tenth of a second, in bare textworld too."""


def main(work: Path, *, games: int) -> Result:
    """Play each environment in both ways."""
    names = ["textworld", *(["alfworld"] if os.environ.get("MONITORBENCH_SOURCES") else [])]
    rows = {name: _beside(name, games if name == "textworld" else max(2, games // 5), work) for name in names}
    generated = len(list((work / "data" / ".textworld_games").iterdir()))
    ratios = {f"{name}_steps_over_bare": Ratio(row["median_ratio"], least=BAR) for name, row in rows.items()}
    return Result(rows, ratios, {"games": games, "generated": generated})


def _beside(name: str, games: int, work: Path) -> dict[str, float]:
    """Steps a second of both, the median over rounds of their ratio, and what a restore takes."""
    began = time.monotonic()
    study = composed("pilot", [f"environment={name}", "monitor=bag_of_words", f"paths.data={work / 'data'}"])
    tasks = list(open_tasks(study.environment, games, 0, "pilot"))
    generating = time.monotonic() - began
    spent = {"ours": 0.0, "bare": 0.0}
    ratios, restores = [], []
    for number, task in enumerate(tasks):
        ours = task()
        bare = _started_bare(ours, task, work)
        for round_ in range(ROUNDS[name]):
            actions = _walk(ours, random.Random(f"{number} {round_}"))
            took = {}
            for way in in_turns(("bare", "ours"), round_):
                took[way] = _play(ours if way == "ours" else bare, actions, snapshots=way == "ours")
                spent[way] += took[way]
            ratios.append(took["bare"] / took["ours"])
        restores.append(_restore_seconds(ours))
        ours.close()
        bare.close()
    n_steps = len(tasks) * ROUNDS[name] * STEPS
    rates = {f"{way}_steps/s": n_steps / seconds for way, seconds in spent.items()}
    restore = 1000 * statistics.median(restores)
    row = {"median_ratio": statistics.median(ratios), "restore_ms": restore, "generate_seconds": generating}
    return rates | row


def _started_bare(ours: Any, task: Any, folder: Path) -> Any:
    """Bare textworld on the file that ours plays; a household's things get the names that ours have."""
    wanted = textworld.EnvInfos(admissible_commands=True)
    if ours.task.startswith("textworld"):
        return textworld.start(str(task.args[1] / "game.z8"), wanted)
    from monitorbench.intervention.environments.household_engine import household_names

    file = folder / f"{ours.task.replace('/', '_')}.tw-pddl"
    file.write_text(task.args[1])
    bare = textworld.start(str(file), wanted)
    for id_, name in household_names(bare._entity_infos).items():
        bare._entity_infos[id_].name = name
    return bare


def _walk(environment: Any, rng: random.Random) -> list[str]:
    """Draw random admissible commands that don't end the game; both ways know them."""
    while True:
        observation = environment.reset()
        actions: list[str] = []
        while len(actions) < STEPS and not observation.done:
            actions.append(rng.choice(observation.admissible))
            observation = environment.step(actions[-1])
        if not observation.done:
            return actions


def _play(environment: Any, actions: list[str], *, snapshots: bool) -> float:
    """Seconds of the steps alone, with a snapshot before each where ours is played."""
    environment.reset()
    began = time.perf_counter()
    for action in actions:
        if snapshots:
            environment.snapshot()
        environment.step(action)
    return time.perf_counter() - began


def _restore_seconds(environment: Any) -> float:
    """Seconds to come back to the state before the last of STEPS actions, from the end of an episode."""
    actions = _walk(environment, random.Random(0))
    environment.reset()
    for action in actions[:-1]:
        environment.step(action)
    snapshot = environment.snapshot()
    environment.step(actions[-1])
    began = time.perf_counter()
    environment.restore(snapshot)
    return time.perf_counter() - began
