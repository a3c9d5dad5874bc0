"""Plain samples and columns of simulated scores, which several benchmarks need."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.columns import UNPAIRED, BoolArray, Columns
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
