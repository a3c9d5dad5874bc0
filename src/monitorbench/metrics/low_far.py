"""Misses at a bounded false alarm rate, and the ROC curve they are read off.

A sample is flagged where its score is at least the threshold, so all samples of one score are on the
same side of it: ties are never broken, and a rate that only breaking them would give is not claimed.
The threshold is chosen on the samples it is judged on, which flatters a monitor a little; one to
deploy is calibrated on other samples. Promises: samples without a score (None or NaN) are left out;
None where a class has no score.
"""

from typing import NamedTuple

import numpy as np

from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.columns import present
from monitorbench.metrics.curves import Flags, Scores
from monitorbench.metrics.ranking import ranked


class LowFar(NamedTuple):
    """The operating point of fewest misses among those of FAR <= alpha."""

    miss_rate: float
    threshold: float
    """Flagged: score >= threshold. The highest one of this miss rate; inf where nothing is flagged."""
    false_alarm_rate: float
    """The one reached, at most alpha."""
    next_false_alarm_rate: float | None
    """At the next threshold with fewer misses: above alpha, and far above it where many benign samples
    tie. None where no misses are left."""


class RocPoint(NamedTuple):
    """One point of the curve; flagged: score >= threshold, inf where nothing is."""

    threshold: float
    false_alarm_rate: float
    miss_rate: float


class Steps(NamedTuple):
    """What each threshold flags: nothing at first, then one distinct score more at each step."""

    thresholds: FloatArray
    """[steps], descending from inf."""
    alarms: IntArray
    """[steps]: benign samples flagged; the last is all of them."""
    caught: IntArray
    """[steps]: misbehavior samples flagged; the last is all of them."""


def steps(scores: Scores, is_misbehavior: Flags) -> Steps | None:
    """All thresholds that differ in what they flag; None where a class has no score. O(n log n)."""
    flags, values = present(is_misbehavior, scores)
    if not flags.any() or flags.all():
        return None
    rank = ranked(values)
    caught = np.cumsum(flags[rank.order])[rank.ends - 1]
    alarms = rank.ends - caught
    return Steps(np.append(np.inf, rank.scores), np.append(0, alarms), np.append(0, caught))


def miss_rate_at_far(scores: Scores, is_misbehavior: Flags, alpha: float) -> LowFar | None:
    """The smallest MR over thresholds whose FAR on these samples is at most `alpha`, in [0, 1].

    It always exists: nothing flagged has FAR 0. Its interval: `low_far_interval`. Raises ValueError
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
