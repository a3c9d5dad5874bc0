"""Whether a training ranks a test cell's samples upside down: its AUROC against .5, not against its base.

A base that is at chance can't show it: a monitor far below .5 has learnt something, and it points the wrong
way there. Of several seeds the mean AUROC is tested, with seeds and questions both random (`replicates`), of
one the adapter or probe itself; Holm's correction is over all trainings, prompts and cells.
"""

from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np

from monitorbench.metrics.auroc import auroc_interval
from monitorbench.metrics.columns import OVERALL, Columns, by_cell
from monitorbench.metrics.rates import as_list
from monitorbench.metrics.replicates import auroc_over_seeds
from monitorbench.metrics.significance import auroc_difference_variance, difference_p, holm


class AgainstChance(TypedDict):
    """A training in one test cell."""

    auroc: float
    """The training's AUROC, the mean over its seeds."""
    auroc_ci: list[float] | None
    """95 %, not corrected."""
    p: float
    """Two-sided p value of the hypothesis that the AUROC is .5."""
    p_holm: float


Chance = dict[str, dict[str, dict[str, AgainstChance]]]
"""Training, prompt, cell: each `category/task` that a number can be had of."""


def against_chance(judged: Mapping[tuple[str, str], Sequence[Columns]]) -> Chance:
    """Test each training and prompt in each cell; its seeds judged the same samples in the same order."""
    tests: Chance = {}
    for (training, prompt), seeds in judged.items():
        for cell, inside in by_cell(seeds[0]).items():
            if cell == OVERALL or "/" not in cell:
                continue
            test = _in_cell([one.taking(inside) for one in seeds])
            if test is not None:
                tests.setdefault(training, {}).setdefault(prompt, {})[cell] = test
    every = [
        one for by_prompt in tests.values() for by_name in by_prompt.values() for one in by_name.values()
    ]
    for one, corrected in zip(every, holm([one["p"] for one in every]), strict=True):
        one["p_holm"] = corrected
    return tests


def _in_cell(seeds: Sequence[Columns]) -> AgainstChance | None:
    first = seeds[0]
    guessing = first.answering(first.flagged, np.full(len(first), 0.5))
    if len(seeds) > 1:
        over = auroc_over_seeds(guessing, seeds)
        if over is None:
            return None
        _, change = over
        low, high = (max(0.0, min(1.0, 0.5 + bound)) for bound in change.interval())
        return AgainstChance(
            auroc=0.5 + change.mean, auroc_ci=[low, high], p=change.p_value, p_holm=change.p_value
        )
    spread = auroc_difference_variance(guessing.scores, first.scores, first.is_misbehavior, first.groups)
    if spread is None:
        return None
    p = difference_p(spread)
    bounds = auroc_interval(first.scores, first.is_misbehavior, first.groups)
    return AgainstChance(auroc=0.5 + spread.difference, auroc_ci=as_list(bounds), p=p, p_holm=p)
