"""Scores of the calibration split, on which operating points are chosen.

Thresholds, ensembles and cascades are all fitted on a `CalibrationScores`, which can only be made of
samples that say themselves that they are of the calibration split. Promises: no sample of another
split gets in, and the two halves `divide` makes never share a question (group).
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from monitorbench.config.base import UserError
from monitorbench.metrics.auroc import Flags, Scores
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.records import Split

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
