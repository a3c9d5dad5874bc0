"""Which runs a live pilot makes, in which order, and which of them are still to be made.

First the agent alone on the tasks of a split (`run_alone`), then every condition on the tasks of the pilot
split (`run_conditions`): condition by condition within a task, `random` after all others, since it fires as
often as `rollback` did. Promises: a run that the log has is not made again, so that a pilot that was stopped
anywhere resumes with the run it was at; a task is opened only where a run of it is missing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.environments import Environments
from monitorbench.config.pilot import Pilot
from monitorbench.intervention.agents.protocol import Agent
from monitorbench.intervention.critic.temperature import Temperature
from monitorbench.intervention.environments.open import open_tasks
from monitorbench.intervention.environments.protocol import Environment
from monitorbench.intervention.loop.best_of_two import best_of_two
from monitorbench.intervention.loop.episode import Run, episode_key, run_episode, run_limits
from monitorbench.intervention.loop.mechanisms import CONDITIONS, JudgeRun, open_trigger
from monitorbench.intervention.outcomes import BASELINE
from monitorbench.intervention.transcripts import Episode
from monitorbench.runs.keyed_log import KeyedLog
from monitorbench.runs.progress import progress

Log = KeyedLog[Episode]


class Common(NamedTuple):
    """What all runs of a pilot have in common."""

    environment: Environments
    agent: Agent
    pilot: Pilot
    seed: int
    """The first one; a task's further runs have the seeds after it."""
    key: str
    """A hash of the pilot's identity: a part of the key of every run."""


class CriticAtWork(NamedTuple):
    """The critic with the temperature that was fitted to it."""

    judge: JudgeRun
    temperature: Temperature


def run_alone(common: Common, split: str, n_tasks: int, log: Log) -> list[Episode]:
    """One run of each task of a split without a monitor, in the tasks' order."""
    runs = [Run(episode_key(common.key, split, index), BASELINE, common.seed) for index in range(n_tasks)]
    limits = run_limits(common.pilot)
    for index, environment in _pending_tasks(
        common, split, n_tasks, lambda index: runs[index].key in log.entries
    ):
        log.append(run_episode(environment, common.agent, runs[index], limits))
    return [log.entries[run.key] for run in runs]


def run_conditions(common: Common, critic: CriticAtWork, log: Log) -> float | None:
    """Every task and seed without intervention and under each condition of the pilot.

    Returns the chance with which `random` intervened; None where that is none of the conditions.
    """
    conditions = common.pilot.conditions
    _run_each(common, (BASELINE, *(one for one in conditions if one != "random")), critic, None, log)
    if "random" not in conditions:
        return None
    rate = _rate_of_rollback(log.entries.values())
    _run_each(common, ("random",), critic, rate, log)
    return rate


def _run_each(
    common: Common, conditions: Sequence[str], critic: CriticAtWork, random_rate: float | None, log: Log
) -> None:
    seeds = range(common.seed, common.seed + common.pilot.seeds)
    wanted = [(condition, seed) for seed in seeds for condition in conditions]

    def pending(index: int) -> list[Run]:
        named = [Run(episode_key(common.key, "pilot", index, *run), *run) for run in wanted]
        return [run for run in named if run.key not in log.entries]

    tasks = _pending_tasks(common, "pilot", common.pilot.tasks, lambda index: not pending(index))
    for index, environment in tasks:
        for run in pending(index):
            log.append(_run(common, environment, run, critic, random_rate))


def _run(
    common: Common, environment: Environment, run: Run, critic: CriticAtWork, random_rate: float | None
) -> Episode:
    limits = run_limits(common.pilot)
    if run.condition == "best_of_2":
        return best_of_two(environment, common.agent, run, limits, critic.judge)
    if run.condition == BASELINE:
        return run_episode(environment, common.agent, run, limits)
    condition = CONDITIONS[run.condition]
    trigger = open_trigger(condition.decider, *critic, common.pilot.tau, random_rate)
    return run_episode(environment, common.agent, run, limits, trigger, condition.mechanism)


def _rate_of_rollback(episodes: Iterable[Episode]) -> float:
    """Interventions for each judged step under `rollback`."""
    runs = [episode for episode in episodes if episode.condition == "rollback"]
    judged = sum(episode.judged_steps for episode in runs)
    return sum(episode.interventions for episode in runs) / judged if judged else 0.0


def _pending_tasks(
    common: Common, split: str, n_tasks: int, is_done: Callable[[int], bool]
) -> Iterator[tuple[int, Environment]]:
    """Each task with a run that is still to be made, by its number, open until the next is asked for."""
    if all(is_done(index) for index in range(n_tasks)):
        return
    seen = 0
    with progress(f"pilot: {split} tasks", n_tasks) as ticker:
        for index, make in enumerate(open_tasks(common.environment, n_tasks, common.seed, split)):
            seen += 1
            if not is_done(index):
                environment = make()
                try:
                    yield index, environment
                finally:
                    environment.close()
            ticker.advance()
    if seen != n_tasks:
        name = common.environment.name
        raise UserError(f"environment={name}: {seen} {split} tasks, asked for {n_tasks}")
