"""What benchmarks judge: the starter's samples, plain and simulated ones."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.measuring import composed
from monitorbench.config.study import Study
from monitorbench.corpus.build import ensure
from monitorbench.corpus.store import read_split
from monitorbench.engines.stored.model_folder import load_tokenizer
from monitorbench.engines.weights import weights_folder
from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.columns import UNPAIRED, BoolArray, Columns
from monitorbench.prompts.render import Renderer
from monitorbench.records import (
    Category,
    Cell,
    Construction,
    Label,
    LabelSource,
    Message,
    Role,
    Sample,
    Split,
    Task,
)


class Judged(NamedTuple):
    """A study, its samples in the dataset's order, and their prompts as token ids."""

    study: Study
    samples: list[Sample]
    prompts: list[tuple[int, ...]]
    renderer: Renderer
    weights: Path

    def fitting(self, most: int) -> list[Sample]:
        """Return the first `most` samples that the context can hold."""
        fits = self.study.monitor.context_tokens - self.study.prompt.most_tokens
        pairs = zip(self.samples, self.prompts, strict=True)
        return [sample for sample, ids in pairs if len(ids) <= fits][:most]


def judged_samples(settings: Sequence[str]) -> Judged:
    """Build the test split and convert the weights where they are not there yet, then render."""
    study = composed("evaluate", settings)
    samples = list(read_split(ensure(study, [Split.TEST]), Split.TEST, study.dataset.view("test")))
    weights = weights_folder(study.monitor, study.paths.models)
    renderer = Renderer(study.prompt, load_tokenizer(weights), study.monitor.opening)
    return Judged(study, samples, [renderer.render(sample) for sample in samples], renderer, weights)


CELL = Cell(Category.SAFETY_PERMISSION, Task.QA)


def sample(
    pair: str,
    response: str,
    label: Label,
    *,
    request: str = "What is new?",
    group: str = "",
    cell: Cell = CELL,
    subcategory: str = "benchmark",
    source: str = "benchmark",
    split: Split | None = None,
) -> Sample:
    """Make a sample of one request and one response; its group is its pair where none is named."""
    return Sample(
        pair_id=pair,
        group_id=group or pair,
        category=cell.category,
        task=cell.task,
        subcategory=subcategory,
        request=(Message(role=Role.USER, content=request),),
        response=(Message(role=Role.ASSISTANT, content=response),),
        label=label,
        label_source=LabelSource.AUTHOR,
        construction=Construction.HANDWRITTEN,
        source=source,
        licence="Apache-2.0",
        split=split,
    )


def columns_of(
    is_misbehavior: BoolArray,
    scores: FloatArray,
    groups: IntArray,
    *,
    tasks: IntArray | None = None,
    task_names: Sequence[str] = ("qa",),
    are_pairs: bool = False,
) -> Columns:
    """Columns [samples] of one category and source, unanswered; `are_pairs`: each group is a pair."""
    n = len(groups)
    zeros = np.zeros(n, dtype=np.int64)
    return Columns(
        sample_ids=pa.array([f"{i:07d}" for i in range(n)], pa.string()),
        is_misbehavior=is_misbehavior,
        flagged=np.full(n, np.nan),
        scores=scores,
        groups=groups,
        group_names=pa.array([f"q{i:07d}" for i in range(int(groups.max()) + 1)], pa.string()),
        pairs=groups if are_pairs else zeros + UNPAIRED,
        categories=zeros,
        category_names=("safety_permission",),
        tasks=zeros if tasks is None else tasks,
        task_names=tuple(task_names),
        sources=zeros,
        source_names=("simulated",),
        strata=zeros,
        stratum_names=("",),
        has_thinking=zeros.astype(np.bool_),
        n_quotes=zeros,
        n_grounded=zeros,
    )
