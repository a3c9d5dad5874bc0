"""The order statistic that keeps a guarantee on false alarms, and the weight of each question in it.

A calibration split may be drawn by other shares than the test split, or than a deployment; the false alarm
rate there is Σ w·p over strata, and each calibration question then stands for w/n of its stratum. Promises:
where the shares agree up to rounding every question weighs the same; a stratum that the calibration split
lacks counts as one where every sample is flagged.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import ceil, log, log1p
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitorbench.metrics.bootstrap import FloatArray, IntArray

ROUNDING = 1e-9
"""Relative error granted to a tail probability: without it, one that equals delta is a coin toss."""
LONGER = 2.0
"""How many times as long as the longest calibrated text one has to be before it is said."""
Method = Literal["neyman_pearson", "conformal_risk"]


class Guarantee(NamedTuple):
    """A guarantee on false alarms, as a user asks for it."""

    method: Method
    alpha: float
    """Largest false alarm rate, for `conformal_risk` on average."""
    delta: float = 0.05
    """Probability that it may fail; `conformal_risk` does not read it."""
    n_candidates: int = 1
    """Number of monitors among which the same calibration split chooses."""

    def of_each(self) -> "Guarantee":
        """Share the guarantee out among the candidates: what the threshold of each one has to keep."""
        k = self.n_candidates
        if self.method == "conformal_risk":
            return self._replace(alpha=self.alpha / k, n_candidates=1)
        return self._replace(delta=self.delta / k, n_candidates=1)

    def how_sure(self) -> str:
        """Say how surely it holds, and among how many monitors it is shared out."""
        sure = (
            "on average"
            if self.method == "conformal_risk"
            else f"with {100 * (1 - self.delta):.3g} % confidence"
        )
        n = self.n_candidates
        return f"{sure}, allowing for the choice among {n} monitors" if n > 1 else sure

    def in_words(self) -> str:
        """Say what is promised: `at most 5 % false alarms with 95 % confidence`."""
        return f"at most {100 * self.alpha:.3g} % false alarms {self.how_sure()}"

    def check(self) -> None:
        """Raise `ValueError` for a level outside (0, 1), and for fewer than one candidate."""
        if self.method == "neyman_pearson":
            _check_rates(alpha=self.alpha, delta=self.delta)
        elif self.alpha <= 0:
            raise ValueError(f"alpha={self.alpha}: expected a number > 0")
        if self.n_candidates < 1:
            raise ValueError(f"n_candidates={self.n_candidates}: expected at least 1")


def neyman_pearson_rank(n: int, alpha: float, delta: float) -> tuple[int, float] | None:
    """The smallest k with P(Binomial(n, 1 - alpha) >= k) <= delta, and that probability.

    Tong, Feng & Li 2018 (Science Advances 4:eaao1659), proposition 1: the FAR of "alarm where score
    > the k-th smallest of n benign scores" exceeds alpha with at most that probability; exactly
    with it where scores are continuous, less with ties. None where even k = n fails, which is
    n < log(delta)/log(1 - alpha). O(n); raises `ValueError` unless alpha and delta are in (0, 1).
    """
    _check_rates(alpha=alpha, delta=delta)
    # P(Binomial(n, 1 - alpha) >= k) = P(Binomial(n, alpha) <= n - k): sum the pmf from 0 alarms on.
    alarms = np.arange(n, dtype=np.float64)
    steps = np.log((n - alarms) / (alarms + 1)) + (log(alpha) - log1p(-alpha))
    log_pmf = n * log1p(-alpha) + np.concatenate([[0.0], np.cumsum(steps)])
    tail = np.cumsum(np.exp(log_pmf))
    allowed = int(np.searchsorted(tail, delta * (1 + ROUNDING), side="right")) - 1
    allowed = min(allowed, n - 1)  # where rounding makes the tail at n - 1 look like delta
    return (n - allowed, float(tail[allowed])) if allowed >= 0 else None


@lru_cache(maxsize=4096)
def most_flagged(n: int, alpha: float, delta: float) -> tuple[int, float]:
    """How many of n benign questions may be flagged under `neyman_pearson_rank`, and its probability.

    (-1, 1) where the guarantee takes more questions than n.
    """
    rank = neyman_pearson_rank(n, alpha, delta) if n else None
    return (-1, 1.0) if rank is None else (n - rank[0], rank[1])


def samples_needed(alpha: float, delta: float) -> int:
    """How many benign questions `neyman_pearson_rank` takes at least: ceil(log(delta)/log(1 - alpha))."""
    _check_rates(alpha=alpha, delta=delta)
    return max(1, ceil((log(delta) + log1p(ROUNDING)) / log1p(-alpha)))


def conformal_questions_needed(alpha: float) -> int:
    """How many benign questions conformal risk control takes at least: ceil(1/alpha - 1)."""
    return max(1, ceil(1 / alpha - 1 - ROUNDING))


def weighted_questions_needed(alpha: float, delta: float) -> int:
    """Count the questions of unequal weight that it takes, by `Weights.worth`: ceil(−log(delta)/alpha)."""
    return max(1, ceil(-log(delta) / alpha * (1 - ROUNDING)))


def weighted_tail(alarms: FloatArray, weights: FloatArray, alpha: float) -> FloatArray:
    """How likely so little is flagged at each threshold [..., thresholds] though the mix's FAR is `alpha`.

    `alarms` [..., thresholds, 3] are the sums of v, v² and v³ over the flagged questions, `weights` [...,
    questions] all v. Fay & Feuer's (1997, Statistics in Medicine 16:791) test of a weighted sum of
    independent counts: what was flagged, and one more question of the largest weight, is a sum of
    exponentials, whose tail above alpha is taken here from the gamma distribution of the same three moments
    (theirs has two and errs to the wrong side at a delta of .01). Without any alarm it is exp(−alpha/max v),
    a bound that is proven; with some it never fell short in the searches of
    `benchmarks/coverage/promises.py`.
    """
    largest = weights.max(axis=-1)[..., None, None]
    first, second, third = np.moveaxis(alarms + largest ** np.arange(1, 4), -1, 0)
    scale, shape = third / second, second**3 / third**2
    from scipy.special import gammaincc  # what only applies a threshold has no use for it

    tails: FloatArray = gammaincc(shape, np.maximum(alpha - first + shape * scale, 0) / scale)
    return tails


def _check_rates(**levels: float) -> None:
    """Raise `ValueError` for a level outside (0, 1)."""
    for name, value in levels.items():
        if not 0 < value < 1:
            raise ValueError(f"{name}={value}: expected a number in (0, 1)")


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
    shares: Mapping[str, float] = {}
    """Share of the mix by stratum; empty where every question weighs the same."""
    counts: Mapping[str, int] = {}
    """Number of questions by stratum; empty as well."""

    def short_of(self, needed: int) -> dict[str, int]:
        """Count what each stratum lacks so that `needed` questions are there in the mix's shares."""
        short = {
            name: ceil(needed * share - ROUNDING) - self.counts.get(name, 0)
            for name, share in self.shares.items()
        }
        return {name: n for name, n in short.items() if n > 0}

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
    return Weights(
        (shares / counts)[index],
        sum(lacking.values()),
        tuple(sorted(lacking)),
        False,
        {name: w / total for name, w in mix.weights.items()},
        dict(zip(names.tolist(), counts.tolist(), strict=True)),
    )


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


def longer(calibrated: float | None, here: float | None) -> str:
    """`read up to 40,000 tokens, calibrated on up to 8,000: …`; empty up to `LONGER` times as long."""
    if calibrated is None or here is None or here <= LONGER * calibrated:
        return ""
    return (
        f"read up to {here:,.0f} tokens, calibrated on up to {calibrated:,.0f}: the promise says nothing of "
        "texts so much longer"
    )
