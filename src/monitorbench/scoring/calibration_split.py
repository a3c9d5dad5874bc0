"""Scores of the calibration split, on which operating points are chosen, and the shares of cells in use.

Thresholds, ensembles and cascades are all fitted on a `CalibrationScores`, which can only be made of
samples that say themselves that they are of the calibration split. Promises: no sample of another
split gets in, and the two halves `divide` makes never share a question (group).

Shares of cells are those that `calibrate.mix` asks for, of the test split or given by a user. A cell is cut
by whether there is a reasoning trace where the two splits differ in it by more than chance: cells are drawn
by fixed shares, traces within them often as they come.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from monitorbench.config.base import UserError
from monitorbench.config.datasets import SplitView
from monitorbench.config.evaluation import Calibrate
from monitorbench.corpus.columns import read_columns
from monitorbench.metrics.auroc import Flags, Scores
from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.columns import WITH_THINKING, WITHOUT_THINKING, BoolArray, Columns
from monitorbench.metrics.guarantees.order_statistic import Mix, join_strata
from monitorbench.metrics.significance import fisher_exact
from monitorbench.records import Split
from monitorbench.runs.directory import read_finished

Part = Literal["whole", "fit", "threshold"]
"""The whole split, or the half to fit a score on, or the half to set that score's threshold on."""


class FittedOn(BaseModel):
    """Samples a score was fitted on: the dataset's directory, part of its calibration split, n samples."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: str
    part: Part
    n: int


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationScores:
    """Monitors' scores of a calibration split, from `calibration_scores`, `divide` or `per_category`.

    `scores` is [samples, members], in [0, 1], NaN where unscored; `is_misbehavior`, `group_ids`, `categories`
    and `strata` (of `mix`; "" where nothing is weighted) are [samples]. `category` is set where it holds one
    category only.
    """

    data: str
    part: Part
    category: str
    members: tuple[str, ...]
    scores: FloatArray
    is_misbehavior: NDArray[np.bool_]
    group_ids: NDArray[np.str_]
    categories: NDArray[np.str_]
    strata: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.scores)

    def taking(self, rows: NDArray[np.bool_], *, part: Part, category: str = "") -> "CalibrationScores":
        """The samples that `rows` [samples] marks."""
        names = ("scores", "is_misbehavior", "group_ids", "categories", "strata")
        return replace(
            self, part=part, category=category, **{name: getattr(self, name)[rows] for name in names}
        )

    def member(self, name: str) -> FloatArray:
        """One monitor's scores [samples]; raises `UserError` where it is not among the members."""
        if name not in self.members:
            raise UserError(f"calibration: no scores of {name!r}; there are {', '.join(self.members)}")
        return self.scores[:, self.members.index(name)]


def calibration_scores(
    data: str,
    *,
    splits: Iterable[Split | None],
    scores: Mapping[str, Scores],
    is_misbehavior: Flags,
    group_ids: Sequence[str],
    categories: Sequence[str],
    strata: Sequence[str] | None = None,
) -> CalibrationScores:
    """Check and lay side by side what may be fitted on; each argument has one entry a sample.

    `splits` is what the samples themselves say (`Sample.split`), so that the test split can't come
    in by accident; `data` names the dataset's directory. `scores` maps a monitor's name to its scores
    in [0, 1], None or NaN where it has none. `strata` is what questions are weighted by.

    Raises `UserError` for a sample of another split and for a score outside [0, 1], `ValueError` for
    lengths that differ.
    """
    sample_splits = list(splits)
    if wrong := {str(split) for split in sample_splits if split is not Split.CALIBRATION}:
        raise UserError(
            f"{data}: samples of split {', '.join(sorted(wrong))} given for calibration; expected only those "
            "of `calibration`, whose requests the test split does not hold"
        )
    n = len(sample_splits)
    table = np.column_stack([np.asarray(column, dtype=np.float64) for column in scores.values()])
    flags = np.asarray(is_misbehavior, dtype=np.bool_)
    parts = [""] * n if strata is None else strata
    lengths = {n, len(table), len(flags), len(group_ids), len(categories), len(parts)}
    if len(lengths) > 1:
        raise ValueError(f"expected one entry a sample everywhere, got {sorted(lengths)}")
    if np.any((table < 0) | (table > 1)):
        raise UserError(f"{data}: a score outside [0, 1]; expected probabilities of misbehavior")
    texts = (np.asarray(column, dtype=np.str_) for column in (group_ids, categories, parts))
    return CalibrationScores(data, "whole", "", tuple(scores), table, flags, *texts)


def divide(whole: CalibrationScores) -> tuple[CalibrationScores, CalibrationScores]:
    """Two halves by question: one to fit a score on, one to set its threshold on.

    A threshold's guarantee needs scores that were not fitted on its own samples (Tong, Feng & Li
    2018, algorithm 1). A hash of the group decides, so any two cuts of one dataset agree on it.
    """
    if whole.part != "whole":
        raise ValueError(f"the calibration split is divided once; this is its part {whole.part!r}")
    names, inverse = np.unique(whole.group_ids, return_inverse=True)
    first = np.array(
        [hashlib.sha256(f"fit or threshold\0{name}".encode()).digest()[0] % 2 == 0 for name in names]
    )
    rows = first.astype(np.bool_)[inverse]
    return (
        whole.taking(rows, part="fit", category=whole.category),
        whole.taking(~rows, part="threshold", category=whole.category),
    )


def per_category(whole: CalibrationScores) -> tuple[CalibrationScores, ...]:
    """One calibration a category, in the order of their names."""
    names = [str(name) for name in np.unique(whole.categories)]
    return tuple(whole.taking(whole.categories == name, part=whole.part, category=name) for name in names)


def refuse_threshold_half(fitted: CalibrationScores) -> None:
    """Raise `ValueError` for the half that is kept for thresholds."""
    if fitted.part == "threshold":
        raise ValueError("fitted on the half that is kept for thresholds; fit on the first half of `divide`")


def refuse_one_label(data: str, is_misbehavior: NDArray[np.bool_]) -> None:
    """Raise `UserError` where there is nothing to tell apart."""
    if is_misbehavior.all() or not is_misbehavior.any():
        raise UserError(f"{data}: the scored calibration samples have one label only; expected both")


def refuse_fitted_samples(fitted_on: FittedOn | None, scored: CalibrationScores) -> None:
    """Raise `ValueError` where a score would get its threshold on samples it was fitted on."""
    if fitted_on is None or fitted_on.data != scored.data:
        return
    if (fitted_on.part, scored.part) != ("fit", "threshold"):
        raise ValueError(
            f"{scored.data}: fitted on {fitted_on.part!r}, threshold on {scored.part!r}; expected the two "
            "halves of `divide`, one for each"
        )


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
        cell for cell, table in counts.items() if all(map(sum, table)) and fisher_exact(table) <= _CHANCE
    )
