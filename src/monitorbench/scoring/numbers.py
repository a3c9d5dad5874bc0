"""All numbers of one monitor under one prompt: cells, slices, macro averages, curves and cost."""

import numpy as np

from monitorbench.metrics.columns import OVERALL, Columns, by_cell, by_slice
from monitorbench.metrics.cost import Costs
from monitorbench.metrics.registry import of_parts
from monitorbench.metrics.summary import Curves, cost_numbers, curves, macro
from monitorbench.metrics.table import MACRO, Place, Table


def add_numbers(table: Table, monitor: str, prompt: str, judged: Columns, stakes: Costs) -> Curves:
    """Add a monitor's numbers and return its curves; ValueError where a sample is judged twice."""
    # By descending score, so that no cell has to sort again (`ranked`); samples without a score come last.
    judged = judged.taking(np.argsort(-judged.scores, kind="stable"))
    cells = by_cell(judged)
    of_subsets = of_parts(judged, cells | by_slice(judged))
    for subset, numbers in of_subsets.items():
        table.add(Place(monitor, prompt, subset), numbers)
    table.add(Place(monitor, prompt, OVERALL), cost_numbers(judged, stakes))
    of_cells = {name: of_subsets[name] for name in cells}
    table.add(Place(monitor, prompt, MACRO), macro(judged, of_cells))
    return curves(judged)
