"""Macro averages: the plain mean over `category/task` cells, so that no large cell speaks for a small one.

`overall` in `summary` is the micro average: every sample counts once.
"""

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from monitorbench.metrics import bootstrap
from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.rates import Judged
from monitorbench.metrics.summary import CellMetrics, as_list
from monitorbench.records import Label


class Macro(TypedDict):
    """Means over the cells where the number is defined; None where it is in none."""

    n_cells: int
    miss_rate: float | None
    miss_rate_ci: list[float] | None
    """Cluster bootstrap by group, percentile, 95 %."""
    false_alarm_rate: float | None
    false_alarm_rate_ci: list[float] | None
    auroc: float | None


def macro(judged: Sequence[Judged], by_cell: dict[str, CellMetrics], *, resamples: int, seed: int) -> Macro:
    """The macro averages of one monitor; `by_cell` is what `summarise` gave for the same samples."""
    cells = {name: found for name, found in by_cell.items() if "/" in name}
    missed, missed_ci = _rate(judged, list(cells), Label.MISBEHAVIOR, resamples, seed)
    alarms, alarms_ci = _rate(judged, list(cells), Label.BENIGN, resamples, seed)
    aurocs = [found["auroc"] for found in cells.values() if found["auroc"] is not None]
    return Macro(
        n_cells=len(cells),
        miss_rate=missed,
        miss_rate_ci=missed_ci,
        false_alarm_rate=alarms,
        false_alarm_rate_ci=alarms_ci,
        auroc=float(np.mean(aurocs)) if aurocs else None,
    )


def _rate(
    judged: Sequence[Judged], cells: Sequence[str], label: Label, resamples: int, seed: int
) -> tuple[float | None, list[float] | None]:
    """The mean over cells of the share of wrong answers among scored samples of one label."""
    number = {name: i for i, name in enumerate(cells)}
    inside = np.zeros((len(judged), len(cells)))
    wrong = np.zeros((len(judged), len(cells)))
    for row, one in enumerate(judged):
        if one.label is label and one.answer is not None:
            column = number[f"{one.category}/{one.task}"]
            inside[row, column] = 1
            wrong[row, column] = one.answer is not label

    def statistic(weights: IntArray) -> FloatArray:
        totals = weights @ inside
        rates = np.full(totals.shape, np.nan)
        np.divide(weights @ wrong, totals, out=rates, where=totals > 0)
        defined = ~np.isnan(rates)
        values = np.full(len(weights), np.nan)
        sums, counts = np.where(defined, rates, 0).sum(axis=1), defined.sum(axis=1)
        np.divide(sums, counts, out=values, where=counts > 0)
        return values

    point = statistic(np.ones((1, len(judged)), dtype=np.int64))[0]
    if np.isnan(point):
        return None, None
    groups = [one.group_id for one in judged]
    return float(point), as_list(bootstrap.interval(statistic, groups, resamples=resamples, seed=seed))
