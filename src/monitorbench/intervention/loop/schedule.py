"""Which runs a live pilot makes, in which order, how many at once, and which of them are still to be made.

First the agent alone on the tasks of a split (`run_alone`), then every condition on the tasks of the pilot
split (`run_conditions`): condition by condition within a task, `random` after all others, since it fires as
often as `rollback` did. Promises: a run that the log has is not made again, so that a pilot that was stopped
anywhere resumes with the runs it was at; a task is opened only where a run of it is missing.

Several tasks run at once, each in a thread of its own: as many as the engine of the agent (of the critic,
where the agent has none) takes requests at once, `pilot.concurrency` at most, and one, in this thread, where
the environment does not declare that its tasks may run side by side. Promises: the first task that fails ends
the rest, whose runs at hand are finished and kept, and its error is raised; after an interrupt the runs at
hand end at their next decision, and none is kept.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.engine import Engine
from monitorbench.config.monitor import Monitor
from monitorbench.config.pilot import Agent as AgentSettings
from monitorbench.config.pilot import Environments, Pilot, ScriptedAgent
from monitorbench.intervention.environments.tasks import Environment, Opens, open_tasks
from monitorbench.intervention.loop.agents import Agent, ChosenAction, Policy, Situation
from monitorbench.intervention.loop.episode import (
    EpisodeRun,
    best_of_two,
    episode_key,
    run_episode,
    run_limits,
)
from monitorbench.intervention.loop.mechanisms import CONDITIONS, JudgeRun, open_trigger
from monitorbench.intervention.outcomes import BASELINE
from monitorbench.intervention.temperature import Temperature
from monitorbench.intervention.transcripts import Episode
from monitorbench.runs.keyed_log import KeyedLog
from monitorbench.runs.progress import progress


def tasks_at_once(
    environment: Environments, agent: AgentSettings, engine: Engine, monitor: Monitor, most: int | None
) -> int:
    """How many tasks of a pilot run side by side: at least 1, at most `most`."""
    if not environment.side_by_side:
        return 1
    if isinstance(agent, ScriptedAgent):
        requests = critic_requests(engine, monitor)
    else:
        requests = agent.engine.concurrency
    return requests if most is None else min(requests, most)


def critic_requests(engine: Engine, monitor: Monitor) -> int:
    """How many runs the study's critic may be asked about at once; 1 where it works in this process."""
    return engine.concurrency if monitor.kind == "language_model" else 1


class Abandoned(BaseException):
    """The pilot was interrupted: this run ends here and is not counted."""


class Going:
    """Whether tasks that run side by side are to go on."""

    def __init__(self) -> None:
        self.ending = threading.Event()
        """No further run is to be begun."""
        self._abandoned = threading.Event()
        self._keeping = threading.Lock()

    def abandon(self) -> None:
        """End the runs at hand, too, at their next decision."""
        self.ending.set()
        self._abandoned.set()

    def check(self) -> None:
        """Raise `Abandoned` where the run at hand is to end."""
        if self._abandoned.is_set():
            raise Abandoned

    def keep(self, keep: Callable[[], None]) -> None:
        """Keep a finished run, one at a time; raises `Abandoned` where it came too late."""
        with self._keeping:
            self.check()
            keep()


class Stoppable:
    """An `Agent` that decides no more once the pilot is abandoned."""

    def __init__(self, agent: Agent, going: Going) -> None:
        self._agent, self._going = agent, going

    @property
    def name(self) -> str:
        """See `Agent.name`."""
        return self._agent.name

    def begin(self, task: str, seed: int, attempt: int = 0) -> Policy:
        """See `Agent.begin`."""
        policy = self._agent.begin(task, seed, attempt)

        def decide(situation: Situation) -> ChosenAction:
            self._going.check()
            return policy(situation)

        return decide

    def close(self) -> None:
        """See `Agent.close`."""
        self._agent.close()


def work_through(
    tasks: Sequence[Callable[[Going], None]],
    at_once: int,
    advance: Callable[[], None],
    interrupt: Callable[[], None],
) -> None:
    """Do the tasks, at most so many at once; `advance` is called in this thread after each.

    `interrupt` cancels what the runs wait for. Raises what the first task to fail raised.
    """
    going = Going()
    if at_once == 1:
        for task in tasks:
            task(going)
            advance()
        return

    def run_task(task: Callable[[Going], None]) -> None:
        if going.ending.is_set():
            return
        try:
            task(going)
        except BaseException:
            going.ending.set()
            raise

    failed: BaseException | None = None
    pool = ThreadPoolExecutor(at_once, thread_name_prefix="pilot task")
    try:
        for done in as_completed([pool.submit(run_task, task) for task in tasks]):
            failed = failed or done.exception()
            if failed is None:
                advance()
    except BaseException:
        going.abandon()
        interrupt()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    if failed is not None:
        raise failed


Log = KeyedLog[Episode]


class Common(NamedTuple):
    """Parts and settings that all runs of a pilot share."""

    environment: Environments
    agent: Agent
    pilot: Pilot
    seed: int
    """The first one; a task's further runs have the seeds after it."""
    key: str
    """A hash of the pilot's identity: a part of the key of every run."""
    at_once: int = 1
    """Number of tasks that run side by side."""


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
    parts = [conditions for conditions in (_but_random(pilot), _random(pilot)) if conditions]
    keys = [run.key for batch in parts for runs in _runs(key, pilot, seed, batch) for run in runs]
    place = {key: number for number, key in enumerate(keys)}
    return sorted(episodes, key=lambda episode: place[episode.key])


def _but_random(pilot: Pilot) -> tuple[str, ...]:
    return (BASELINE, *(condition for condition in pilot.conditions if condition != "random"))


def _random(pilot: Pilot) -> tuple[str, ...]:
    return tuple(condition for condition in pilot.conditions if condition == "random")


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
