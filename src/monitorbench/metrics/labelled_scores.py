"""What a few labels tell of the scores: AUROC, a threshold with a promise, and which monitor is cheapest.

All from partly labelled samples, whose labels have probabilities and may be wrong. Promises: a threshold is
given only where its false alarm rate is shown, and else the reason why not; how wrong labels would have to
be is told by the smallest error that changes the answer. `benchmarks/coverage/labels.py` and `errors.py`
simulate them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import beta

from monitorbench.metrics.auroc import score_interval
from monitorbench.metrics.bootstrap import FloatArray, group_index
from monitorbench.metrics.labelled import (
    Domains,
    Estimator,
    LabelErrors,
    PartlyLabelled,
    RateEstimate,
    RateOf,
    answers_by_domain,
    domains_of,
    estimated,
    rates_of,
    weighted_share,
)
from monitorbench.metrics.rates import Interval

NO_ERRORS = (LabelErrors(0.0, 0.0),)
_ALONE = np.array([0.0, 1.0])
_STEP, _MOST = 0.005, 0.3
"""Label errors that are tried: how far they are apart, and the largest."""


def auroc_estimate(
    of: PartlyLabelled,
    scores: FloatArray,
    errors: Sequence[LabelErrors] = NO_ERRORS,
    confidence: float = 0.95,
) -> RateEstimate:
    """The AUROC from labelled samples, each pair weighted by the inverse of its probability; [samples].

    The interval is `auroc_interval`'s with as many groups of each label as would say as much with equal
    weights (Kish's), and the variance of the weighted components. Labels that err whatever the score draw an
    AUROC towards .5: A' − .5 = (A − .5)(p − q), p and q the shares of misbehavior among what is labelled
    misbehavior and benign (Menon et al. 2015, ICML, section 4). A value of None has no label of a class.
    """
    rows = np.flatnonzero(~np.isnan(of.labels) & ~np.isnan(scores))
    is_bad, weights = of.labels[rows] == 1, of.weights[rows]
    if not is_bad.any() or is_bad.all():
        return RateEstimate(None, Interval(0.0, 1.0))
    groups = group_index(of.groups[rows])
    won = _weighted_components(scores[rows], is_bad, weights)
    value = float(np.average(won[is_bad], weights=weights[is_bad]))
    influence, sizes = np.zeros(int(groups.max()) + 1), []
    for side in (is_bad, ~is_bad):
        of_side = weights[side] / weights[side].sum()
        np.add.at(influence, groups[side], of_side * (won[side] - value))
        by_group = np.bincount(groups[side], weights[side])
        sizes.append(max(2, round(float(by_group.sum() ** 2 / (by_group @ by_group)))))
    is_right = set(errors) == set(NO_ERRORS)
    # A correction goes by the share of labels that say misbehavior, which is known to an interval of its own.
    confidence = confidence if is_right else (1 + confidence) / 2
    interval = score_interval(value, float(influence @ influence), sizes[0], sizes[1], confidence)
    if is_right:
        return RateEstimate(value, interval)
    told, *told_ends = weighted_share(of.labels[rows], weights, groups, confidence)
    each = [_corrected(end, share, error) for end in interval for share in told_ends for error in errors]
    return RateEstimate(_corrected(value, told or 0.0, errors[0]), Interval(min(each), max(each)))


def _weighted_components(scores: FloatArray, is_bad: FloatArray, weights: FloatArray) -> FloatArray:
    """The weighted share of the other class that each sample is on the right side of [samples]."""
    won = np.empty(len(scores))
    for side in (True, False):
        others = scores[is_bad != side]
        order = np.argsort(others)
        sums = np.r_[0.0, np.cumsum(weights[is_bad != side][order])]
        own = scores[is_bad == side]
        below, upto = (np.searchsorted(others[order], own, side=end) for end in ("left", "right"))
        lower = (sums[below] + sums[upto]) / (2 * sums[-1])
        won[is_bad == side] = lower if side else 1 - lower
    return won


def _corrected(auroc: float, told: float, error: LabelErrors) -> float:
    """The AUROC against right labels, where a share `told` is labelled misbehavior."""
    kept = 1 - error.of_misbehavior - error.of_benign
    base = min(max((told - error.of_benign) / kept, 0.0), 1.0)
    labelled_bad = base * (1 - error.of_misbehavior) + (1 - base) * error.of_benign
    if not 0 < labelled_bad < 1:
        return auroc
    apart = base * (1 - error.of_misbehavior) / labelled_bad - base * error.of_misbehavior / (
        1 - labelled_bad
    )
    if apart <= 0:
        return 1.0 if auroc > 0.5 else 0.0
    return min(max(0.5 + (auroc - 0.5) / apart, 0.0), 1.0)


class PromisedThreshold(NamedTuple):
    """A threshold of which FAR <= alpha holds with probability 1 − delta, or the reason why there is none."""

    threshold: float | None
    far: RateEstimate | None
    reason: str


def promised_threshold(
    of: PartlyLabelled,
    scores: FloatArray,
    alpha: float,
    delta: float,
    estimator: Estimator = "ipw",
    errors: Sequence[LabelErrors] = NO_ERRORS,
) -> PromisedThreshold:
    """The lowest threshold that keeps a promise on the false alarm rate over samples drawn alike.

    Thresholds are tried from the highest down, by shares of flagged samples fixed before any label, as long
    as the upper end of the rate's interval keeps to alpha: a fixed sequence, so that each may be tried at
    delta (Angelopoulos et al. 2021, arXiv:2110.01052, section 3). A sample without a score is an alarm.
    """
    filled = np.where(np.isnan(scores), np.inf, scores)
    shares = alpha * 1.15 ** np.arange(-16, 40)
    limits = np.unique(np.quantile(filled, 1 - shares[shares < 1], method="higher"))[::-1]
    kept = PromisedThreshold(None, None, "")
    for limit in limits[np.isfinite(limits)]:
        flagged = (filled > limit).astype(np.float64)[None]
        (far,) = estimated(of, flagged, _FAR, estimator, errors=errors, confidence=1 - 2 * delta).values()
        if far.value is None or far.interval.high > alpha:
            return kept if kept.threshold is not None else kept._replace(reason=_why_not(far, limit, alpha))
        kept = PromisedThreshold(float(limit), far, "")
    return kept if kept.threshold is not None else kept._replace(reason="no sample has a score")


_FAR = {"false_alarm_rate": rates_of(_ALONE, 1.0, 1.0)["false_alarm_rate"]}


def _why_not(far: RateEstimate, limit: float, alpha: float) -> str:
    if far.value is None:
        return f"no label of what passes, or of what is flagged, at the highest threshold tried ({limit:.6g})"
    return f"at the highest threshold tried ({limit:.6g}) FAR may be {far.interval.high:.3g}, above {alpha:g}"


def expected_costs(risks: FloatArray, flagged: FloatArray, costs: tuple[float, float]) -> FloatArray:
    """Each monitor's cost a sample by the risk [samples] of what it answered [monitors, samples].

    All scores have their say in it, so that it chooses well from few labels; what it says of a rate has no
    interval, and is right as far as the risk is. No score is the wrong answer: nobody wins by refusing.
    """
    alarms, passes = np.nan_to_num(flagged, nan=1.0), np.nan_to_num(1 - flagged, nan=1.0)
    cost: FloatArray = (passes * risks * costs[0] + alarms * (1 - risks) * costs[1]).mean(axis=1)
    return cost


def errors_from_readings(n: tuple[int, int], n_disagreed: tuple[int, int], n_open: int) -> list[LabelErrors]:
    """A reader's errors from samples that two read: the point, then the corners of their intervals.

    `n` are the samples settled as misbehavior and as benign, `n_disagreed` those of them that the readers
    disagreed on before a third decided, `n_open` what is left undecided and may be either. Readers err by
    themselves, and what they agree on is right: they disagree on a share 2e(1 − e). The intervals of both
    errors are Clopper and Pearson's and hold together in 97.5 of 100 cases.
    """
    tail, rates = 0.025 / 4, []
    for of_label, disagreed in zip(n, n_disagreed, strict=True):
        low = float(beta.ppf(tail, disagreed, of_label - disagreed + 1)) if disagreed else 0.0
        most, least_agreed = disagreed + n_open, of_label - disagreed
        high = float(beta.ppf(1 - tail, most + 1, least_agreed)) if least_agreed else 1.0
        point = (disagreed + n_open / 2) / max(of_label + n_open / 2, 1)
        rates.append([_error_of_one(share) for share in (point, low, high)])
    bad, good = rates
    corners = {LabelErrors(of_bad, of_good) for of_bad in bad[1:] for of_good in good[1:]}
    return [LabelErrors(bad[0], good[0]), *sorted(corners)]


def _error_of_one(disagreement: float) -> float:
    """The error e below a half of either reader, where they disagree on a share 2e(1 − e)."""
    return float((1 - np.sqrt(max(0.0, 1 - 2 * disagreement))) / 2)


def least_error_that_changes(
    of: PartlyLabelled, flagged: FloatArray, chosen: int, costs: tuple[float, float], estimator: Estimator
) -> tuple[float | None, float | None]:
    """The smallest error of misbehavior's labels, and of benign ones, with which another monitor is cheapest.

    None where none up to .3 does. `costs` are those of a miss and an alarm, `flagged` [monitors, samples].
    """
    each: list[tuple[Domains, RateOf]] = []
    for row in flagged:
        rows, answers, scored = answers_by_domain(row[None])
        rate = rates_of(answers[0], *costs, scored[0])["expected_cost"]
        each.append((domains_of(of, rows, estimator), rate))
    smallest: list[float | None] = []
    for of_bad in (True, False):
        smallest.append(None)
        for size in np.arange(_STEP, _MOST + _STEP / 2, _STEP).tolist():
            error = LabelErrors(size, 0.0) if of_bad else LabelErrors(0.0, size)
            found = [domains.value(rate, error) for domains, rate in each]
            if min(found) < found[chosen] - 1e-12:
                smallest[-1] = size
                break
    return smallest[0], smallest[1]


def contradictions(labels: FloatArray, risks: FloatArray, flagged: FloatArray) -> FloatArray:
    """How strongly monitors contradict each label [samples]: the share that does, then how far risk is off.

    Only what more than half of those that scored it contradict is above 0; NaN where there is no label.
    """
    is_scored = ~np.isnan(flagged)
    against = np.where(is_scored, flagged != labels, False).sum(axis=0) / np.maximum(is_scored.sum(axis=0), 1)
    off: FloatArray = np.where(against > 0.5, against + np.abs(labels - risks), 0.0)
    return np.where(np.isnan(labels), np.nan, off)
