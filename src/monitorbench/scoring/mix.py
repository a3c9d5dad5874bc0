"""Shares of cells that a calibration is weighed by: those that `calibrate.mix` asks for.

They are of the test split or given by a user. A cell is cut by whether there is a reasoning trace where the
two splits differ in it by more than chance: cells are drawn by fixed shares, traces within them often as they
come.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitorbench.config.datasets import SplitView
from monitorbench.config.evaluation import Calibrate
from monitorbench.corpus.columns import read_columns
from monitorbench.metrics.bootstrap import IntArray
from monitorbench.metrics.columns import WITH_THINKING, WITHOUT_THINKING, BoolArray, Columns
from monitorbench.metrics.guarantees.order_statistic import Mix, join_strata
from monitorbench.records import Split
from monitorbench.runs.directory import read_finished

_CHANCE = 0.05
"""Fisher's exact p above which both splits are taken to have the same share of traces in a cell."""


def mix_asked(
    settings: Calibrate, calibration: Columns, data: Path, view: SplitView | None
) -> tuple[Mix | None, list[str] | None]:
    """The mix that `calibrate.mix` asks for, and each sample's stratum; None where questions weigh the same.

    `view` is the part of the dataset `data` that is judged; the test split is taken in the same cells.
    """
    if isinstance(settings.mix, dict):
        mix = Mix("given", dict(settings.mix), np.inf)
        return mix, _given_strata(calibration, mix)
    splits = read_finished(data)["results"]["splits"]
    if settings.mix == "drawn" or not splits.get(Split.TEST.value, {}).get("samples"):
        return None, None
    full_view = view.model_copy(update={"pairs_per_cell": None}) if view else None
    test = read_columns(data, Split.TEST, full_view)
    return (None, None) if test.is_misbehavior.all() else mix_of_split(calibration, test)


def mix_of_split(calibration: Columns, test: Columns) -> tuple[Mix, list[str]]:
    """The test split's mix, and the stratum of each calibration sample."""
    traced = _cut_by_trace(calibration, test)
    calibrated, used = (_strata(samples, traced) for samples in (calibration, test))
    benign = ~test.is_misbehavior
    strata, counts = np.unique(join_strata(test.groups[benign], *used.taking(benign)), return_counts=True)
    counted = dict(zip(strata.tolist(), counts.astype(float).tolist(), strict=True))
    return Mix("test", counted, float(counts.sum())), calibrated.listed()


def _given_strata(calibration: Columns, mix: Mix) -> list[str]:
    """The stratum of each sample: its cell, or its category where the mix is by category."""
    if any("/" in name for name in mix.weights):
        return _strata(calibration, frozenset()).listed()
    return [calibration.category_names[i] for i in calibration.categories.tolist()]


class _Strata(NamedTuple):
    """A stratum for each sample, by its number; a million of them need no million strings."""

    codes: IntArray
    names: NDArray[np.str_]

    def taking(self, rows: BoolArray) -> "_Strata":
        return _Strata(self.codes[rows], self.names)

    def listed(self) -> list[str]:
        names: list[str] = self.names[self.codes].tolist()
        return names


def _strata(columns: Columns, traced: frozenset[str]) -> _Strata:
    """The cells, those in `traced` cut by whether there is a trace."""
    names = [
        f"{category}/{task}{trace}"
        for category in columns.category_names
        for task in columns.task_names
        for trace in (f":{WITHOUT_THINKING}", f":{WITH_THINKING}")
    ]
    strata = [name if (cell := name.partition(":")[0]) in traced else cell for name in names]
    distinct, index = np.unique(np.array(strata, dtype=np.str_), return_inverse=True)
    return _Strata(index[2 * columns.cells + columns.has_thinking], distinct)


def _cut_by_trace(calibration: Columns, test: Columns) -> frozenset[str]:
    """The cells whose share of benign questions with a trace differs between the splits beyond chance."""
    from scipy.stats import fisher_exact  # takes most of a second to import

    counts: dict[str, list[list[int]]] = {}
    for row, columns in enumerate((calibration, test)):
        cells = _strata(columns, frozenset())
        benign = ~columns.is_misbehavior
        for code in np.unique(cells.codes[benign]).tolist():
            inside: BoolArray = (cells.codes == code) & benign
            n = len(np.unique(columns.groups[inside]))
            n_with = len(np.unique(columns.groups[inside & columns.has_thinking]))
            table = counts.setdefault(str(cells.names[code]), [[0, 0], [0, 0]])
            table[row] = [n_with, n - n_with]
    return frozenset(
        cell
        for cell, table in counts.items()
        if all(map(sum, table)) and fisher_exact(table).pvalue <= _CHANCE
    )
