"""A live pilot: one agent, one critic, one kind of environment, every condition on the same tasks and seeds.

First the agent runs alone on tasks of the environment's `train` and `validation` splits: the critic is fitted
to the one, its temperature to the other. Then every task of the `pilot` split is run without intervention and
under each condition (`schedule`). Promises: tasks of the three splits are disjoint (`open_tasks`); every
finished run is a whole line of a log, so that a pilot that was stopped anywhere resumes with the run it was
at; equal settings give equal runs.
"""

import logging
import shlex
import threading
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from monitorbench.config.pilot import Pilot
from monitorbench.config.study import Study
from monitorbench.intervention.critic import (
    Critic,
    CriticJudgement,
    critic_identity,
    open_critic,
    read_critic_data,
    samples_of,
    write_critic_data,
)
from monitorbench.intervention.loop.agents import agent_identity, agent_name, open_agent
from monitorbench.intervention.loop.mechanisms import JudgeRun
from monitorbench.intervention.loop.schedule import (
    Common,
    CriticAtWork,
    critic_requests,
    in_order,
    run_alone,
    run_conditions,
    tasks_at_once,
)
from monitorbench.intervention.outcomes import Outcome, write_outcomes
from monitorbench.intervention.temperature import calibrate
from monitorbench.intervention.transcripts import EPISODES, Episode
from monitorbench.judging.serving.served import reach
from monitorbench.records import Sample, Split
from monitorbench.runs.directory import RunDirectory
from monitorbench.runs.files import content_hash, write_json
from monitorbench.runs.keyed_log import open_log, read_log

LIVE_VERSION = 3
"""Raise this with every change to agents, environments, critics, mechanisms or the loop after which equal
settings give other runs: finished pilots are then no longer reused. `test_live_version` fails where that was
forgotten."""
_DECIDES_NO_RUN = {"statistics", "critic_data", "prompt", "concurrency"}
_log = logging.getLogger(__name__)


class LiveRuns(NamedTuple):
    """Directory of a live pilot's runs, and their outcomes."""

    directory: Path
    outcomes: list[Outcome]


def run_live(study: Study) -> LiveRuns:
    """Make the runs of the study's live pilot that are still missing.

    They lie in `runs/episodes/<environment>-<agent>-<monitor>-<hash>`. Raises `UserError` and `ConfigError`
    for what a person has to fix: no tasks, no weights, runs to which no critic can be fitted.
    """
    fitted_to = read_critic_data(study.pilot.critic_data) if study.pilot.critic_data else []
    run = _directory(reach(study, waits=False), fitted_to)
    if not run.done and (reached := reach(study)) is not study:
        study, run = reached, _directory(reached, fitted_to)
    if run.done:
        _log.info("pilot: reusing %s", run.path)
        outcomes = _outcomes(study.pilot, study.seed, run, read_log(run.path / EPISODES, Episode))
        _count_broken(outcomes, run.path)
        return LiveRuns(run.path, outcomes)
    most = study.pilot.concurrency
    at_once = tasks_at_once(study.environment, study.agent, study.engine, study.monitor, most)
    with run.recording(study) as results, open_agent(study.agent, study.paths.models, at_once) as agent:
        key = content_hash(run.identity)
        common = Common(study.environment, agent, study.pilot, study.seed, key, at_once)
        n_training = study.pilot.n_training_tasks(fits=study.monitor.kind == "bag_of_words")
        with open_log(run.path / "runs_alone.jsonl", Episode) as log:
            alone = {
                "train": run_alone(common, "train", n_training, log),
                "validation": run_alone(common, "validation", study.pilot.validation_tasks, log),
            }
        training, validation = samples_of(alone["train"]), samples_of(alone["validation"])
        write_critic_data(
            run.path / "critic_data.jsonl", {Split.TRAIN: training, Split.VALIDATION: validation}
        )
        monitor, engine, models = study.monitor, study.engine, study.paths.models
        fitted_to = fitted_to or training
        with open_critic(monitor, engine, study.pilot.prompt, models, fitted_to, run.path) as critic:
            calibration = calibrate(
                critic,
                samples_of(alone["validation"], study.pilot.min_step),
                monitor=study.monitor.name,
                agent=agent_name(study.agent),
                tau=study.pilot.tau,
            )
            write_json(run.path / "critic.json", calibration.report)
            results["critic"] = calibration.report
            working = CriticAtWork(
                _judge_run(critic, critic_requests(study.engine, study.monitor)), calibration.temperature
            )
            with open_log(run.path / EPISODES, Episode) as log:
                random_rate = run_conditions(common, working, log)
                episodes = list(log.entries.values())
        outcomes = _outcomes(study.pilot, study.seed, run, episodes)
        write_outcomes(run.path / "outcomes.jsonl", outcomes)
        results |= {
            "n_runs": len(outcomes),
            "n_broken_down": _count_broken(outcomes, run.path),
            "random_rate": random_rate,
            "baseline_success": {
                split: fmean(episode.success for episode in episodes)
                for split, episodes in alone.items()
                if episodes
            },
        }
    return LiveRuns(run.path, outcomes)


def _directory(study: Study, fitted_to: Sequence[Sample]) -> RunDirectory:
    name = f"{study.environment.name}-{agent_name(study.agent)}-{study.monitor.name}"
    # All that decides the runs; statistics don't, nor does the place of a file.
    identity = {
        "environment": study.environment.identity(),
        "agent": agent_identity(study.agent),
        "critic": critic_identity(study.monitor, study.engine, study.pilot.prompt),
        "critic_data": content_hash([[sample.id, sample.label] for sample in fitted_to]) if fitted_to else "",
        "pilot": study.pilot.model_dump(mode="json", exclude=_DECIDES_NO_RUN),
        "seed": study.seed,
        "version": LIVE_VERSION,
    }
    return RunDirectory(study.paths.runs / "episodes", name, identity)


def _outcomes(pilot: Pilot, seed: int, run: RunDirectory, episodes: Sequence[Episode]) -> list[Outcome]:
    ordered = in_order(content_hash(run.identity), pilot, seed, episodes)
    return [episode.outcome for episode in ordered]


def _judge_run(critic: Critic, requests: int) -> JudgeRun:
    """The critic's judgement of a run, asked for at most so many times at once."""
    free = threading.Semaphore(requests)

    def judge(sample: Sample) -> CriticJudgement:
        with free:
            return critic.judge([sample])[0]

    return judge


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
