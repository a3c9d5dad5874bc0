"""Runs as training data: what a step is labelled with, and that issue 4's trainer can read it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from corridor import Corridor, FixedActions, scripted
from sealed import seal

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.corpus.build import ensure
from monitorbench.corpus.store import read_split
from monitorbench.intervention.critic import read_critic_data, samples_of, write_critic_data
from monitorbench.intervention.loop.agents import Scripted
from monitorbench.intervention.loop.episode import EpisodeRun, RunLimits, run_episode
from monitorbench.intervention.transcripts import Episode
from monitorbench.records import Label, Split

LIMITS = RunLimits(min_step=2, step_budget=15, max_interventions=3, warning="Look out.")


def episodes(first: int, n: int) -> list[Episode]:
    """Runs of a middling agent, two of each task."""
    agent = Scripted(scripted(0.2))
    return [
        run_episode(Corridor(number), agent, EpisodeRun("k", "none", seed), LIMITS)
        for number in range(first, first + n)
        for seed in (0, 1)
    ]


def test_each_step_has_the_label_of_its_runs_end():
    """2602.03338 labels steps so; the step after which all is over says nothing about what is to come."""
    good = run_episode(Corridor(), FixedActions(), EpisodeRun("k", "none", 0), LIMITS)
    bad = run_episode(Corridor(1), FixedActions("drop key"), EpisodeRun("k", "none", 0), LIMITS)
    found = samples_of([good, bad])
    assert [len(sample.response) // 2 for sample in found] == [1, 2, 3, 4, 1, 2, 3, 4, 5]
    assert [sample.label for sample in found] == [Label.BENIGN] * 4 + [Label.MISBEHAVIOR] * 5
    assert len(samples_of([good, bad], min_step=2)) == 2 + 3
    assert {sample.group_id for sample in found} == {"task-corridor/0", "task-corridor/1"}


def test_a_run_that_broke_down_is_no_example():
    """A crash of ours is no failure of the agent's to learn from."""
    broken = run_episode(Corridor(), FixedActions(" "), EpisodeRun("k", "none", 0), LIMITS)
    assert broken.reason
    assert samples_of([broken]) == []


def test_critic_data_that_changed_in_its_run_is_refused(tmp_path: Path):
    """A critic fitted to steps of which one was edited is another critic, under the first one's name."""
    file = tmp_path / "critic_data.jsonl"
    write_critic_data(file, {Split.TRAIN: samples_of(episodes(0, 4))})
    seal(tmp_path)
    assert read_critic_data(file)
    text = file.read_text()
    file.write_text(text.replace('"benign"', '"misbehavior"', 1))
    with pytest.raises(UserError, match=r"critic_data\.jsonl: not as it was written"):
        read_critic_data(file)


def test_the_trainers_dataset_reads_what_a_pilot_writes(compose_study: Callable[..., Study], tmp_path: Path):
    """Equal beginnings of runs that end differently, hostile text and all, have to get through the loader."""
    parts = {Split.TRAIN: samples_of(episodes(0, 12)), Split.VALIDATION: samples_of(episodes(100, 6))}
    file = tmp_path / "critic_data.jsonl"
    write_critic_data(file, parts)
    assert read_critic_data(file) == [
        sample.model_copy(update={"split": Split.TRAIN}) for sample in parts[Split.TRAIN]
    ]
    study = compose_study(
        "build",
        "dataset=jsonl",
        f"dataset.path={file}",
        "dataset.splits=[train,validation]",
        f"paths.data={tmp_path / 'data'}",
    )
    data = ensure(study, [Split.TRAIN, Split.VALIDATION])
    for split, samples in parts.items():
        built = read_split(data, split)
        assert {sample.id for sample in built} <= {sample.id for sample in samples}
        assert len(built) >= 0.9 * len(samples)


def test_no_task_is_on_both_sides(tmp_path: Path):
    """A temperature fitted on the critic's own training tasks believes it."""
    same = samples_of(episodes(0, 2))
    with pytest.raises(ValueError, match="two splits"):
        write_critic_data(tmp_path / "x.jsonl", {Split.TRAIN: same, Split.VALIDATION: same[:1]})


def test_a_file_that_is_none_is_one_line(tmp_path: Path):
    """`pilot.critic_data` is typed by a person."""
    with pytest.raises(UserError, match="does not exist"):
        read_critic_data(tmp_path / "none.jsonl")
    only = tmp_path / "only.jsonl"
    write_critic_data(only, {Split.VALIDATION: samples_of(episodes(0, 1))})
    with pytest.raises(UserError, match="no sample of the train split"):
        read_critic_data(only)
