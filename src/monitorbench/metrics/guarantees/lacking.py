"""Say what is lacking where no threshold keeps a guarantee: questions, scores, or another monitor.

Promises: the number of further questions is one that leads to a threshold. Where all questions so far have a
score it is exact, given that the further ones get one as well. Where some have none, which count as false
alarms at any threshold, it is planned: with it a threshold is found with a probability of .95, the share
without a score being known from these questions only.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr

from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.guarantees.order_statistic import (
    ROUNDING,
    Guarantee,
    Weights,
    conformal_questions_needed,
    most_flagged,
    samples_needed,
    weighted_questions_needed,
)

_SURE = 0.95
_NORMAL = 1.6448536269514722
"""The standard normal quantile of `_SURE`."""
_FURTHEST = 100
"""How many times the questions at hand are tried when asking how many more it takes."""
PASSED_BY = "of imported scores import.missing=pass"
"""The setting by which missing scores pass; `recommend` has one of its own, for other scores."""
_REMEDY = f"have them judged, or say so where they pass unflagged in use ({PASSED_BY})"


class Lacking(NamedTuple):
    """Why no threshold keeps a guarantee, and whether more questions would help."""

    reason: str
    n_more: int | None
    """Number of further benign questions with which a threshold is found; None where no number helps."""
    by_stratum: Mapping[str, int] = {}
    """The further questions of each stratum, where the promise is for another mix of them."""
    otherwise: str = ""
    """How many questions lead to any threshold in place of scores, to be put behind the reason."""


class CalibrationEvidence(NamedTuple):
    """Benign questions without a threshold, as far as it matters for what is lacking."""

    lost: FloatArray
    """[questions]: the part of each that no threshold passes for want of a score, in [0, 1]."""
    n_unscored: int
    """Questions with a benign sample that has no score."""
    n_at_top: int
    """Questions with a benign sample at the highest score of all samples; 0 where only benign are known."""
    has_scores: bool
    weights: Weights | None
    """Weights of the questions; None where all questions weigh the same."""


def lacking(of: CalibrationEvidence, guarantee: Guarantee) -> Lacking:
    """Say what is lacking for the guarantee, in the same words wherever it is asked for."""
    each, n, unscored = guarantee.of_each(), len(of.lost), of.n_unscored
    promise = guarantee.in_words()
    if n and not of.has_scores:
        return Lacking(
            f"{n} of {n} benign questions have no score: a monitor without scores can't be calibrated, and "
            "more questions do not change that",
            None,
        )
    weights = of.weights
    if weights is not None and weights.missing >= each.alpha:
        names = ", ".join(weights.lacking)
        remark = f"{weights.missing:.3g} of these are of {names}, of which calibration has none"
        return _short_of_strata(n, remark, promise, weights.short_of(least_questions(each, weighted=True)))
    needed = _planned_questions(of, each)
    least = least_questions(each, weighted=weights is not None)
    if unscored and needed is None:
        is_hopeless = float(of.lost.mean()) >= each.alpha
        surely = f"not even {_FURTHEST} times as many questions surely lead"
        leads = "no number of further questions leads" if is_hopeless else surely
        return Lacking(
            f"{unscored} of {n} benign questions have no score, which makes them false alarms at any "
            f"threshold: {_REMEDY}; with so large a share {leads} to {promise}",
            None,
        )
    if of.n_at_top > max(1, each.alpha * n):
        return Lacking(
            f"{n} benign questions, {least} needed for {promise}; but {of.n_at_top} of them reach the "
            "highest score there is, above which nothing is flagged: scores that take few values, as a "
            "monitor's bare answers do, can't be calibrated so, and more questions do not change that",
            None,
        )
    assert needed is not None
    if weights is not None:
        lost = f"{unscored} of them have no score" if unscored else ""
        return _short_of_strata(n, lost, promise, weights.short_of(needed))
    if not unscored:
        return Lacking(f"{n} benign questions, {least} needed for {promise}", needed - n)
    most = _most_lost(n, each)
    allowed = f"; at most {most:g} may have none" if n >= least else f", {least} needed for {promise}"
    return Lacking(
        f"{unscored} of {n} benign questions have no score, which makes them false alarms at any threshold"
        f"{allowed}: {_REMEDY}",
        needed - n,
        otherwise=f"; or, if as large a share of others has none, {needed - n:,} more benign questions lead "
        f"to a threshold with probability {_SURE:g}",
    )


def _short_of_strata(n: int, remark: str, promise: str, short: Mapping[str, int]) -> Lacking:
    """Say which questions are missing where the promise is about other shares of strata than there are."""
    if not short:  # a category in which the mix has no share at all
        return Lacking(
            f"{n} benign questions, none of which the promise is about; change calibrate.mix", None
        )
    n_more = sum(short.values())
    of_strata = ", ".join(f"{name} {missing:,}" for name, missing in sorted(short.items()))
    return Lacking(
        f"{n} benign questions, {n + n_more:,} needed for {promise} in the shares that it is about"
        f"{f' ({remark})' if remark else ''}: {n_more:,} more ({of_strata}); or give another calibrate.mix",
        n_more,
        short,
    )


def least_questions(each: Guarantee, *, weighted: bool = False) -> int:
    """Count the benign questions that a guarantee of one monitor takes at least, all of them with a score."""
    if each.method == "conformal_risk":
        return conformal_questions_needed(each.alpha)
    if weighted:
        return weighted_questions_needed(each.alpha, each.delta)
    return samples_needed(each.alpha, each.delta)


def _planned_questions(of: CalibrationEvidence, each: Guarantee) -> int | None:
    """Plan how many questions in all lead to a threshold; None where no number does.

    The share without a score among further questions is beta-distributed given those so far (Jeffreys'
    prior). Where even very many questions would not do for all shares that are as likely as that, the share
    is taken as it is most likely known, which promises less; at a share of alpha or more nothing helps.
    """
    n, least = len(of.lost), least_questions(each, weighted=of.weights is not None)
    if of.weights is not None:
        lost = float(of.weights.each @ (of.lost > 0)) / max(float(of.weights.each.sum()), 1e-300)
    else:
        lost = float(of.lost.mean()) if n else 0.0
    if not lost:
        return least
    if lost >= each.alpha:
        return None
    low, furthest = max(n + 1, least), _FURTHEST * max(n, least)
    for is_certain in (False, True):
        if _would_do(furthest, of, each, lost, is_certain):
            high = furthest
            while low < high:
                middle = (low + high) // 2
                if _would_do(middle, of, each, lost, is_certain):
                    high = middle
                else:
                    low = middle + 1
            return low
    return None


def _most_lost(n: int, each: Guarantee) -> float:
    """Compute the most that n questions may lose to missing scores, and still have a threshold."""
    if each.method == "conformal_risk":
        return each.alpha * (1 + ROUNDING) * (n + 1) - 1
    return most_flagged(n, each.alpha, each.delta)[0]


def _would_do(n_all: int, of: CalibrationEvidence, each: Guarantee, share: float, is_certain: bool) -> bool:
    """Whether n questions in all leave room for those without a score, with probability `_SURE`."""
    n, lost = len(of.lost), share * len(of.lost)
    further, room = n_all - n, _most_lost(n_all, each) - lost
    if room < 0:
        return False
    if each.method == "conformal_risk":  # parts of questions: a normal forecast, by their spread
        spread = float(np.var(of.lost)) * (further + (0 if is_certain else further**2 / n))
        return bool(share * further + _NORMAL * spread**0.5 <= room + 1e-9)
    if is_certain:
        return bool(bdtr(int(room), further, share) >= _SURE)
    from scipy.stats import betabinom  # takes most of a second to import

    return bool(betabinom.cdf(int(room), further, lost + 0.5, n - lost + 0.5) >= _SURE)


def questions_of_cells(shares: dict[str, float], n: int) -> dict[str, int]:
    """Share n questions out among cells, as close to the shares as can be (largest remainders)."""
    if n <= 0:
        return {}
    exact = {name: n * share for name, share in shares.items()}
    counts = {name: int(value) for name, value in exact.items()}
    n_left = n - sum(counts.values())
    for name in sorted(exact, key=lambda cell: (counts[cell] - exact[cell], cell))[: max(n_left, 0)]:
        counts[name] += 1
    return {name: count for name, count in counts.items() if count}
