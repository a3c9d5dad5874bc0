"""A live pilot: one agent, one critic, one kind of environment, every condition on the same tasks and seeds.

First the agent runs alone on tasks of the environment's `train` and `validation` splits: the critic is fitted
to the one, its temperature to the other. Then every task of the `pilot` split is run without intervention and
under each condition. Promises: tasks of the three splits are disjoint (`open_tasks`); every finished run is a
whole line of a log, so that a pilot that was stopped anywhere goes on with the run it was at; equal settings
give equal runs.
"""

import logging
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.pilot import ConditionName
from monitorbench.config.study import Study
from monitorbench.corpus.code import sha256_of_code
from monitorbench.intervention.agents.open import agent_identity, agent_name, open_agent
from monitorbench.intervention.agents.protocol import Agent
from monitorbench.intervention.critic.critic import Critic, Judgement, critic_identity, open_critic
from monitorbench.intervention.critic.temperature import Temperature, fit_temperature, quality
from monitorbench.intervention.critic.training_data import (
    failed,
    read_critic_data,
    samples_of,
    write_critic_data,
)
from monitorbench.intervention.environments.open import open_tasks
from monitorbench.intervention.environments.protocol import Environment
from monitorbench.intervention.loop.best_of_two import best_of_two
from monitorbench.intervention.loop.episode import Run, episode_key, rules, run_episode
from monitorbench.intervention.loop.mechanisms import (
    CONDITIONS,
    CriticTrigger,
    Decider,
    OracleTrigger,
    RandomTrigger,
    Trigger,
)
from monitorbench.intervention.loop.transcripts import EPISODES, Episode
from monitorbench.intervention.outcomes import BASELINE, Outcome, write_outcomes
from monitorbench.judging.served import described, reach
from monitorbench.records import Sample, Split
from monitorbench.runs.directory import RunDirectory
from monitorbench.runs.files import content_hash, write_json
from monitorbench.runs.keyed_log import KeyedLog, open_log, read_log
from monitorbench.runs.progress import progress

_CODE = (
    "intervention/agents",
    "intervention/environments",
    "intervention/loop/best_of_two.py",
    "intervention/critic/critic.py",
    "intervention/critic/data.py",
    "intervention/loop/episode.py",
    "intervention/loop/live.py",
    "intervention/loop/mechanisms.py",
    "intervention/critic/temperature.py",
    "intervention/loop/trajectory.py",
    "intervention/loop/transcripts.py",
)
_log = logging.getLogger(__name__)


class LiveRuns(NamedTuple):
    """Where the runs of a live pilot lie, and how they ended."""

    directory: Path
    outcomes: list[Outcome]


def run_live(study: Study) -> LiveRuns:
    """Run what is owed of the study's live pilot; `runs/episodes/<environment>-<agent>-<monitor>-<hash>`.

    Raises `UserError` and `ConfigError` for what a person has to mend: no tasks, no weights, runs to which no
    critic can be fitted.
    """
    fitted_to = read_critic_data(study.pilot.critic_data) if study.pilot.critic_data else []
    run = _directory(described(study), fitted_to)
    if not run.done and (reached := reach(study)) is not study:
        study, run = reached, _directory(reached, fitted_to)
    if run.done:
        _log.info("pilot: reusing %s", run.path)
        outcomes = _outcomes(read_log(run.path / EPISODES, Episode))
        _count_broken(outcomes, run.path)
        return LiveRuns(run.path, outcomes)
    with run.recording(study) as results, open_agent(study.agent, study.paths.models) as agent:
        key = content_hash(run.identity)
        alone = _runs_alone(study, agent, run.path, key)
        training, validation = samples_of(alone["train"]), samples_of(alone["validation"])
        write_critic_data(
            run.path / "critic_data.jsonl", {Split.TRAIN: training, Split.VALIDATION: validation}
        )
        with open_critic(study, fitted_to or training, run.path) as critic:
            judged_from = samples_of(alone["validation"], study.pilot.min_step)
            temperature = _calibrate(study, critic, judged_from, run.path, results)
            with open_log(run.path / EPISODES, Episode) as log:
                pilot = _Pilot(study, agent, critic, temperature, log, key)
                pilot.play()
                episodes = list(log.entries.values())
        outcomes = _outcomes(episodes)
        write_outcomes(run.path / "outcomes.jsonl", outcomes)
        results |= {
            "n_runs": len(outcomes),
            "n_broken_down": _count_broken(outcomes, run.path),
            "random_rate": pilot.random_rate,
            "baseline_success": {split: _success(episodes) for split, episodes in alone.items() if episodes},
        }
    return LiveRuns(run.path, outcomes)


def _directory(study: Study, fitted_to: Sequence[Sample]) -> RunDirectory:
    name = f"{study.environment.name}-{agent_name(study.agent)}-{study.monitor.name}"
    return RunDirectory(study.paths.runs / "episodes", name, _identity(study, fitted_to))


def _identity(study: Study, fitted_to: Sequence[Sample]) -> dict[str, Any]:
    """What decides the runs; statistics don't, nor does the place of a file."""
    pilot = study.pilot.model_dump(mode="json", exclude={"statistics", "critic_data", "prompt"})
    return {
        "environment": study.environment.identity(),
        "agent": agent_identity(study.agent),
        "critic": critic_identity(study),
        "critic_data": content_hash([[sample.id, sample.label] for sample in fitted_to]) if fitted_to else "",
        "pilot": pilot,
        "seed": study.seed,
        "code": sha256_of_code(_CODE),
    }


def _runs_alone(study: Study, agent: Agent, directory: Path, key: str) -> dict[str, list[Episode]]:
    """The agent without a monitor on the tasks of the other two splits, one run each."""
    fits = study.monitor.kind == "bag_of_words"
    n_training = study.pilot.n_training_tasks(fits=fits)
    counts = {"train": n_training, "validation": study.pilot.validation_tasks}
    with open_log(directory / "runs_alone.jsonl", Episode) as log:
        return {split: _run_alone(study, agent, split, count, key, log) for split, count in counts.items()}


def _run_alone(
    study: Study, agent: Agent, split: str, count: int, key: str, log: KeyedLog[Episode]
) -> list[Episode]:
    runs = [Run(episode_key(key, split, index), BASELINE, study.seed) for index in range(count)]
    bounds = rules(study.pilot)
    for index, environment in _owed_tasks(study, split, count, lambda index: runs[index].key in log.entries):
        log.append(run_episode(environment, agent, runs[index], bounds))
    return [log.entries[run.key] for run in runs]


def _owed_tasks(
    study: Study, split: str, count: int, is_done: Callable[[int], bool]
) -> Iterator[tuple[int, Environment]]:
    """Each task that still has to be run, open."""
    if all(is_done(index) for index in range(count)):
        return
    seen = 0
    with progress(f"pilot: {split} tasks", count) as ticker:
        for index, make in enumerate(open_tasks(study.environment, count, study.seed, split)):
            seen += 1
            if not is_done(index):
                environment = make()
                try:
                    yield index, environment
                finally:
                    environment.close()
            ticker.advance()
    if seen != count:
        raise UserError(f"environment={study.environment.name}: {seen} {split} tasks, asked for {count}")


def _calibrate(
    study: Study, critic: Critic, samples: Sequence[Sample], directory: Path, results: dict[str, Any]
) -> Temperature:
    """One temperature for the agent; `critic.json` has it, and what it changes on the same runs."""
    judgements = critic.judge(samples)
    known = [
        (judgement.p_fail, fails)
        for judgement, fails in zip(judgements, failed(samples), strict=True)
        if judgement.p_fail is not None
    ]
    if samples and not known:
        raise UserError(
            f"monitor={study.monitor.name}: no P(fail) for any of {len(samples)} validation steps "
            f"({judgements[0].reason}); expected a monitor and an engine that give probabilities"
        )
    p_fail, fails = [p for p, _ in known], [fail for _, fail in known]
    found = fit_temperature(p_fail, fails)
    if found.reason:
        _log.warning("pilot: temperature %g: %s", found.value, found.reason)
    after = [found.calibrated(p) for p in p_fail]
    report = {
        "agent": agent_name(study.agent),
        "temperature": found._asdict(),
        "n_unscored": len(samples) - len(known),
        "tau": study.pilot.tau,
        "before": quality(p_fail, fails, study.pilot.tau)._asdict(),
        "after": quality(after, fails, study.pilot.tau)._asdict(),
    }
    write_json(directory / "critic.json", report)
    results["critic"] = report
    return found


class _Pilot:
    """The runs of the pilot split: condition by condition within a task, `random` after all others."""

    def __init__(
        self,
        study: Study,
        agent: Agent,
        critic: Critic,
        temperature: Temperature,
        log: KeyedLog[Episode],
        key: str,
    ) -> None:
        self._study, self._agent, self._log, self._key = study, agent, log, key
        self._critic, self._temperature = critic, temperature
        self.random_rate: float | None = None

    def play(self) -> None:
        conditions = self._study.pilot.conditions
        first = [condition for condition in conditions if condition != "random"]
        self._play(f"{len(first)} conditions", (BASELINE, *first))
        if "random" in conditions:
            self.random_rate = self._rate_of_rollback()
            self._play("random", ("random",))

    def _play(self, what: str, conditions: Sequence[ConditionName | str]) -> None:
        pilot = self._study.pilot
        seeds = range(self._study.seed, self._study.seed + pilot.seeds)
        runs = [(condition, seed) for seed in seeds for condition in conditions]

        def owed(index: int) -> list[Run]:
            named = [Run(episode_key(self._key, "pilot", index, *run), *run) for run in runs]
            return [run for run in named if run.key not in self._log.entries]

        tasks = _owed_tasks(self._study, "pilot", pilot.tasks, lambda index: not owed(index))
        for index, environment in tasks:
            for run in owed(index):
                self._log.append(self._episode(environment, run))

    def _episode(self, environment: Environment, run: Run) -> Episode:
        bounds = rules(self._study.pilot)
        if run.condition == "best_of_2":
            return best_of_two(environment, self._agent, run, bounds, self._judge)
        if run.condition == BASELINE:
            return run_episode(environment, self._agent, run, bounds)
        condition = CONDITIONS[run.condition]
        trigger = self._trigger(condition.decider)
        return run_episode(environment, self._agent, run, bounds, trigger, condition.mechanism)

    def _trigger(self, decider: Decider) -> Trigger:
        match decider:
            case "random":
                assert self.random_rate is not None  # rollback has been run
                return RandomTrigger(self.random_rate)
            case "oracle":
                return OracleTrigger()
            case "calibrated" | "raw":
                tau = self._study.pilot.tau
                return CriticTrigger(self._judge, self._temperature, tau, raw=decider == "raw")

    def _judge(self, sample: Sample) -> Judgement:
        (judgement,) = self._critic.judge([sample])
        return judgement

    def _rate_of_rollback(self) -> float:
        """Interventions a judged step under `rollback`."""
        runs = [episode for episode in self._log.entries.values() if episode.condition == "rollback"]
        judged = sum(episode.judged_steps for episode in runs)
        return sum(episode.interventions for episode in runs) / judged if judged else 0.0


def _outcomes(episodes: Sequence[Episode]) -> list[Outcome]:
    return [episode.outcome for episode in episodes]


def _count_broken(outcomes: Sequence[Outcome], directory: Path) -> int:
    """How many runs broke down; warns of them, and says how to have the runs made again."""
    broken = sum(bool(outcome.reason) for outcome in outcomes)
    if broken:
        _log.warning(
            "pilot: %d of %d runs broke down and count as failures, with their reasons in %s; to have all "
            "runs made again: rm -r %s, then the same command",
            broken,
            len(outcomes),
            directory / "outcomes.jsonl",
            shlex.quote(str(directory)),
        )
    return broken


def _success(episodes: Sequence[Episode]) -> float:
    return sum(episode.success for episode in episodes) / len(episodes)
