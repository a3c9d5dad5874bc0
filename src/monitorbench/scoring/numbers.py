"""All numbers of one monitor under one prompt: cells, slices, macro averages, curves and cost."""

from typing import TypedDict

import numpy as np

from monitorbench.config.evaluation import Stakes
from monitorbench.metrics.columns import Columns, by_cell, by_slice
from monitorbench.metrics.summary import CellMetrics, Macro, Overall, macro, of_parts, overall


class Numbers(TypedDict):
    """What `metrics.json` holds of one monitor and prompt, under the same keys."""

    monitors: dict[str, CellMetrics]
    slices: dict[str, CellMetrics]
    macro: Macro
    overall: Overall


class Drawn(TypedDict):
    """How an interval's groups are drawn."""

    resamples: int
    seed: int


def numbers(judged: Columns, stakes: Stakes, drawn: Drawn) -> Numbers:
    """The numbers of one monitor's answers; raises ValueError where a sample is judged twice."""
    # By descending score, so that no cell has to sort again (`ranked`); samples without a score come last.
    judged = judged.taking(np.argsort(-judged.scores, kind="stable"))
    cells = by_cell(judged)
    found = of_parts(judged, cells | by_slice(judged), **drawn)
    of_cells = {name: found.pop(name) for name in cells}
    return Numbers(
        monitors=of_cells,
        slices=found,
        macro=macro(judged, of_cells, **drawn),
        overall=overall(judged, stakes),
    )
