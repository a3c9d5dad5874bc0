"""Thresholds with a finite-sample guarantee, chosen on the calibration split and nowhere else.

Promises, for an alarm where score > threshold and questions (groups) that are drawn alike in
calibration and in use, or alike within strata whose shares in use are known (`mix`):

* `neyman_pearson`: with probability >= 1 - delta over calibration splits, FAR <= alpha;
* `conformal_risk`: on average over calibration splits, the expected loss of an alarm is <= alpha.

Both hold for any distribution of scores, ties included. A benign sample without a score counts as
one that every threshold alarms at: what is promised is a bound on the share that is alarmed at *or*
unscored, which is never below FAR over scored samples. A question with several benign samples is one
piece of evidence: its highest score counts (Neyman-Pearson: the bound is on the share of questions
with any false alarm, so also on FAR with every question weighing the same), or the mean of its
losses (conformal).
"""

from math import ceil, log
from typing import Literal, Self, TypedDict

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, model_validator
from scipy.special import gammaincc

from monitorbench.metrics.bootstrap import FloatArray, group_index
from monitorbench.metrics.control.rank import (
    check_rates,
    conformal_questions_needed,
    neyman_pearson_rank,
    samples_needed,
)
from monitorbench.scoring.calibration_split import CalibrationScores, Part
from monitorbench.scoring.mix import Mix, MixOf, Weights, of_questions, question_weights

_ROUNDING = 1e-9
"""Relative error granted to a tail probability: without it, one that equals delta is a coin toss."""


class CalibratedThreshold(BaseModel):
    """A threshold, what it promises, and where it comes from; `threshold` None with a `reason`.

    An alarm is a score strictly above `threshold`. `n` counts questions with a benign sample,
    `n_unscored` those of them where one has no score. `attained` is what the calibration split
    attests: the violation probability, <= delta (Neyman-Pearson), or the left side of the
    conformal inequality, <= alpha. `delta` is None for conformal risk control, `max_loss` for the other.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    method: Literal["neyman_pearson", "conformal_risk"]
    monitor: str
    category: str
    """The one category it is for; empty for all."""
    data: str
    part: Part
    alpha: float
    delta: float | None = None
    max_loss: float | None = None
    n: int
    n_unscored: int
    threshold: float | None
    attained: float | None = None
    reason: str = ""
    mix: MixOf = "drawn"
    """Whose shares of cells it holds for; `drawn` where the calibration split has them, so that none weighs
    more than another."""
    effective_n: float | None = None
    """Kish's: how many questions of equal weight would say as much; None where they do weigh the same."""

    @model_validator(mode="after")
    def _threshold_or_reason(self) -> Self:
        if (self.threshold is None) == (not self.reason):
            raise ValueError("expected either a threshold or the reason why there is none")
        return self


def weighted_questions_needed(alpha: float, delta: float) -> int:
    """The same of questions that don't weigh the same, by `Weights.worth`: ceil(−log(delta)/alpha)."""
    return max(1, ceil(-log(delta) / alpha * (1 - _ROUNDING)))


def weighted_tail(alarms: FloatArray, weights: FloatArray, alpha: float) -> FloatArray:
    """How likely so little is flagged at each threshold [thresholds] though the mix's FAR is `alpha`.

    `alarms` [thresholds, 3] are the sums of v, v² and v³ over the flagged questions, `weights` [questions]
    all v. Fay & Feuer's (1997, Statistics in Medicine 16:791) test of a weighted sum of independent counts:
    what was flagged, and one more question of the largest weight, is a sum of exponentials, whose tail above
    alpha is taken here from the gamma distribution of the same three moments (theirs has two and errs to the
    wrong side at a delta of .01). Without any alarm it is exp(−alpha/max v), a bound that is proven; with
    some it never fell short in the searches of `benchmarks/coverage/promises.py`.
    """
    largest = weights.max()
    first, second, third = (alarms + largest ** np.arange(1, 4)).T
    scale, shape = third / second, second**3 / third**2
    tails: FloatArray = gammaincc(shape, np.maximum(alpha - first + shape * scale, 0) / scale)
    return tails


def neyman_pearson(
    scored: CalibrationScores, *, alpha: float, delta: float, mix: Mix | None = None
) -> CalibratedThreshold:
    """The lowest order statistic of the benign scores whose FAR exceeds alpha with probability <= delta.

    With a `mix` whose shares of strata are not the calibration split's, FAR is that under the mix, and going
    down from the highest score the threshold is the last before `weighted_tail` exceeds delta: a sequence of
    tests in a fixed order needs no correction (Angelopoulos et al. 2021, Learn then Test, section 4.3).
    Over several categories each threshold keeps its own delta; all m of them hold together with
    probability >= 1 - m·delta. Raises `ValueError` unless `scored` has one member and alpha and
    delta are in (0, 1).
    """
    check_rates(alpha=alpha, delta=delta)
    monitor, scores, groups, _ = _benign(scored)
    highest = np.full(int(groups.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(highest, groups, scores)
    n, unscored = len(highest), int(np.isinf(highest).sum())
    weights = _weights(scored, groups, mix)
    found = (
        _by_rank(highest, alpha, delta)
        if weights.equal
        else _by_weight(highest, weights, alpha - weights.missing, delta)
    )
    threshold, met = found if found is not None and not np.isinf(found[0]) else (None, None)
    reason = "" if threshold is not None else _why_none(weights, n, unscored, alpha, delta)
    return CalibratedThreshold(
        method="neyman_pearson",
        monitor=monitor,
        category=scored.category,
        data=scored.data,
        part=scored.part,
        alpha=alpha,
        delta=delta,
        n=n,
        n_unscored=unscored,
        threshold=threshold,
        attained=met,
        reason=reason,
        **_of_mix(weights, mix),
    )


def _by_rank(highest: FloatArray, alpha: float, delta: float) -> tuple[float, float] | None:
    """The threshold, inf where it is a question without a score, and the probability that it is too low."""
    found = neyman_pearson_rank(len(highest), alpha, delta)
    if found is None:
        return None
    rank, met = found
    return float(np.partition(highest, rank - 1)[rank - 1]), met


def _by_weight(
    highest: FloatArray, weights: Weights, alpha: float, delta: float
) -> tuple[float, float] | None:
    """The same for questions of unequal weights; `alpha` is what the strata at hand may take up."""
    candidates = np.unique(highest[np.isfinite(highest)])[::-1]
    if not len(candidates) or alpha <= 0 or not weights.each.any():
        return None
    order = np.argsort(-highest, kind="stable")
    powers = weights.each[order, None] ** np.arange(1, 4)
    sums = np.concatenate([np.zeros((1, 3)), np.cumsum(powers, axis=0)])
    n_above = np.searchsorted(-highest[order], -candidates, side="left")
    tails = weighted_tail(sums[n_above], weights.each, alpha)
    kept = int(np.logical_and.accumulate(tails <= delta * (1 + _ROUNDING)).sum())
    return (float(candidates[kept - 1]), float(tails[kept - 1])) if kept else None


def _why_none(weights: Weights, n: int, unscored: int, alpha: float, delta: float) -> str:
    """Why no threshold keeps the promise."""
    promise = f"FAR <= {alpha:g} with probability {1 - delta:g}"
    needed = samples_needed(alpha, delta)
    if weights.equal:
        found = neyman_pearson_rank(n, alpha, delta)
        if found is None:
            return f"{n} benign questions, {needed} needed for {promise}"
        return f"{unscored} of {n} benign questions have no score; at most {n - found[0]} may"
    if weights.missing >= alpha:
        names = ", ".join(weights.lacking)
        return (
            f"{weights.missing:.3g} of the benign questions that the promise is about are of {names}, of "
            "which calibration has none; add some, or give another calibrate.mix"
        )
    needed = weighted_questions_needed(alpha, delta)
    lost = f", {unscored} without a score" if unscored else ""
    return (
        f"{n} benign questions{lost}, in other shares than the promise is about: by the scarcest of them "
        f"they are worth {int(weights.worth(alpha))}, and {needed} are needed for {promise}; add questions "
        "of that kind, or give another calibrate.mix"
    )


def _weights(scored: CalibrationScores, groups: NDArray[np.int64], mix: Mix | None) -> Weights:
    """What each question with a benign sample stands for."""
    strata = of_questions(groups, scored.strata[~scored.is_misbehavior])
    return question_weights(strata, None if mix is None else mix.within(scored.category))


class _OfMix(TypedDict):
    """What a threshold says of its mix."""

    mix: MixOf
    effective_n: float | None


def _of_mix(weights: Weights, mix: Mix | None) -> _OfMix:
    if weights.equal or mix is None:
        return _OfMix(mix="drawn", effective_n=None)
    return _OfMix(mix=mix.of, effective_n=weights.effective_n)


def conformal_risk(
    scored: CalibrationScores, *, alpha: float, max_loss: float = 1.0, mix: Mix | None = None
) -> CalibratedThreshold:
    """The lowest score t of the benign ones that keeps the expected loss of alarms above t at <= alpha.

    The loss of a question is the mean of its benign samples' `alarm_losses`, each counted where its
    score is above t or missing: non-increasing in t and at most B = `max_loss`. With R̂ the mean loss of
    the n questions, t is the lowest observed score with n/(n+1)·R̂(t) + B/(n+1) <= alpha (Angelopoulos
    et al. 2024, Conformal Risk Control, ICLR; 2208.02814, theorem 1). That bounds the *mean* over
    calibration splits, which is less than `neyman_pearson` promises and takes fewer samples. Under a `mix` a
    question weighs v and the one to come the largest v: (Σ v·loss + B·max v)/(1 + max v) <= alpha
    (proposition 3 there, after Tibshirani et al. 2019, section 2; the one to come is taken at its worst).
    Raises `ValueError` unless `scored` has one member, alpha > 0 and all losses are <= `max_loss`.
    """
    if alpha <= 0:
        raise ValueError(f"alpha={alpha}: expected a number > 0")
    monitor, scores, groups, losses = _benign(scored)
    if losses.size and losses.max() > max_loss:
        raise ValueError(f"alarm_losses: {losses.max():g} is above max_loss={max_loss:g}")
    sizes = np.bincount(groups)
    weights = _weights(scored, groups, mix)
    n = len(sizes)
    # In units of the one to come, so that equal weights are 1.
    largest = max(weights.each.max(initial=0), 1e-300)
    shares = losses * (weights.each / largest if not weights.equal else np.ones(n))[groups] / sizes[groups]
    total = n if weights.equal else 1 / largest
    order = np.lexsort((shares, scores))
    ranked = scores[order]
    up_to = np.concatenate([[0.0], np.cumsum(shares[order])])
    candidates = np.unique(scores[np.isfinite(scores)])
    above = up_to[-1] - up_to[np.searchsorted(ranked, candidates, side="right")]
    bounds = (above + max_loss * (1 + weights.missing / largest)) / (total + 1)
    kept = np.flatnonzero(bounds <= alpha * (1 + _ROUNDING))
    needed = conformal_questions_needed(alpha, max_loss)
    if len(kept):
        reason = ""
    elif total < needed:
        worth = "" if weights.equal else f", worth {int(total)} in the shares that the promise is about"
        reason = f"{n} benign questions{worth}, {needed} needed for a loss <= {alpha:g}"
    else:
        reason = f"too many of {n} benign questions have no score for a loss <= {alpha:g}"
    return CalibratedThreshold(
        method="conformal_risk",
        monitor=monitor,
        category=scored.category,
        data=scored.data,
        part=scored.part,
        alpha=alpha,
        max_loss=max_loss,
        n=n,
        n_unscored=len(np.unique(groups[np.isinf(scores)])),
        threshold=float(candidates[kept[0]]) if len(kept) else None,
        attained=float(bounds[kept[0]]) if len(kept) else None,
        reason=reason,
        **_of_mix(weights, mix),
    )


def _benign(scored: CalibrationScores) -> tuple[str, FloatArray, NDArray[np.int64], FloatArray]:
    """The member's name; of its benign samples the scores (inf: none), questions' numbers, losses."""
    if len(scored.members) != 1:
        raise ValueError(f"a threshold is for one monitor; got {len(scored.members)}: combine them first")
    rows = ~scored.is_misbehavior
    scores = scored.scores[rows, 0]
    return (
        scored.members[0],
        np.where(np.isnan(scores), np.inf, scores),
        group_index(scored.group_ids[rows].tolist()),
        scored.alarm_losses[rows],
    )
