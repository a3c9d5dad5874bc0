"""Which runs a live pilot makes, in which order, and which of them are still to be made.

First the agent alone on the tasks of a split (`run_alone`), then every condition on the tasks of the pilot
split (`run_conditions`): condition by condition within a task, `random` after all others, since it fires as
often as `rollback` did. Several tasks may run side by side (`side_by_side`). Promises: a run that the log has
is not made again, so that a pilot that was stopped anywhere resumes with the runs it was at; a task is opened
only where a run of it is missing.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.pilot import Environments, Pilot
from monitorbench.intervention.agents.protocol import Agent
from monitorbench.intervention.critic.temperature import Temperature
from monitorbench.intervention.environments.open import open_tasks
from monitorbench.intervention.environments.protocol import Environment
from monitorbench.intervention.environments.splits import Opens
from monitorbench.intervention.loop.best_of_two import best_of_two
from monitorbench.intervention.loop.episode import EpisodeRun, episode_key, run_episode, run_limits
from monitorbench.intervention.loop.mechanisms import CONDITIONS, JudgeRun, open_trigger
from monitorbench.intervention.loop.side_by_side import Going, Stoppable, work_through
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
    at_once: int = 1
    """How many tasks run side by side."""


class CriticAtWork(NamedTuple):
    """The critic with the temperature that was fitted to it."""

    judge: JudgeRun
    temperature: Temperature


def run_alone(common: Common, split: str, n_tasks: int, log: Log) -> list[Episode]:
    """One run of each task of a split without a monitor, in the tasks' order."""
    runs = [
        EpisodeRun(episode_key(common.key, split, index), BASELINE, common.seed) for index in range(n_tasks)
    ]
    limits = run_limits(common.pilot)

    def make(environment: Environment, agent: Agent, run: EpisodeRun) -> Episode:
        return run_episode(environment, agent, run, limits)

    _make_missing(common, split, [[run] for run in runs], make, log)
    return [log.entries[run.key] for run in runs]


def run_conditions(common: Common, critic: CriticAtWork, log: Log) -> float | None:
    """Every task and seed without intervention and under each condition of the pilot.

    Returns the chance with which `random` intervened; None where that is none of the conditions.
    """
    _run_each(common, _but_random(common.pilot), critic, None, log)
    if not (random := _random(common.pilot)):
        return None
    rate = _rate_of_rollback(log.entries.values())
    _run_each(common, random, critic, rate, log)
    return rate


def in_order(key: str, pilot: Pilot, seed: int, episodes: Iterable[Episode]) -> list[Episode]:
    """The runs of `run_conditions` in the order in which they are made one after the other.

    `key` and `seed` are those of `Common`. The log has them in the order in which they ended.
    """
    parts = [one for one in (_but_random(pilot), _random(pilot)) if one]
    keys = [run.key for part in parts for runs in _runs(key, pilot, seed, part) for run in runs]
    place = {key: number for number, key in enumerate(keys)}
    return sorted(episodes, key=lambda episode: place[episode.key])


def _but_random(pilot: Pilot) -> tuple[str, ...]:
    return (BASELINE, *(one for one in pilot.conditions if one != "random"))


def _random(pilot: Pilot) -> tuple[str, ...]:
    return tuple(one for one in pilot.conditions if one == "random")


def _runs(key: str, pilot: Pilot, first: int, conditions: Sequence[str]) -> list[list[EpisodeRun]]:
    """The runs of each task."""
    wanted = [(condition, seed) for seed in range(first, first + pilot.seeds) for condition in conditions]
    return [
        [EpisodeRun(episode_key(key, "pilot", index, *run), *run) for run in wanted]
        for index in range(pilot.tasks)
    ]


def _run_each(
    common: Common, conditions: Sequence[str], critic: CriticAtWork, random_rate: float | None, log: Log
) -> None:
    limits = run_limits(common.pilot)

    def make(environment: Environment, agent: Agent, run: EpisodeRun) -> Episode:
        if run.condition == "best_of_2":
            return best_of_two(environment, agent, run, limits, critic.judge)
        if run.condition == BASELINE:
            return run_episode(environment, agent, run, limits)
        condition = CONDITIONS[run.condition]
        trigger = open_trigger(condition.decider, *critic, common.pilot.tau, random_rate)
        return run_episode(environment, agent, run, limits, trigger, condition.mechanism)

    _make_missing(common, "pilot", _runs(common.key, common.pilot, common.seed, conditions), make, log)


def _rate_of_rollback(episodes: Iterable[Episode]) -> float:
    """Interventions for each judged step under `rollback`."""
    runs = [episode for episode in episodes if episode.condition == "rollback"]
    judged = sum(episode.judged_steps for episode in runs)
    return sum(episode.interventions for episode in runs) / judged if judged else 0.0


def _make_missing(
    common: Common,
    split: str,
    wanted: Sequence[Sequence[EpisodeRun]],
    make: Callable[[Environment, Agent, EpisodeRun], Episode],
    log: Log,
) -> None:
    """Make those of each task's runs that the log has not."""
    missing = [[run for run in runs if run.key not in log.entries] for runs in wanted]
    if not any(missing):
        return
    tasks = list(open_tasks(common.environment, len(wanted), common.seed, split))
    if len(tasks) != len(wanted):
        name = common.environment.name
        raise UserError(f"environment={name}: {len(tasks)} {split} tasks, asked for {len(wanted)}")

    def work(opens: Opens, runs: Sequence[EpisodeRun], going: Going) -> None:
        environment = opens()
        try:
            for run in runs:
                if going.ending.is_set():
                    return
                episode = make(environment, Stoppable(common.agent, going), run)
                going.keep(partial(log.append, episode))
        finally:
            environment.close()

    todo = [partial(work, opens, runs) for opens, runs in zip(tasks, missing, strict=True) if runs]
    with progress(f"pilot: {split} tasks", len(tasks)) as ticker:
        ticker.advance(len(tasks) - len(todo))
        work_through(todo, common.at_once, ticker.advance, common.agent.close)
