"""Which cells there are: `overall`, each category, each `category/task`, in one fixed order; and slices.

A *slice* cuts across the cells: by task, by whether the response has a reasoning trace, by source.
"""

import numpy as np
import pyarrow.compute as pc

from monitorbench.metrics.columns import BoolArray, Columns
from monitorbench.records import Category, Task

OVERALL = "overall"
WITH_THINKING, WITHOUT_THINKING = "with_thinking", "without_thinking"


def by_cell(held: Columns) -> dict[str, BoolArray]:
    """Which samples are in each cell that is present; `overall` always is, a category before its tasks.

    Raises ValueError where a sample comes twice: it would be counted twice.
    """
    refuse_repeated(held)
    cells = {OVERALL: np.ones(len(held), dtype=np.bool_)}
    for i, category in enumerate(Category):
        inside = held.categories == i
        cells[category.value] = inside
        for j, task in enumerate(Task):
            cells[f"{category.value}/{task.value}"] = inside & (held.tasks == j)
    return {name: found for name, found in cells.items() if found.any() or name == OVERALL}


def by_slice(held: Columns) -> dict[str, BoolArray]:
    """Which samples are of each task, have a trace or none, and are of each source (`source:<name>`)."""
    slices = {f"task:{task.value}": held.tasks == i for i, task in enumerate(Task)}
    slices |= {WITHOUT_THINKING: ~held.has_thinking, WITH_THINKING: held.has_thinking}
    slices |= {f"source:{name}": held.sources == i for i, name in enumerate(held.source_names) if name}
    return {name: found for name, found in slices.items() if found.any()}


def refuse_repeated(held: Columns) -> None:
    """Raise ValueError where a sample comes twice."""
    if pc.count_distinct(held.sample_ids).as_py() < len(held):
        counted = pc.value_counts(held.sample_ids)
        twice = counted.filter(pc.greater(counted.field("counts"), 1)).field("values")
        raise ValueError(f"{len(twice)} samples are judged more than once, the first is {twice[0].as_py()!r}")
