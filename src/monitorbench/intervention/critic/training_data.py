"""Runs with outcomes as training data for a critic: one sample a step, labelled with how the run ended.

As 2602.03338, section 3, labels steps. Written in the format of `dataset=jsonl` (docs/data-formats.md), split
by task: `train/sft.py dataset=jsonl dataset.path=critic_data.jsonl dataset.splits=[train,validation]
prompt=failure` trains a critic on it. Promises: no task on both sides of the split; a run that broke down,
and a step after which there is nothing left to do, is no example; what is written is read back equal.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.intervention.transcripts import Episode
from monitorbench.records import Label, Sample, Split
from monitorbench.runs.directory import compared_file
from monitorbench.runs.files import write_atomically
from monitorbench.sources import fetch
from monitorbench.sources.files import team_jsonl


def samples_of(episodes: Iterable[Episode], min_step: int = 0) -> list[Sample]:
    """Each run up to each of its steps from `min_step` (counted from 0) on, in order."""
    return [
        episode.sample(upto=step.step + 1)
        for episode in episodes
        if not episode.reason
        for step in episode.steps[:-1]  # the last one ended the run, or spent its budget
        if step.step >= min_step
    ]


def failed(samples: Sequence[Sample]) -> list[bool]:
    """Whether the run of each sample failed in the end."""
    return [sample.label is Label.MISBEHAVIOR for sample in samples]


def write_critic_data(path: Path, parts: Mapping[Split, Sequence[Sample]]) -> None:
    """Write samples as JSON lines; raises `ValueError` where a task is in two splits."""
    tasks = {split: {sample.group_id for sample in samples} for split, samples in parts.items()}
    if shared := set.intersection(*tasks.values()) if len(tasks) > 1 else set():
        raise ValueError(f"task {min(shared)!r} is in two splits")
    lines = [_row(sample, split) for split, samples in parts.items() for sample in samples]
    write_atomically(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def read_critic_data(path: Path) -> list[Sample]:
    """The training samples in a file that a pilot has written.

    Raises `UserError` where it can't be read or is not as the pilot wrote it, a line is no sample, or there
    is none of the train split.
    """
    files = fetch.local("pilot.critic_data", compared_file(path), team_jsonl.SUFFIXES, "error")
    found = [sample for sample in team_jsonl.load(files) if sample.split is Split.TRAIN]
    if not found:
        raise UserError(f"pilot.critic_data={path}: no sample of the train split; expected critic_data.jsonl")
    return found


def _row(sample: Sample, split: Split) -> dict[str, object]:
    row = sample.model_dump(
        mode="json",
        include={"pair_id", "group_id", "category", "task", "subcategory", "label", "label_source"}
        | {"subject_model", "source", "licence"},
    )
    for field in ("request", "response"):
        row[field] = [
            message.model_dump(mode="json", exclude_defaults=True) | {"content": message.content}
            for message in getattr(sample, field)
        ]
    return row | {"split": split.value}
