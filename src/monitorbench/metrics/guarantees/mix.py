"""Shares of strata among benign questions where a threshold is used, and the weight of each question.

A calibration split may be drawn by other shares than the test split, or than a deployment; the false alarm
rate there is Σ w·p over strata, and each calibration question then stands for w/n of its stratum. Promises:
where the shares agree up to rounding every question weighs the same; a stratum that the calibration split
lacks counts as one where every sample is flagged.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitorbench.metrics.bootstrap import FloatArray, IntArray

MixOf = Literal["drawn", "test", "given"]
"""Source of the shares: `drawn` weighs all questions alike, `test` is the test split, `given` a user."""


class Mix(NamedTuple):
    """The shares of benign questions that a promise is to hold for."""

    of: MixOf
    weights: Mapping[str, float]
    """Share of each stratum (a category, a cell, or a cell and whether there is a trace), in any unit."""
    n: float
    """Questions that the weights were counted on; inf where they are exact."""

    def within(self, category: str) -> "Mix":
        """Keep the shares of one category alone; all of them for ""."""
        if not category:
            return self
        inside = {s: w for s, w in self.weights.items() if s.partition("/")[0] == category}
        share = sum(inside.values()) / max(sum(self.weights.values()), 1e-300)
        return self._replace(weights=inside, n=self.n * share if self.n < np.inf else np.inf)


class Weights(NamedTuple):
    """Shares of the mix that the questions stand for."""

    each: FloatArray
    """[questions]: a share of the mix; they add up to 1 − `missing`."""
    missing: float
    """The share of the mix that is in strata without any question."""
    lacking: tuple[str, ...]
    """Names of the strata without any question."""
    equal: bool
    """Whether every question weighs the same, `missing` being 0."""

    def worth(self, alpha: float) -> float:
        """Count how many questions drawn by the mix's shares, none flagged, say as much of a FAR of `alpha`.

        The heaviest question decides, since nothing says that false alarms are not all in its stratum.
        """
        return float(max(0.0, 1 - self.missing / alpha) / self.each.max()) if self.each.any() else 0.0

    @property
    def effective_n(self) -> float:
        """Kish's effective sample size, (Σ v)²/Σ v² (Survey Sampling, 1965, section 11.7)."""
        return float(self.each.sum() ** 2 / (self.each**2).sum()) if self.each.any() else 0.0


def question_weights(strata: Sequence[str] | NDArray[np.str_], mix: Mix | None) -> Weights:
    """Weigh each question by its stratum [questions]; all weigh the same without a mix.

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
    present = {str(name) for name in names}
    lacking = {s: w / total for s, w in mix.weights.items() if w > 0 and s not in present}
    off = np.abs(np.append(counts - n * shares, [n * w for w in lacking.values()]))
    if (off <= 1 + n / mix.n).all():
        return drawn
    return Weights((shares / counts)[index], sum(lacking.values()), tuple(sorted(lacking)), False)


def of_questions(groups: IntArray, strata: NDArray[np.str_]) -> NDArray[np.str_]:
    """Find the stratum of each question, in the order of their numbers; both arguments are [samples].

    A question with samples in several strata is of a stratum of its own, `first and second`.
    """
    names, codes = np.unique(strata, return_inverse=True)
    return join_strata(groups, codes, names)


def join_strata(groups: IntArray, codes: IntArray, names: NDArray[np.str_]) -> NDArray[np.str_]:
    """Find the stratum of each question as `of_questions` does, from the numbers of strata [samples]."""
    pairs = np.unique(groups * len(names) + codes)
    group, code = np.divmod(pairs, max(len(names), 1))
    several = np.append(group[1:] == group[:-1], False)
    if not several.any():
        strata: NDArray[np.str_] = names[code]
        return strata
    joined: dict[int, str] = {}
    for question, stratum in zip(group.tolist(), code.tolist(), strict=True):
        name = str(names[stratum])
        joined[question] = f"{joined[question]} and {name}" if question in joined else name
    return np.array(list(joined.values()), dtype=np.str_)
