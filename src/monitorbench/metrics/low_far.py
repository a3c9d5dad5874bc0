"""Misses at a bounded false alarm rate, and the ROC curve they are read off.

A sample is flagged where its score is above the threshold, as everywhere, so all samples of one score are on
the same side of it: ties are never broken, and a rate that only breaking them would give is not claimed.
The threshold is chosen on the samples it is judged on, which flatters a monitor a little; one to
deploy is calibrated on other samples. Promises: samples without a score (None or NaN) are left out;
None where a class has no score.

Its interval draws groups and chooses the threshold anew in each draw. A draw's threshold lies near the
sample's own, so only samples near it need be told apart (`window`): those well above it are flagged in every
draw, those well below it in none, and groups that are alike by this measure are drawn by kind. That is no
approximation: the window is widened until every draw's threshold lies inside it.
"""

from math import ceil, log, log1p, sqrt
from typing import NamedTuple

import numpy as np

from monitorbench.metrics.auroc import Flags, Scores, ranked
from monitorbench.metrics.bootstrap import (
    FloatArray,
    IntArray,
    Kinds,
    group_index,
    group_sums,
    kind_draws,
    kinds_of_groups,
    percentiles,
    ratio,
)
from monitorbench.metrics.columns import BoolArray, aligned, present
from monitorbench.metrics.rates import Interval


class LowFar(NamedTuple):
    """The operating point of fewest misses among those of FAR <= alpha."""

    miss_rate: float
    threshold: float
    """Flagged: score > threshold. The highest score of this miss rate; -inf where all are flagged."""
    false_alarm_rate: float
    """The one reached, at most alpha."""
    next_false_alarm_rate: float | None
    """At the next threshold with fewer misses: above alpha, and far above it where many benign samples
    tie. None where no misses are left."""


class RocPoint(NamedTuple):
    """One point of the curve; flagged: score > threshold, -inf where everything is."""

    threshold: float
    false_alarm_rate: float
    miss_rate: float


class RocSteps(NamedTuple):
    """What each threshold flags: nothing at first, then one distinct score more at each step."""

    thresholds: FloatArray
    """[steps], descending from the highest score to -inf: flagged is what is above."""
    alarms: IntArray
    """[steps]: benign samples flagged; the last is all of them."""
    caught: IntArray
    """[steps]: misbehavior samples flagged; the last is all of them."""


def steps(scores: Scores, is_misbehavior: Flags) -> RocSteps | None:
    """All thresholds that differ in what they flag; None where a class has no score. O(n log n)."""
    flags, values = present(is_misbehavior, scores)
    if not flags.any() or flags.all():
        return None
    rank = ranked(values)
    caught = np.cumsum(flags[rank.order])[rank.ends - 1]
    alarms = rank.ends - caught
    return RocSteps(np.append(rank.scores, -np.inf), np.append(0, alarms), np.append(0, caught))


def miss_rate_at_far(scores: Scores, is_misbehavior: Flags, alpha: float) -> LowFar | None:
    """The smallest MR over thresholds whose FAR on these samples is at most `alpha`, in [0, 1].

    It always exists: nothing flagged has FAR 0. Its interval: `miss_rate_at_far_interval`. Raises ValueError
    for another `alpha`.
    """
    check_alpha(alpha)
    found = steps(scores, is_misbehavior)
    if found is None:
        return None
    alarms, caught = found.alarms / found.alarms[-1], found.caught
    best = caught[np.count_nonzero(alarms <= alpha) - 1]
    here = int(np.searchsorted(caught, best, side="left"))
    following = int(np.searchsorted(caught, best, side="right"))
    return LowFar(
        miss_rate=float((caught[-1] - best) / caught[-1]),
        threshold=float(found.thresholds[here]),
        false_alarm_rate=float(alarms[here]),
        next_false_alarm_rate=float(alarms[following]) if following < len(caught) else None,
    )


def questions_needed(alpha: float) -> int:
    """Benign questions below which a rate at FAR <= `alpha` in (0, 1) is not given: 59 for 5 %, 299 for 1 %.

    So many that one of them scores above the threshold of FAR `alpha` with a chance of 95 %, (1 − alpha)^n <=
    .05: below, the threshold is likely not among the scores at all.
    """
    return ceil(log(0.05) / log1p(-alpha))


def enough_for(alpha: float, scores: FloatArray, is_misbehavior: BoolArray, groups: IntArray) -> bool:
    """Whether there are `questions_needed` with a scored benign sample; all [samples]."""
    benign = ~is_misbehavior & ~np.isnan(scores)
    return len(np.unique(groups[benign])) >= questions_needed(alpha)


def check_alpha(alpha: float) -> None:
    """Raise ValueError where `alpha` is no rate."""
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha: got {alpha}, expected a false alarm rate in [0, 1]")


def roc_points(scores: Scores, is_misbehavior: Flags, n: int = 200) -> list[RocPoint]:
    """At most `n` points of the curve from nothing flagged to everything; empty where a class has no score.

    All of them where they are no more than `n`; else points of the curve spaced evenly in FAR + TPR, so
    that between two neighbours the curve moves by at most 2/(n − 1) and one step of ties. Raises
    ValueError for n < 2.
    """
    if n < 2:
        raise ValueError(f"n: got {n}, expected at least the curve's 2 ends")
    found = steps(scores, is_misbehavior)
    if found is None:
        return []
    alarms = found.alarms / found.alarms[-1]
    hits = found.caught / found.caught[-1]
    kept = np.arange(len(alarms))
    if len(kept) > n:
        kept = np.unique(np.searchsorted(alarms + hits, np.linspace(0, 2, n)))
    misses = (found.caught[-1] - found.caught) / found.caught[-1]
    return [RocPoint(float(found.thresholds[i]), float(alarms[i]), float(misses[i])) for i in kept]


class Window(NamedTuple):
    """One group of each kind, its samples around a threshold by descending score, and its other counts."""

    kinds: Kinds
    """Columns: which samples are inside, as a pattern's number; benign and misbehavior samples above
    the window; all benign and misbehavior samples."""
    kind_of_sample: IntArray
    """[inside]"""
    is_misbehavior: BoolArray
    """[inside]"""
    n_blocks: IntArray
    """[inside], of the window's blocks of ties that hold benign samples: for a benign sample how many lie
    above its own, for a misbehavior sample how many are flagged before or with it."""
    reaches_the_end: bool
    """Whether no sample lies below the window."""


def miss_rate_at_far_interval(
    scores: Scores, is_misbehavior: Flags, groups: IntArray, alpha: float, *, resamples: int, seed: int
) -> Interval | None:
    """95 % percentile interval of `miss_rate_at_far` over draws of whole groups.

    `groups` [samples] holds the numbers of the samples' groups. None where a class has no score, and
    with fewer than two groups. Raises ValueError for `alpha` outside [0, 1].
    """
    check_alpha(alpha)
    flags, values = aligned(is_misbehavior, scores)
    kept = ~np.isnan(values)
    flags, values = flags[kept], values[kept]
    n_benign = np.count_nonzero(~flags)
    index = group_index(groups[kept])
    if not 0 < n_benign < len(flags) or index.max() == 0:
        return None
    half = 5 * sqrt(alpha * n_benign) + 8
    while True:  # at the latest when the window holds every benign sample, all draws are inside
        found = window(values, flags, index, alpha, half)
        misses = _draw_all(found, alpha, resamples, seed)
        if misses is not None:
            return percentiles(misses)
        half *= 3


def window(
    scores: FloatArray, is_misbehavior: BoolArray, groups: IntArray, alpha: float, half: float
) -> Window:
    """The window from `half` benign samples above the threshold of FAR `alpha` to as many below it.

    `groups` numbers every group from 0.
    """
    rank = ranked(scores)
    flags, groups, ends = is_misbehavior[rank.order], groups[rank.order], rank.ends - 1
    alarms = np.cumsum(~flags)[ends]
    middle = alpha * alarms[-1]
    first = int(np.searchsorted(alarms, max(0.0, middle - half), side="right"))
    last = min(int(np.searchsorted(alarms, middle + half, side="right")), len(ends) - 1)
    start, stop = (ends[first - 1] + 1 if first else 0), ends[last] + 1
    above = np.arange(len(flags)) < start
    counts = np.stack([above & ~flags, above & flags, ~flags, flags], axis=1).astype(np.int64)
    rows = group_sums(counts, groups)
    bad, group = flags[start:stop], groups[start:stop]
    step = np.repeat(np.arange(last + 1 - first), np.diff(ends[first : last + 1] + 1, prepend=start))
    holds_benign = np.zeros(last + 1 - first, dtype=np.int64)
    holds_benign[step[~bad]] = 1
    # Misbehavior samples between the same two of these blocks are flagged by the same thresholds that matter.
    n_blocks = np.cumsum(holds_benign)[step] - ~bad
    kinds = kinds_of_groups(np.column_stack([_patterns(2 * n_blocks + bad, group, len(rows)), rows]))
    example = np.zeros(len(rows), dtype=np.bool_)
    example[np.unique(kinds.of_group, return_index=True)[1]] = True
    shown = example[group]  # has every block inside: each is in some group, so in its kind's example
    return Window(
        kinds=kinds,
        kind_of_sample=kinds.of_group[group[shown]],
        is_misbehavior=bad[shown],
        n_blocks=n_blocks[shown],
        reaches_the_end=last == len(ends) - 1,
    )


def _patterns(what: IntArray, group: IntArray, n_groups: int) -> IntArray:
    """Number [groups] the groups' multisets of `what` [samples]: equal ones share a number.

    By sums of random 64-bit words: among a million groups two different ones collide with a chance
    below 10⁻⁷.
    """
    words = np.random.default_rng(0).integers(2**64, size=int(what.max()) + 1, dtype=np.uint64)
    sums = np.zeros(n_groups, dtype=np.uint64)
    np.add.at(sums, group, words[what])  # wraps round
    numbers: IntArray = np.unique(sums, return_inverse=True)[1]
    return numbers


def draw_values(found: Window, weights: FloatArray, alpha: float) -> tuple[FloatArray, bool]:
    """MR at FAR <= `alpha` [draws], each kind counted `weights` [draws, kinds] times; NaN without a class.

    And whether every draw's threshold lies in the window; if not, the values are not to be used.
    """
    above_benign, above_bad, benign, bad = (weights @ found.kinds.rows[:, 1:].astype(np.float64)).T
    defined = (benign > 0) & (bad > 0)
    room = _most_alarms(benign, alpha) - above_benign  # alarms that the window may still add
    of_bad, good = found.is_misbehavior, np.flatnonzero(~found.is_misbehavior)
    last = np.flatnonzero(np.diff(found.n_blocks[good], append=-1))
    alarms = np.cumsum(weights[:, found.kind_of_sample[good]], axis=1)[:, last]
    stop = np.count_nonzero(alarms <= room[:, None], axis=1)  # the first block that is one too many
    kinds = found.kind_of_sample[of_bad]
    upto = np.searchsorted(found.n_blocks[of_bad], stop, side="right")
    caught = np.array([row[kinds[:n]].sum() for row, n in zip(weights, upto.tolist(), strict=True)])
    inside = room >= 0
    if not found.reaches_the_end:
        inside &= stop < len(last)
    misses = ratio(bad - above_bad - caught, np.where(defined, bad, 0))
    return misses, bool((inside | ~defined).all())


def _most_alarms(benign: FloatArray, alpha: float) -> FloatArray:
    """The largest whole numbers of alarms whose shares of `benign` [draws] are at most `alpha`."""
    n = np.maximum(benign, 1)
    most: FloatArray = np.floor(alpha * n)
    # The product rounds; what counts is the quotient, as in `miss_rate_at_far`.
    most += (most + 1) / n <= alpha
    most -= most / n > alpha
    return most


def _draw_all(found: Window, alpha: float, resamples: int, seed: int) -> FloatArray | None:
    batches = []
    per_draw = len(found.kind_of_sample)
    for weights in kind_draws(found.kinds.n_groups, resamples, seed, per_draw=per_draw):
        values, inside = draw_values(found, weights, alpha)
        if not inside:
            return None
        batches.append(values)
    return np.concatenate(batches)
