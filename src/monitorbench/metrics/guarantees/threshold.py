"""Which threshold keeps a guarantee on false alarms, from benign samples that are used for nothing else.

Promises, for an alarm where score > threshold and questions (groups) that are drawn alike in calibration and
in use, or alike within strata whose shares in use are known (`mix`):

* `neyman_pearson`: with probability >= 1 - delta over calibration splits, FAR <= alpha;
* `conformal_risk`: on average over calibration splits, the share of false alarms is <= alpha.

Both hold for any distribution of scores, ties included. A benign sample without a score counts as one that
every threshold alarms at: what is promised is a bound on the share that is alarmed at *or* unscored, which is
never below FAR over scored samples. A question with several benign samples is one piece of evidence: its
highest score counts (Neyman-Pearson: the bound is on the share of questions with any false alarm, so also on
FAR with every question weighing the same), or the share of its samples (conformal).

Where the same split also chooses among K monitors (`n_candidates`), the luckiest threshold tends to win.
Then each of them gets delta/K, so that all K bounds hold at once with probability >= 1 - delta (Bonferroni),
whichever is chosen and however their scores depend on each other. A mean can't be shared out so: the FAR of
the chosen one is at most the sum of all K, hence each is kept at alpha/K on average, which costs more than
delta/K does. With many candidates `neyman_pearson` is the cheaper guarantee.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from monitorbench.metrics.bootstrap import FloatArray, IntArray, draws, group_index
from monitorbench.metrics.columns import BoolArray
from monitorbench.metrics.guarantees.lacking import CalibrationEvidence, Lacking, lacking
from monitorbench.metrics.guarantees.order_statistic import (
    ROUNDING,
    Guarantee,
    Weights,
    most_flagged,
    weighted_tail,
)
from monitorbench.metrics.rates import REPRODUCIBLE_WITHIN
from monitorbench.metrics.regret import first_flagged, flagged_along

_MOST_DRAWN = 50_000
"""Questions beyond which draws of an order statistic are taken from their exact distribution, at once."""


class Benign(NamedTuple):
    """Benign samples that a threshold is set on."""

    scores: FloatArray
    """[samples], without NaN; inf: no score, so that every threshold alarms at it."""
    groups: IntArray
    """[samples]: the numbers of their questions, at least 0."""
    weights: Weights | None = None
    """Share of the mix that each question stands for, in the order of their numbers; None: all alike."""
    everything: FloatArray | None = None
    """Scores of all calibration samples of either label, NaN where there is none: the threshold is put into
    the gap above the one it was found at (`clear_of_scores`), and says whether it flags anything. None: the
    threshold is the score itself."""


class GuaranteedThreshold(NamedTuple):
    """A threshold that keeps a guarantee, or why there is none."""

    threshold: float | None
    """An alarm is a score strictly above it."""
    attained: float | None
    """Level that the samples attest: the violation probability, <= delta/K, or the left side of the conformal
    inequality, <= alpha (/K)."""
    n: int
    """Questions with a benign sample."""
    n_unscored: int
    """Questions with a benign sample that has no score."""
    n_above: int
    """Questions with a benign sample above the threshold."""
    effective_n: float | None
    """Kish's number of questions of equal weight that say as much; None where all weigh the same."""
    flags_nothing: bool
    """Whether no score of the calibration samples, benign or misbehavior, is above the threshold."""
    lacking: Lacking | None
    """Obstacle where there is no threshold; None where there is one."""

    @property
    def reason(self) -> str:
        """Why there is no threshold; empty where there is one."""
        return "" if self.lacking is None else self.lacking.reason + self.lacking.otherwise


class _Ranked(NamedTuple):
    """Benign samples as a guarantee counts them: one row for each piece of evidence."""

    values: FloatArray
    """[rows]: the score from which on the row is flagged."""
    question: IntArray
    """[rows]: index of the row's question."""
    share: FloatArray
    """[rows]: the row's share of its question."""
    thresholds: FloatArray
    """Distinct finite values, the highest first."""
    weights: Weights | None
    """Weights of the questions; None where all questions weigh the same."""
    n: int


def guaranteed_threshold(benign: Benign, guarantee: Guarantee) -> GuaranteedThreshold:
    """Find the lowest threshold that keeps the guarantee; `ValueError` for what `Guarantee.check` refuses.

    `neyman_pearson`: the lowest order statistic of the benign scores whose FAR exceeds alpha with probability
    <= delta (`neyman_pearson_rank`). With unequal weights, going down from the highest score the threshold is
    the last before `weighted_tail` exceeds delta: a sequence of tests in a fixed order needs no correction
    (Angelopoulos et al. 2021, Learn then Test, section 4.3). Over several categories each threshold keeps its
    own delta; all m of them hold together with probability >= 1 - m·delta.

    `conformal_risk`: the lowest observed score t with n/(n+1)·R̂(t) + 1/(n+1) <= alpha, R̂ the mean over n
    questions of their shares of false alarms (Angelopoulos et al. 2024, Conformal Risk Control, ICLR;
    2208.02814, theorem 1). With unequal weights a question weighs v and the one to come the largest v:
    (Σ v·share + max v)/(1 + max v) <= alpha (proposition 3 there, after Tibshirani et al. 2019, section 2; at
    its worst).
    """
    guarantee.check()
    each = guarantee.of_each()
    ranked = _ranked(benign, each)
    levels = _levels(ranked, each, None)[0]
    n_kept = int(np.logical_and.accumulate(levels <= _limit(each)).sum())
    unscored = np.unique(benign.groups[np.isposinf(benign.scores)])
    weights = ranked.weights
    effective_n = None if weights is None else weights.effective_n
    if n_kept:
        raw = float(ranked.thresholds[n_kept - 1])
        everything = benign.scores if benign.everything is None else benign.everything
        threshold = raw if benign.everything is None else float(clear_of_scores(raw, everything))
        above = len(np.unique(benign.groups[benign.scores > raw]))
        nothing = not np.any(everything[np.isfinite(everything)] > raw)
        met = float(levels[n_kept - 1])
        return GuaranteedThreshold(threshold, met, ranked.n, len(unscored), above, effective_n, nothing, None)
    return GuaranteedThreshold(
        None,
        None,
        ranked.n,
        len(unscored),
        0,
        effective_n,
        False,
        lacking(_evidence(benign, ranked), guarantee),
    )


def clear_of_scores(thresholds: FloatArray | float, scores: FloatArray) -> FloatArray:
    """Raise thresholds [...] from the scores that they were found at into the gap above each.

    The sample with that score is then decided alike wherever it is judged again, since scores may differ by
    their last digits. The step is half of `REPRODUCIBLE_WITHIN`, or half of the gap where that is smaller: no
    score in `scores` [samples] changes sides, and a bound on false alarms holds at any higher threshold.
    """
    levels = np.asarray(thresholds, dtype=np.float64)
    values = np.append(np.unique(scores[np.isfinite(scores)]), np.inf)
    with np.errstate(invalid="ignore"):  # inf − inf where there is no threshold
        gap = values[np.minimum(np.searchsorted(values, levels, side="right"), len(values) - 1)] - levels
        raised = levels + np.minimum(REPRODUCIBLE_WITHIN, gap) / 2
    return np.where(np.isfinite(levels), np.minimum(raised, np.maximum(1.0, levels)), levels)


def kept_in_draws(
    benign: Benign, guarantee: Guarantee, thresholds: FloatArray, times: FloatArray
) -> IntArray:
    """Count the thresholds, from the highest on, that keep the guarantee where questions are drawn anew.

    `times` [draws, questions] is how often each question is in a draw; the counts are [draws].
    """
    each = guarantee.of_each()
    ranked = _ranked(benign, each)._replace(thresholds=thresholds)
    return first_failures(_levels(ranked, each, times) <= _limit(each))


def first_failures(kept: BoolArray) -> IntArray:
    """Count in `kept` [draws, thresholds] those before the first that is not kept [draws]."""
    n_before: IntArray = np.logical_and.accumulate(kept, axis=1).sum(axis=1)
    return n_before


def threshold_draws(benign: Benign, guarantee: Guarantee, *, resamples: int, seed: int) -> FloatArray:
    """Find the threshold anew in draws of as many questions [resamples]; `inf` where a draw has none.

    Monitors with the same questions get the same draws under one seed, up to 50,000 questions. Raises
    `ValueError` without a question, and what `Guarantee.check` raises.
    """
    guarantee.check()
    ranked = _ranked(benign, guarantee.of_each())
    if not ranked.n:
        raise ValueError("benign: expected at least one question")
    drawn = np.concatenate(list(_drawn(benign, guarantee.of_each(), ranked, resamples, seed)))
    return drawn if benign.everything is None else clear_of_scores(drawn, benign.everything)


def _drawn(
    benign: Benign, each: Guarantee, ranked: _Ranked, resamples: int, seed: int
) -> Iterator[FloatArray]:
    n = ranked.n
    if each.method == "neyman_pearson" and ranked.weights is None and n > _MOST_DRAWN:
        most, _ = most_flagged(n, each.alpha, each.delta)
        if most < 0:
            yield np.full(resamples, np.inf)
            return
        # The k-th of n picks among ranks 0 … n − 1 is floor(n·U), U the k-th of n uniform numbers.
        uniform = np.random.default_rng(seed).beta(n - most, most + 1, size=resamples)
        yield np.sort(ranked.values)[np.minimum((uniform * n).astype(np.int64), n - 1)]
        return
    thresholds = np.append(np.inf, ranked.thresholds)
    ranked = ranked._replace(thresholds=thresholds)
    above = first_flagged(ranked.values, thresholds)
    from_here = np.searchsorted(-thresholds, -ranked.values, side="left")
    for batch in draws(n, resamples, seed, per_draw=4 * len(ranked.values)):
        times = batch.astype(np.float64)
        rows = times[:, ranked.question]
        # A value that is in no draw is no candidate: the last kept one that was drawn.
        is_drawn = flagged_along(from_here, len(thresholds), rows) > flagged_along(
            above, len(thresholds), rows
        )
        allowed = np.logical_and.accumulate(_levels(ranked, each, times) <= _limit(each), axis=1) & is_drawn
        last = allowed.shape[1] - 1 - np.argmax(allowed[:, ::-1], axis=1)
        yield np.where(allowed.any(axis=1), thresholds[last], np.inf)


def _limit(each: Guarantee) -> float:
    return (each.delta if each.method == "neyman_pearson" else each.alpha) * (1 + ROUNDING)


def _ranked(benign: Benign, each: Guarantee) -> _Ranked:
    index = group_index(benign.groups)
    n = int(index.max(initial=-1)) + 1
    weights = None if benign.weights is None or benign.weights.equal else benign.weights
    if each.method == "neyman_pearson":
        values = np.full(n, -np.inf)
        np.maximum.at(values, index, benign.scores)
        question, share = np.arange(n), np.ones(n)
    else:
        values, question = benign.scores, index
        share = 1 / np.bincount(index)[index]
    thresholds = np.unique(values[np.isfinite(values)])[::-1]
    return _Ranked(values, question, share, thresholds, weights, n)


def _levels(ranked: _Ranked, each: Guarantee, times: FloatArray | None) -> FloatArray:
    """Compute what delta (Neyman-Pearson) or alpha must bound [draws, thresholds]; one draw without times."""
    drawn = np.ones((1, ranked.n)) if times is None else times
    n_thresholds, weights = len(ranked.thresholds), ranked.weights
    first = first_flagged(ranked.values, ranked.thresholds)
    rows = drawn[:, ranked.question] * ranked.share
    if each.method == "conformal_risk":
        # In units of the question to come, so that equal weights are 1.
        relative, missing = np.ones(ranked.n), 0.0
        if weights is not None:
            largest = max(weights.each.max(initial=0), 1e-300)
            relative, missing = weights.each / largest, weights.missing / largest
        lost = flagged_along(first, n_thresholds, rows * relative[ranked.question])
        total = (drawn * relative).sum(axis=1, keepdims=True) + missing
        bounds: FloatArray = (lost + (1 + missing)) / (total + 1)
        return bounds
    if weights is None:
        flagged = flagged_along(first, n_thresholds, rows)
        sizes = np.rint(drawn.sum(axis=1)).astype(np.int64).tolist()
        most = np.array([most_flagged(size, each.alpha, each.delta) for size in sizes])
        return np.where(flagged <= most[:, :1] + 0.5, most[:, 1:], 1.0)
    alpha_left = each.alpha - weights.missing
    if alpha_left <= 0 or not weights.each.any():
        return np.ones((len(drawn), n_thresholds))
    of_question, says_something = np.broadcast_to(weights.each, drawn.shape), np.ones((len(drawn), 1), bool)
    if times is not None:  # a draw has other numbers of each stratum, or none that the mix knows
        total = (drawn @ weights.each)[:, None]
        says_something = total > 0
        of_question = np.where(
            says_something, of_question * (1 - weights.missing) / np.where(says_something, total, 1), 1.0
        )
    sums = [flagged_along(first, n_thresholds, rows * of_question**power) for power in (1, 2, 3)]
    tails = weighted_tail(np.stack(sums, axis=-1), of_question, alpha_left)
    return np.where(says_something, tails, 1.0)


def _evidence(benign: Benign, ranked: _Ranked) -> CalibrationEvidence:
    everything = benign.scores if benign.everything is None else benign.everything
    finite = everything[np.isfinite(everything)]
    is_lost = np.isposinf(ranked.values)
    lost = np.zeros(ranked.n)
    np.add.at(lost, ranked.question, is_lost * ranked.share)
    top = float(finite.max()) if len(finite) else -np.inf
    # Of benign samples alone nothing is known of the scores that misbehavior reaches.
    is_known = benign.everything is not None and len(everything) > len(benign.scores)
    at_top = len(np.unique(benign.groups[np.isfinite(benign.scores) & (benign.scores >= top) & is_known]))
    unscored = len(np.unique(benign.groups[np.isposinf(benign.scores)]))
    return CalibrationEvidence(lost, unscored, at_top, len(finite) > 0, ranked.weights)
