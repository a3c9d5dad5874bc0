"""All numbers of one monitor under one prompt: cells, slices, macro averages, curves and cost."""

from typing import TypedDict

import numpy as np

from monitorbench.config.study import Study
from monitorbench.metrics.columns import Columns, by_cell, by_slice
from monitorbench.metrics.cost import Stakes
from monitorbench.metrics.results import StakesFacts
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


def drawn_by(study: Study) -> Drawn:
    """As the study says."""
    return Drawn(resamples=study.probe.resamples, seed=study.seed)


def stakes_of(study: Study) -> StakesFacts:
    """The deployment that the study names."""
    stakes = study.stakes
    return StakesFacts(base_rate=stakes.base_rate, cost_miss=stakes.cost_miss, cost_alarm=stakes.cost_alarm)


def numbers(held: Columns, stakes: StakesFacts, drawn: Drawn) -> Numbers:
    """Work them out; raises ValueError where a sample is judged twice."""
    # By descending score, so that no cell has to sort again (`ranking`); samples without a score come last.
    held = held.taking(np.argsort(-held.scores, kind="stable"))
    cells = by_cell(held)
    found = of_parts(held, cells | by_slice(held), **drawn)
    of_cells = {name: found.pop(name) for name in cells}
    return Numbers(
        monitors=of_cells,
        slices=found,
        macro=macro(held, of_cells, **drawn),
        overall=overall(held, Stakes(**stakes), **drawn),
    )
