"""Steps a second of our environments beside bare `textworld`, on the same games and actions.

    python benchmarks/environments.py [GAMES]

Both play random admissible commands, 15 to an episode, in turns: game by game, ours first in one round and
last in the next. Bare is `textworld.start`, `reset` and `step` with the admissible commands asked for, as
any agent needs them; for ALFWorld that is TextWorld's own PDDL engine. Ours adds cleaned text, the guard on
what may reach the interpreter, and a snapshot before every step. ALFWorld is left out without its files
(MONITORBENCH_SOURCES). Prints a table and writes `runs/benchmarks/environments/ratios.json`.
"""

import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import textworld
from hydra import compose, initialize_config_dir
from measure import ROOT
from omegaconf import OmegaConf
from pydantic import TypeAdapter

from monitorbench.config.environments import Environments
from monitorbench.intervention.environments.open import open_tasks

WORK = ROOT / "runs" / "benchmarks" / "environments"
GAMES, STEPS = 20, 15
ROUNDS = {"textworld": 6, "alfworld": 2}
"""Of each game; a step of ALFWorld takes a tenth of a second, in bare textworld too."""
BAR = 0.8


def main(games: int) -> None:
    """Measure and print."""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    began = time.monotonic()
    measured = {"textworld": beside("textworld", games)}
    generated = len(list((WORK / "data" / ".textworld_games").iterdir()))
    if os.environ.get("MONITORBENCH_SOURCES"):
        measured["alfworld"] = beside("alfworld", max(2, games // 5))
    ratios: dict[str, float] = {}
    print(f"{'environment':<12}{'ours, steps/s':>16}{'bare, steps/s':>16}{'ratio':>8}{'restore':>12}")
    for name, row in measured.items():
        ratios[f"{name}_steps_per_second_over_bare"] = row["ratio"]
        print(
            f"{name:<12}{row['ours']:16.1f}{row['bare']:16.1f}{row['ratio']:8.2f}{row['restore_ms']:9.1f} ms"
        )
    seconds = measured["textworld"]["generate_seconds"]
    print(
        f"{generated} games generated in {seconds:.1f} s; all of this took {time.monotonic() - began:.0f} s"
    )
    report = {"games": games, "bar": BAR, "ratios": ratios, "measured": measured}
    (WORK / "ratios.json").write_text(json.dumps(report, indent=2) + "\n")
    if any(ratio < BAR for ratio in ratios.values()):
        raise SystemExit(f"benchmarks/environments.py: below {BAR} of bare textworld's steps a second")


def beside(name: str, games: int) -> dict[str, float]:
    """Steps a second of both, the median over rounds of their ratio, and what a restore takes."""
    began = time.monotonic()
    tasks = list(open_tasks(settings(name), games, 0, "pilot"))
    generating = time.monotonic() - began
    spent = {"ours": 0.0, "bare": 0.0}
    ratios, restores = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number, task in enumerate(tasks):
            ours = task()
            bare = started_bare(ours, task, Path(folder))
            plays: dict[str, Callable[[list[str]], float]] = {
                "ours": lambda actions, ours=ours: play_ours(ours, actions),
                "bare": lambda actions, bare=bare: play_bare(bare, actions),
            }
            for round_ in range(ROUNDS[name]):
                actions = walk(ours, random.Random(f"{number} {round_}"))
                took = {}
                for way in ("ours", "bare") if round_ % 2 else ("bare", "ours"):
                    took[way] = plays[way](actions)
                    spent[way] += took[way]
                ratios.append(took["bare"] / took["ours"])
            restores.append(restore_seconds(ours))
            ours.close()
            bare.close()
    steps = len(tasks) * ROUNDS[name] * STEPS
    return {
        "ours": steps / spent["ours"],
        "bare": steps / spent["bare"],
        "ratio": statistics.median(ratios),
        "restore_ms": 1000 * statistics.median(restores),
        "generate_seconds": generating,
    }


def settings(name: str) -> Environments:
    """`conf/environment/<name>.yaml` as composed, with games below `runs/`."""
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        cfg = compose(
            "_base", [f"+environment={name}", "run=x", "transfer.runs=[]", f"paths.data={WORK / 'data'}"]
        )
    tree = json.dumps(OmegaConf.to_container(cfg.environment, resolve=True))
    return TypeAdapter[Environments](Environments).validate_json(tree)


def started_bare(ours: Any, task: Any, folder: Path) -> Any:
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


def walk(environment: Any, rng: random.Random) -> list[str]:
    """Random admissible commands that don't end the game; both know them."""
    while True:
        observation, actions = environment.reset(), []
        while len(actions) < STEPS and not observation.done:
            actions.append(rng.choice(observation.admissible))
            observation = environment.step(actions[-1])
        if not observation.done:
            return actions


def play_ours(environment: Any, actions: list[str]) -> float:
    """Seconds of the steps alone."""
    environment.reset()
    began = time.perf_counter()
    for action in actions:
        environment.snapshot()
        environment.step(action)
    return time.perf_counter() - began


def play_bare(engine: Any, actions: list[str]) -> float:
    """Seconds of the steps alone."""
    engine.reset()
    began = time.perf_counter()
    for action in actions:
        engine.step(action)
    return time.perf_counter() - began


def restore_seconds(environment: Any) -> float:
    """Seconds to come back to the state before the last of STEPS actions, from the end of an episode."""
    actions = walk(environment, random.Random(0))
    environment.reset()
    for action in actions[:-1]:
        environment.step(action)
    snapshot = environment.snapshot()
    environment.step(actions[-1])
    began = time.perf_counter()
    environment.restore(snapshot)
    return time.perf_counter() - began


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else GAMES)
