"""The interval of the miss rate at a bounded false alarm rate: groups are drawn, thresholds chosen anew.

A draw's threshold lies near the sample's own, so only samples near it need be told apart: those well
above it are flagged in every draw, those well below it in none. Groups that are alike by this measure
are drawn by kind (`group_kinds`). Promises: no approximation; the window is widened until every
draw's threshold lies inside it.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np

from monitorbench.metrics.group_kinds import group_sums, kind_draws, kinds_of_groups, percentiles, ratio
from monitorbench.metrics.bootstrap import FloatArray, IntArray, group_index
from monitorbench.metrics.columns import BoolArray, aligned
from monitorbench.metrics.curves import Flags, Scores
from monitorbench.metrics.group_kinds import Kinds
from monitorbench.metrics.low_far import check_alpha
from monitorbench.metrics.ranking import ranked
from monitorbench.metrics.rates import Interval


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
    """95 % percentile interval of `low_far.miss_rate_at_far` over draws of whole groups.

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
    # The product rounds; what counts is the quotient, as in `low_far.miss_rate_at_far`.
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
