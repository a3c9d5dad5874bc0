"""Thresholds with a finite-sample guarantee, chosen on the calibration split and nowhere else.

Promises, for an alarm where score > threshold and questions (groups) that are drawn alike in
calibration and in use:

* `neyman_pearson`: with probability >= 1 - delta over calibration splits, FAR <= alpha;
* `conformal_risk`: on average over calibration splits, the expected loss of an alarm is <= alpha.

Both hold for any distribution of scores, ties included. A benign sample without a score counts as
one that every threshold alarms at: what is promised is a bound on the share that is alarmed at *or*
unscored, which is never below FAR over scored samples. A question with several benign samples is one
piece of evidence: its highest score counts (Neyman-Pearson: the bound is on the share of questions
with any false alarm, so also on FAR with every question weighing the same), or the mean of its
losses (conformal).
"""

from math import ceil, log, log1p
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, model_validator

from monitorbench.metrics.bootstrap import FloatArray, group_index
from monitorbench.scoring.calibration_split import CalibrationScores, Part

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

    @model_validator(mode="after")
    def _threshold_or_reason(self) -> Self:
        if (self.threshold is None) == (not self.reason):
            raise ValueError("expected either a threshold or the reason why there is none")
        return self


def neyman_pearson_rank(n: int, alpha: float, delta: float) -> tuple[int, float] | None:
    """The smallest k with P(Binomial(n, 1 - alpha) >= k) <= delta, and that probability.

    Tong, Feng & Li 2018 (Science Advances 4:eaao1659), proposition 1: the FAR of "alarm where score
    > the k-th smallest of n benign scores" exceeds alpha with at most that probability; exactly
    with it where scores are continuous, less with ties. None where even k = n fails, which is
    n < log(delta)/log(1 - alpha). O(n); raises `ValueError` unless alpha and delta are in (0, 1).
    """
    _check(alpha=alpha, delta=delta)
    # P(Binomial(n, 1 - alpha) >= k) = P(Binomial(n, alpha) <= n - k): sum the pmf from 0 alarms on.
    alarms = np.arange(n, dtype=np.float64)
    steps = np.log((n - alarms) / (alarms + 1)) + (log(alpha) - log1p(-alpha))
    log_pmf = n * log1p(-alpha) + np.concatenate([[0.0], np.cumsum(steps)])
    tail = np.cumsum(np.exp(log_pmf))
    allowed = int(np.searchsorted(tail, delta * (1 + _ROUNDING), side="right")) - 1
    allowed = min(allowed, n - 1)  # where rounding makes the tail at n - 1 look like delta
    return (n - allowed, float(tail[allowed])) if allowed >= 0 else None


def samples_needed(alpha: float, delta: float) -> int:
    """How many benign questions `neyman_pearson` takes at least: ceil(log(delta)/log(1 - alpha))."""
    _check(alpha=alpha, delta=delta)
    return max(1, ceil((log(delta) + log1p(_ROUNDING)) / log1p(-alpha)))


def conformal_questions_needed(alpha: float, max_loss: float = 1.0) -> int:
    """How many benign questions `conformal_risk` takes at least: ceil(max_loss/alpha - 1)."""
    return max(1, ceil(max_loss / alpha - 1 - _ROUNDING))


def neyman_pearson(scored: CalibrationScores, *, alpha: float, delta: float) -> CalibratedThreshold:
    """The lowest order statistic of the benign scores whose FAR exceeds alpha with probability <= delta.

    Over several categories each threshold keeps its own delta; all m of them hold together with
    probability >= 1 - m·delta. Raises `ValueError` unless `scored` has one member and alpha and
    delta are in (0, 1).
    """
    monitor, scores, groups, _ = _benign(scored)
    highest = np.full(int(groups.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(highest, groups, scores)
    n, unscored = len(highest), int(np.isinf(highest).sum())
    found = neyman_pearson_rank(n, alpha, delta)
    threshold, met, reason = None, None, ""
    if found is None:
        reason = (
            f"{n} benign questions, {samples_needed(alpha, delta)} needed for FAR <= {alpha:g} "
            f"with probability {1 - delta:g}"
        )
    else:
        rank, met = found
        value = float(np.partition(highest, rank - 1)[rank - 1])
        if np.isinf(value):
            met, reason = None, f"{unscored} of {n} benign questions have no score; at most {n - rank} may"
        else:
            threshold = value
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
    )


def conformal_risk(scored: CalibrationScores, *, alpha: float, max_loss: float = 1.0) -> CalibratedThreshold:
    """The lowest score t of the benign ones that keeps the expected loss of alarms above t at <= alpha.

    The loss of a question is the mean of its benign samples' `alarm_losses`, each counted where its
    score is above t or missing: non-increasing in t and at most B = `max_loss`. With R̂ the mean loss of
    the n questions, t is the lowest observed score with n/(n+1)·R̂(t) + B/(n+1) <= alpha (Angelopoulos
    et al. 2024, Conformal Risk Control, ICLR; 2208.02814, theorem 1). That bounds the *mean* over
    calibration splits, which is less than `neyman_pearson` promises and takes fewer samples.
    Raises `ValueError` unless `scored` has one member, alpha > 0 and all losses are <= `max_loss`.
    """
    if alpha <= 0:
        raise ValueError(f"alpha={alpha}: expected a number > 0")
    monitor, scores, groups, losses = _benign(scored)
    if losses.size and losses.max() > max_loss:
        raise ValueError(f"alarm_losses: {losses.max():g} is above max_loss={max_loss:g}")
    sizes = np.bincount(groups)
    n, shares = len(sizes), losses / sizes[groups]
    order = np.lexsort((shares, scores))
    ranked = scores[order]
    up_to = np.concatenate([[0.0], np.cumsum(shares[order])])
    candidates = np.unique(scores[np.isfinite(scores)])
    above = up_to[-1] - up_to[np.searchsorted(ranked, candidates, side="right")]
    bounds = (above + max_loss) / (n + 1)
    kept = np.flatnonzero(bounds <= alpha * (1 + _ROUNDING))
    needed = conformal_questions_needed(alpha, max_loss)
    if len(kept):
        reason = ""
    elif n < needed:
        reason = f"{n} benign questions, {needed} needed for a loss <= {alpha:g}"
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


def _check(**levels: float) -> None:
    for name, value in levels.items():
        if not 0 < value < 1:
            raise ValueError(f"{name}={value}: expected a number in (0, 1)")
