"""What equal settings of a live pilot lead to, pinned beside the version that says so."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from corridor import FixedActions, open_corridors

from monitorbench.config.study import Study
from monitorbench.intervention.critic import CriticJudgement
from monitorbench.intervention.environments.published_questions import SearchQuestion, SolvedProblem
from monitorbench.intervention.environments.questions import CalculatedQuestion, SearchedQuestion
from monitorbench.intervention.loop import live, schedule
from monitorbench.intervention.loop.episode import EpisodeRun, RunLimits, run_episode
from monitorbench.intervention.loop.live import LIVE_VERSION, run_live
from monitorbench.intervention.loop.mechanisms import OracleTrigger
from monitorbench.intervention.transcripts import EPISODES, Episode
from monitorbench.records import Sample
from monitorbench.runs.keyed_log import read_log


class Golden(NamedTuple):
    """SHA-256 of all that the runs below lead to."""

    pilot: str
    questions: str


PINNED = {
    3: Golden(
        pilot="71dc03439d88c9845766f6accb6218344d2fffd7b2cbac67e3a56428599df51b",
        questions="1637da5ee6285238ad5ebbae453535150701d754609e476c326bea7818b282e9",
    ),
    2: Golden(
        pilot="3ff70e3bfbce5610b402f0543714d3797c092fe7d8d0ab1d8f6f8b58c69bf515",
        questions="1637da5ee6285238ad5ebbae453535150701d754609e476c326bea7818b282e9",
    ),
    1: Golden(
        pilot="1b82efa24f74d87477eb5f98a1583060211dbf29efcb9e9a858672bce565674f",
        questions="5f134bc89876ed184d73774c1d959f6b6d9be4bfdd2cd0b1d65fcede68b24cb5",
    ),
}
"""The latest version's; earlier ones may stay as a record."""
ADVICE = (
    f"equal settings give other runs than under LIVE_VERSION={LIVE_VERSION}: raise it in loop/live.py, "
    "and add the new version to PINNED, with"
)


class ByWords:
    """A critic that counts wrong steps in a run: the same on every machine, unlike one that is fitted."""

    def judge(self, samples: Sequence[Sample]) -> list[CriticJudgement]:
        """P(fail) grows with every action that led nowhere."""
        return [CriticJudgement(self._p_fail(sample), tokens=len(sample.response)) for sample in samples]

    def _p_fail(self, sample: Sample) -> float:
        actions = [message.content for message in sample.response]
        wrong = sum(actions.count(action) for action in ("back", "wait")) + 3 * actions.count("drop key")
        return (1 + wrong) / (3 + 2 * wrong)


@contextmanager
def open_by_words(*_: Any) -> Iterator[ByWords]:
    """In place of `open_critic`."""
    yield ByWords()


def sha256(found: object) -> str:
    """The hash of what can be written as JSON."""
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()


def what_it_led_to(directory: Path) -> list[Any]:
    """Every run and every training sample, without times, and numbers as far as they are alike everywhere."""
    left_out = {"key", "seconds"}  # the key hashes the installed packages too
    runs = []
    for log in ("runs_alone.jsonl", EPISODES):
        for episode in read_log(directory / log, Episode):
            run = episode.model_dump(mode="json", exclude=left_out)
            for step in run["steps"]:
                for field in ("p_fail", "calibrated"):
                    step[field] = None if step[field] is None else f"{step[field]:.3f}"
            runs.append(run)
    return [runs, (directory / "critic_data.jsonl").read_text(encoding="utf-8")]


def test_another_behavior_needs_another_version(
    compose_study: Callable[..., Study], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A pilot that was made by other code would be reused, and compared with runs that it is not alike to."""
    monkeypatch.setattr(schedule, "open_tasks", open_corridors)
    monkeypatch.setattr(live, "open_critic", open_by_words)
    study = compose_study(
        "pilot",
        "monitor=bag_of_words",
        "agent.error_rate=0.3",
        "agent.persistence=0.5",
        "agent.doubt=0.3",
        "pilot.conditions=[rollback,append,rollback_uncalibrated,append_uncalibrated,random,oracle,best_of_2]",
        "pilot.tasks=6",
        "pilot.seeds=2",
        "pilot.training_tasks=4",
        "pilot.validation_tasks=12",
        "pilot.tau=0.4",
        "pilot.min_step=1",
        "pilot.step_budget=12",
        "pilot.max_interventions=3",
        "pilot.warning=Look out.",
        f"paths.runs={tmp_path / 'runs'}",
    )
    found = run_live(study)
    intervened = {run.condition for run in found.outcomes if run.interventions}
    assert intervened == {*study.pilot.conditions} - {"best_of_2"}, "the golden pilot shows every mechanism"
    digest = sha256(what_it_led_to(found.directory))
    assert PINNED[LIVE_VERSION].pilot == digest, f"{ADVICE} pilot={digest!r}"


PARAGRAPHS = (
    "Ada Lovelace wrote notes on the engine. She was born in London. She died there too.",
    "Charles Babbage designed the engine. He was born in London as well.",
)
OTHERS = (
    "Turin is a city in Italy. Lagrange was born there.",
    "The engine was never built. It would have run.",
)


def test_another_behavior_of_the_questions_needs_another_version():
    """Their searches and their arithmetic are ours alone; games bring their own version in a task's name."""
    question = SearchQuestion("q/1", "Who wrote notes on the engine?", "Ada Lovelace", PARAGRAPHS)
    problem = SolvedProblem("p/1", "What is 3 times 4, less 2?", Fraction(10), ("3*4", "12-2"), False)
    searching = (
        *("search[Babbage]", "lookup[london]", "lookup[london]"),
        *("look[x]", "search[zzz]", "search[Italy]"),
    )
    calculating = ("calculate[3*4]", "calculate[1/0]", "calculate[20% * 5]", "wait")
    limits = RunLimits(min_step=0, step_budget=9, max_interventions=1, warning="Look out.")
    runs = []
    for world, actions, ends in (
        (SearchedQuestion(question, OTHERS, None), searching, ("finish[the ada lovelace!]", "finish[Ada]")),
        (SearchedQuestion(question, OTHERS, 0.6), searching, ("finish[Ada]", "finish[Babbage]")),
        (CalculatedQuestion(problem), calculating, ("finish[$10.00]", "finish[10 or 12]")),
    ):
        for end in ends:
            agent = FixedActions(*actions, end)
            found = run_episode(world, agent, EpisodeRun("k", "none", 0), limits, OracleTrigger(), "rollback")
            runs.append(found.model_dump(mode="json", exclude={"seconds"}))
    digest = sha256(runs)
    assert PINNED[LIVE_VERSION].questions == digest, f"{ADVICE} questions={digest!r}"
