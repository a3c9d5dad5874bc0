"""Which cells there are: `overall`, each category, each `category/task`, in one fixed order; and slices.

A *slice* cuts across the cells: by task, by whether the response has a reasoning trace, by source.
"""

from collections import Counter
from collections.abc import Sequence

from monitorbench.metrics.rates import Judged
from monitorbench.records import Category, Task

OVERALL = "overall"
WITH_THINKING, WITHOUT_THINKING = "with_thinking", "without_thinking"


def by_cell(judged: Sequence[Judged]) -> dict[str, list[Judged]]:
    """The samples of each cell that is present; `overall` always is, a category before its tasks.

    Raises ValueError where a sample comes twice: it would be counted twice.
    """
    twice = [name for name, times in Counter(one.sample_id for one in judged).items() if times > 1]
    if twice:
        raise ValueError(f"{len(twice)} samples are judged more than once, the first is {twice[0]!r}")
    cells = {OVERALL: list(judged)}
    for category in Category:
        inside = [one for one in judged if one.category == category]
        cells[category.value] = inside
        for task in Task:
            cells[f"{category.value}/{task.value}"] = [one for one in inside if one.task == task]
    return {name: found for name, found in cells.items() if found or name == OVERALL}


def by_slice(judged: Sequence[Judged]) -> dict[str, list[Judged]]:
    """The samples of each task, with and without a trace, and of each source (`source:<name>`)."""
    slices: dict[str, list[Judged]] = {f"task:{task.value}": [] for task in Task}
    slices |= {WITHOUT_THINKING: [], WITH_THINKING: []}
    slices |= {f"source:{name}": [] for name in sorted({one.source for one in judged if one.source})}
    for one in judged:
        slices[f"task:{one.task.value}"].append(one)
        slices[WITH_THINKING if one.has_thinking else WITHOUT_THINKING].append(one)
        if one.source:
            slices[f"source:{one.source}"].append(one)
    return {name: found for name, found in slices.items() if found}
