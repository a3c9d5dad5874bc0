"""Which questions a promise is about: what share of the benign ones each cell has where a threshold is used.

A calibration split may be drawn by other shares than the test split, or than a deployment; the false alarm
rate there is Σ w·p over cells, and each calibration question then stands for w/n of its cell. Promises: where
the shares agree up to rounding every question weighs the same; a cell that the calibration split lacks counts
as one where every sample is flagged.

A cell is cut by whether there is a reasoning trace where the two splits differ in it by more than chance:
cells are drawn by fixed shares, traces within them often as they come.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitorbench.config.datasets import SplitView
from monitorbench.config.evaluation import Calibrate
from monitorbench.corpus.columns import read_columns
from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.columns import WITH_THINKING, WITHOUT_THINKING, BoolArray, Columns
from monitorbench.records import Split
from monitorbench.runs.directory import read_finished

MixOf = Literal["drawn", "test", "given"]
"""Equal weights; the shares of the test split; shares that a user gives."""

_CHANCE = 0.05
"""Where Fisher's exact p is above this, both splits are taken to have the same share of traces in a cell."""


class Mix(NamedTuple):
    """The shares of benign questions that a promise is to hold for."""

    of: MixOf
    weights: Mapping[str, float]
    """By stratum, in any unit; a stratum is a category, a cell, or a cell and whether there is a trace."""
    n: float
    """Questions that the weights were counted on; inf where they are exact."""

    def within(self, category: str) -> "Mix":
        """The same inside one category; all of it for ""."""
        if not category:
            return self
        inside = {s: w for s, w in self.weights.items() if s.partition("/")[0] == category}
        share = sum(inside.values()) / max(sum(self.weights.values()), 1e-300)
        return self._replace(weights=inside, n=self.n * share if self.n < np.inf else np.inf)


class Weights(NamedTuple):
    """What each question stands for."""

    each: FloatArray
    """[questions]: a share of the mix; they add up to 1 − `missing`."""
    missing: float
    """The share of the mix that is in strata without any question."""
    lacking: tuple[str, ...]
    """These strata."""
    equal: bool
    """Whether every question weighs the same, `missing` being 0."""

    def worth(self, alpha: float) -> float:
        """So many questions drawn by the mix's shares, none flagged, would say as much of a FAR of `alpha`.

        The heaviest question decides, since nothing says that false alarms are not all in its stratum.
        """
        return float(max(0.0, 1 - self.missing / alpha) / self.each.max()) if self.each.any() else 0.0

    @property
    def effective_n(self) -> float:
        """Kish's effective sample size, (Σ v)²/Σ v² (Survey Sampling, 1965, section 11.7)."""
        return float(self.each.sum() ** 2 / (self.each**2).sum()) if self.each.any() else 0.0


def question_weights(strata: Sequence[str] | NDArray[np.str_], mix: Mix | None) -> Weights:
    """The weight of each question by its stratum [questions]; all equal without a mix.

    Shares count as the same where each stratum's number of questions is the mix's, rounded: it may be off by
    one, and by one question of those that the mix was counted on.
    """
    n = len(strata)
    drawn = Weights(np.full(n, 1 / max(n, 1)), 0.0, (), True)
    if mix is None or not n:
        return drawn
    names, index, counts = np.unique(np.asarray(strata), return_inverse=True, return_counts=True)
    total = sum(mix.weights.values())
    if total <= 0:
        return Weights(np.zeros(n), 1.0, (), False)
    shares = np.array([mix.weights.get(str(name), 0.0) / total for name in names])
    known = {str(name) for name in names}
    lacking = {s: w / total for s, w in mix.weights.items() if w > 0 and s not in known}
    off = np.abs(np.append(counts - n * shares, [n * w for w in lacking.values()]))
    if (off <= 1 + n / mix.n).all():
        return drawn
    return Weights((shares / counts)[index], sum(lacking.values()), tuple(sorted(lacking)), False)


def mix_asked(
    settings: Calibrate, calibration: Columns, data: Path, view: SplitView | None
) -> tuple[Mix | None, list[str] | None]:
    """What `calibrate.mix` asks for, and the stratum of each sample; None where questions weigh the same.

    `view` is the part of the dataset `data` that is judged; the test split is taken in the same cells.
    """
    if isinstance(settings.mix, dict):
        mix = Mix("given", dict(settings.mix), np.inf)
        return mix, given_strata(calibration, mix)
    splits = read_finished(data)["results"]["splits"]
    if settings.mix == "drawn" or not splits.get(Split.TEST.value, {}).get("samples"):
        return None, None
    whole = view.model_copy(update={"pairs_per_cell": None}) if view else None
    return mix_of_split(calibration, read_columns(data, Split.TEST, whole))


def mix_of_split(calibration: Columns, test: Columns) -> tuple[Mix, list[str]]:
    """The test split's mix, and the stratum of each calibration sample."""
    traced = _cut_by_trace(calibration, test)
    held, used = (_strata(one, traced) for one in (calibration, test))
    benign = ~test.is_misbehavior
    found, counts = np.unique(_of_questions(test.groups[benign], *used.taking(benign)), return_counts=True)
    counted = dict(zip(found.tolist(), counts.astype(float).tolist(), strict=True))
    return Mix("test", counted, float(counts.sum())), held.listed()


def given_strata(calibration: Columns, mix: Mix) -> list[str]:
    """The stratum of each sample: its cell, or its category where the mix is by category."""
    if any("/" in name for name in mix.weights):
        return _strata(calibration, frozenset()).listed()
    return [calibration.category_names[i] for i in calibration.categories.tolist()]


def of_questions(groups: IntArray, strata: NDArray[np.str_]) -> NDArray[np.str_]:
    """The stratum of each question, in the order of their numbers; both [samples].

    A question with samples in several strata is of a stratum of its own, `first and second`.
    """
    names, codes = np.unique(strata, return_inverse=True)
    return _of_questions(groups, codes, names)


def _of_questions(groups: IntArray, codes: IntArray, names: NDArray[np.str_]) -> NDArray[np.str_]:
    pairs = np.unique(groups * len(names) + codes)
    group, code = np.divmod(pairs, max(len(names), 1))
    several = np.append(group[1:] == group[:-1], False)
    if not several.any():
        found: NDArray[np.str_] = names[code]
        return found
    joined: dict[int, str] = {}
    for one, stratum in zip(group.tolist(), code.tolist(), strict=True):
        name = str(names[stratum])
        joined[one] = f"{joined[one]} and {name}" if one in joined else name
    return np.array(list(joined.values()), dtype=np.str_)


class _Strata(NamedTuple):
    """A stratum for each sample, by its number; a million of them need no million strings."""

    codes: IntArray
    names: NDArray[np.str_]

    def taking(self, rows: BoolArray) -> "_Strata":
        return _Strata(self.codes[rows], self.names)

    def listed(self) -> list[str]:
        found: list[str] = self.names[self.codes].tolist()
        return found


def _strata(columns: Columns, traced: frozenset[str]) -> _Strata:
    """The cells, those in `traced` cut by whether there is a trace."""
    names = [
        f"{category}/{task}{trace}"
        for category in columns.category_names
        for task in columns.task_names
        for trace in (f":{WITHOUT_THINKING}", f":{WITH_THINKING}")
    ]
    kept = [name if (cell := name.partition(":")[0]) in traced else cell for name in names]
    distinct, index = np.unique(np.array(kept, dtype=np.str_), return_inverse=True)
    return _Strata(index[2 * columns.cells + columns.has_thinking], distinct)


def _cut_by_trace(calibration: Columns, test: Columns) -> frozenset[str]:
    """The cells whose share of benign questions with a trace differs between the splits beyond chance."""
    from scipy.stats import fisher_exact  # a second to import, and often not needed

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
