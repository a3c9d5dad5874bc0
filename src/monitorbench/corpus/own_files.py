"""`dataset=jsonl`, `inspect_log` and `automonitor_bench`: samples out of files that somebody points at.

A sample that names its split stays in it. The others go by whole groups and fixed shares, a group that
is in a split already to that one. The authors' benchmark is a test split as a whole.
"""

import difflib
import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.datasets import (
    AutomonitorBenchDataset,
    FilesDataset,
    InspectLogDataset,
    JsonlDataset,
    OwnDataset,
)
from monitorbench.corpus.selection import CORPUS_VERSION, assign_splits
from monitorbench.records import Category, Sample, Split, Task
from monitorbench.runs.files import file_sha256
from monitorbench.sources import fetch
from monitorbench.sources.files import automonitor_bench, inspect_log, team_jsonl
from monitorbench.sources.read import SourceFiles

_READERS = {"jsonl": team_jsonl, "inspect_log": inspect_log, "automonitor_bench": automonitor_bench}

_log = logging.getLogger(__name__)


class OwnSamples(NamedTuple):
    """All samples with their splits, and how many rows were passed over, by reason."""

    samples: list[Sample]
    dropped: dict[str, int]
    run_statuses: dict[str, str]
    """How the run of each Inspect log ended, by the log's name."""
    all_named: bool
    """Whether every sample's split is named in the files, itself or by its group, so that no share places
    any."""


def published_prompts(dataset: FilesDataset) -> dict[str, str]:
    """The monitor prompts that come with the authors' benchmark, by kind; none for other files."""
    if not isinstance(dataset, AutomonitorBenchDataset):
        return {}
    folder = _folder(dataset)
    return automonitor_bench.prompts(folder if folder.is_dir() else folder.parent)


def inputs(dataset: FilesDataset) -> dict[str, Any]:
    """Settings, the files' content and the versions of their readers: all that decides the samples."""
    views = {"splits", "train", "validation", "calibration", "test", "path", "labels", "positive_means"}
    labels = dataset.labels if isinstance(dataset, InspectLogDataset) else None
    return {
        "dataset": dataset.model_dump(mode="json", exclude=views),
        "files": _files(dataset).identity(),
        "prompts": published_prompts(dataset),
        "labels": file_sha256(labels) if labels is not None and labels.is_file() else "",
        "versions": {"corpus": CORPUS_VERSION, "reader": _READERS[dataset.kind].VERSION},
    }


def assemble(dataset: FilesDataset) -> OwnSamples:
    """Read, check and split; `UserError` for a bad row (`on_bad_row=error`) or a group in two splits."""
    files = _files(dataset)
    match dataset:
        case JsonlDataset():
            samples, all_named = _placed(list(team_jsonl.load(files, dataset.unknown_content)), dataset)
        case InspectLogDataset():
            logged = inspect_log.load(
                files,
                labels=dataset.labels,
                score=dataset.score,
                misbehavior_values=dataset.misbehavior_values,
                benign_values=dataset.benign_values,
                category=dataset.category,
                task=dataset.task,
                unknown=dataset.unknown_content,
            )
            samples, all_named = _placed(list(logged), dataset)
        case AutomonitorBenchDataset():
            published = automonitor_bench.load(files, dataset.unknown_content)
            samples = [sample.model_copy(update={"split": Split.TEST}) for sample in published]
            all_named = False
    if isinstance(dataset, OwnDataset):
        _warn_of_near_misses(samples)
    if not samples:
        raise UserError(f"dataset.path={dataset.path}: no sample in it")
    return OwnSamples(samples, dict(Counter(files.bad_rows)), files.run_statuses, all_named)


def _placed(samples: list[Sample], dataset: JsonlDataset | InspectLogDataset) -> tuple[list[Sample], bool]:
    """The samples in their splits, and whether the files name them all."""
    home: dict[str, Split] = {}
    for sample in samples:
        if sample.split is not None and home.setdefault(sample.group_id, sample.split) is not sample.split:
            raise UserError(
                f"dataset.path={dataset.path}: group {sample.group_id!r} is in the splits "
                f"{home[sample.group_id]} and {sample.split}; all samples of a group have to be in one"
            )
    free = [sample for sample in samples if sample.group_id not in home]
    home |= assign_splits(free, dataset.shares, dataset.seed)
    return [sample.model_copy(update={"split": home[sample.group_id]}) for sample in samples], not free


def _warn_of_near_misses(samples: Sequence[Sample]) -> None:
    """Log each category and task that may be one of the paper's, misspelt."""
    kinds = ((Category, {sample.category for sample in samples}), (Task, {sample.task for sample in samples}))
    for kind, names in kinds:
        members = [member.value for member in kind]
        for name in sorted(names - set(members)):
            for near in difflib.get_close_matches(name, members, n=1, cutoff=0.8):
                message = "data: %s %r is taken for a name of your own; was %s meant?"
                _log.warning(message, kind.__name__.lower(), name, near)


def _files(dataset: FilesDataset) -> SourceFiles:
    suffixes = _READERS[dataset.kind].SUFFIXES
    return fetch.local(dataset.name, _folder(dataset), suffixes, dataset.on_bad_row)


def _folder(dataset: FilesDataset) -> Path:
    if dataset.path is None:
        return fetch.snapshot(dataset.name, dataset.hub_id, dataset.revision)
    return dataset.path
