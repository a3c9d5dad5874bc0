"""What equal settings of a live pilot lead to, pinned beside the version that says so."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from corridor import open_corridors

from monitorbench.config.study import Study
from monitorbench.intervention.critic.critic import Judgement
from monitorbench.intervention.loop import live, schedule
from monitorbench.intervention.loop.live import LIVE_VERSION, run_live
from monitorbench.intervention.loop.transcripts import EPISODES, Episode
from monitorbench.records import Sample
from monitorbench.runs.keyed_log import read_log

PINNED = {1: "1b82efa24f74d87477eb5f98a1583060211dbf29efcb9e9a858672bce565674f"}
"""Of each version, the SHA-256 of all that the pilot below leads to. A version that was released stays."""


class ByWords:
    """A critic that counts wrong steps in a run: the same on every machine, unlike one that is fitted."""

    def judge(self, samples: Sequence[Sample]) -> list[Judgement]:
        """P(fail) grows with every action that led nowhere."""
        return [Judgement(self._p_fail(sample), tokens=len(sample.response)) for sample in samples]

    def _p_fail(self, sample: Sample) -> float:
        actions = [message.content for message in sample.response]
        wrong = sum(actions.count(action) for action in ("back", "wait")) + 3 * actions.count("drop key")
        return (1 + wrong) / (3 + 2 * wrong)


@contextmanager
def open_by_words(*_: Any) -> Iterator[ByWords]:
    """In place of `open_critic`."""
    yield ByWords()


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
    text = json.dumps(what_it_led_to(found.directory), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert PINNED.get(LIVE_VERSION) == digest, (
        f"equal settings give other runs than under LIVE_VERSION={LIVE_VERSION}: raise it in loop/live.py, "
        f"and add the new version with {digest} to PINNED"
    )
