"""The drift alarm: are a deployment's scores still drawn as those that were frozen? No labels are needed.

A promise holds where questions are drawn alike; this is the part of that which can be seen without labels.
The alarm keeps its level over all looks together. Whether the traffic or the monitor changed is read off the
anchors of the last check. NO_DRIFT is said only by an alarm that could have gone off: with too few scores the
answer is INCONCLUSIVE.
"""

from math import e, exp, inf, sqrt
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from monitorbench.config.base import UserError
from monitorbench.gate.change import needed
from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.untrusted_rows import rows, share

DRIFT_EXIT_CODES = {"NO_DRIFT": 0, "DRIFTED": 6, "INCONCLUSIVE": 5}
_UNSCORED = 2.0
"""Value above every score: what is unscored is never taken for benign."""
_HALF = 0.5
"""The share of a drift that would have to be put down to something else."""
Changed = Literal["traffic", "monitor", "both", "unknown"]


class LastAnchors(NamedTuple):
    """The anchors' scores when they were frozen and at the last check [samples], NaN where unscored."""

    before: FloatArray
    now: FloatArray
    groups: IntArray
    """[samples]: numbers of their questions, from 0."""
    has_moved: bool
    """Whether that check showed that they differ."""


class DriftAnswer(NamedTuple):
    """Answer of the drift alarm."""

    word: str
    why: str
    level: float
    """Probability that any of all looks there will ever be goes off where nothing drifted, at most."""
    look: int
    """Number of this look since the freeze, from 1; its own level is level/(look·(look + 1))."""
    distance: float | None
    """Distance of Kolmogorov and Smirnov: the largest between both distribution functions."""
    p_value: float | None
    """At least the p value, whatever the distribution: e·exp(−2D²·nm/(n + m))."""
    higher: float | None
    """P(now > frozen) + half of ties."""
    n_frozen: int
    n_now: int
    """Groups; a score without a group is one of its own."""
    changed: Changed | None
    """What changed, by the anchors of the last check: `unknown` without one, where they can't tell, and where
    it is how many scores are missing; None where no drift is shown."""
    unscored_frozen: float
    unscored_now: float
    """Shares of these of which one is unscored."""


def read_traffic(file: Path) -> list[float | None]:
    """The highest score of each group in a file, None where one of it is unscored; in the file's order.

    A row is an object with `score` (a number in [0, 1] or null) and perhaps `group` (a string), or else
    `sample_id`, which decisions on one exchange share; whatever else it has is not read, so that a log of
    verdicts will do. Raises `UserError` with the row's place, and what `rows` raises.
    """
    highest: dict[str | int, float] = {}
    for number, row in enumerate(rows(file, "gate.traffic")):
        where = f"{file}, {row.place}"
        score = share(row.fields, "score", where)
        group, name = (row.fields.get(field) for field in ("group", "sample_id"))
        if group is not None and not isinstance(group, str):
            raise UserError(f"{where}: group={group!r}; expected a string, or none")
        key = group or (name if isinstance(name, str) and name else number)
        highest[key] = max(highest.get(key, -inf), inf if score is None else score)
    return [None if value == inf else value for value in highest.values()]


def compare_traffic(
    frozen: tuple[float | None, ...],
    now: list[float | None],
    anchors: LastAnchors | None,
    *,
    level: float,
    look: int,
) -> DriftAnswer:
    """The two-sample Kolmogorov–Smirnov test by its bound for finite samples, at the level of this look."""
    first, second = _filled(frozen), _filled(now)
    n, m = len(first), len(second)
    own_level = 1 / needed(look, level)
    result = DriftAnswer(
        word="INCONCLUSIVE",
        why=f"{n} scores frozen and {m} now: too few for any alarm at look {look}, {own_level:.2g}",
        level=level,
        look=look,
        distance=None,
        p_value=None,
        higher=None,
        n_frozen=n,
        n_now=m,
        changed=None,
        unscored_frozen=float((first == _UNSCORED).mean()),
        unscored_now=float((second == _UNSCORED).mean()),
    )
    if _p_at_most(1.0, 1 / (1 / n + 1 / m)) > own_level:
        return result
    distance = _distance(first, second)
    p = _p_at_most(distance, 1 / (1 / n + 1 / m))
    below, upto = (np.searchsorted(np.sort(first), second, side=side) for side in ("left", "right"))
    higher = float((below + upto).mean() / (2 * n))
    result = result._replace(distance=distance, p_value=p, higher=higher)
    comparison = _compared(result, own_level)
    if p > own_level:
        return result._replace(word="NO_DRIFT", why=f"no drift shown: {comparison}")
    side = "higher" if higher > 0.5 else "lower" if higher < 0.5 else "as high, but spread otherwise"
    changed = _changed(first, second, anchors, level)
    why = _IN_WORDS[changed] if anchors is not None else _UNCHECKED
    missing = result.unscored_now - result.unscored_frozen
    if abs(missing) >= distance / 2 and not _has_drifted(first, second, own_level):
        # The last check's anchors say nothing of what was lost since.
        side, changed, why = f"{'more' if missing > 0 else 'less'} often missing", "unknown", _UNCHECKED
    why = f"scores are {side} than those frozen: {comparison}; {why}"
    return result._replace(word="DRIFTED", why=why, changed=changed)


def _has_drifted(first: FloatArray, second: FloatArray, level: float) -> bool:
    """Whether the scores that are there are shown to differ, whatever is missing."""
    scored = [of[of < _UNSCORED] for of in (first, second)]
    n, m = map(len, scored)
    return bool(n and m) and _p_at_most(_distance(*scored), 1 / (1 / n + 1 / m)) <= level


_UNCHECKED = "check the anchors to tell whether the monitor or the traffic changed"
_IN_WORDS: dict[Changed, str] = {
    "traffic": "the anchors stood at the last check: the traffic changed",
    "monitor": "the anchors moved as the traffic did: the monitor changed",
    "both": "the anchors moved, which does not explain it all: the monitor and the traffic changed",
    "unknown": "the last check of the anchors can't tell whether the monitor or the traffic changed: check "
    "them again, or freeze more of them",
}


def _changed(first: FloatArray, second: FloatArray, anchors: LastAnchors | None, level: float) -> Changed:
    """What changed, as far as the anchors can tell; `first` and `second` are the traffic, frozen and now.

    The traffic alone where the anchors stood and their move is surely less than half of the drift; the
    monitor alone where they moved, the frozen traffic moved as they did, quantile by quantile, is that of
    now, and their move is surely more than half of the drift.
    """
    if anchors is None:
        return "unknown"
    scored = ~np.isnan(anchors.before) & ~np.isnan(anchors.now)
    before, now, groups = anchors.before[scored], anchors.now[scored], anchors.groups[scored]
    low, high = _share_of_drift(first[first < _UNSCORED], second[second < _UNSCORED], before, now, groups)
    if not anchors.has_moved:
        return "traffic" if low > -_HALF and high < _HALF else "unknown"
    moved = np.where(first < _UNSCORED, np.interp(first, np.sort(before), np.sort(now)), first)
    n_effective = 1 / (1 / len(first) + 1 / len(second) + 1 / len(before))
    if _p_at_most(_distance(moved, second), n_effective) <= level:
        return "unknown" if low < 1 < high else "both"
    return "monitor" if low > _HALF and high < 1 + _HALF else "unknown"


def _share_of_drift(
    first: FloatArray, second: FloatArray, before: FloatArray, now: FloatArray, groups: IntArray
) -> tuple[float, float]:
    """Ends of the share of the drift by which the anchors moved, each held with 98.75 %, since two are asked.

    The drift moves an anchor from its quantile of the frozen traffic to the same one of today's. The share is
    the slope of the anchors' moves over these, through 0; its error is over whole groups.
    """
    if min(map(len, (first, second, before))) == 0:
        return -inf, inf
    ranks = np.searchsorted(np.sort(first), before, side="right") / len(first)
    expected = np.quantile(second, ranks) - np.quantile(first, ranks)
    size = float(expected @ expected)
    if not size:
        return -inf, inf
    share = float(expected @ (now - before)) / size
    left = np.bincount(groups, expected * (now - before - share * expected))
    reach = 2.24 * sqrt(float(left @ left)) / size
    return share - reach, share + reach


def _distance(first: FloatArray, second: FloatArray) -> float:
    """The largest distance between both distribution functions."""
    first, second = np.sort(first), np.sort(second)
    values = np.concatenate([first, second])
    shares = [np.searchsorted(of, values, side="right") / len(of) for of in (first, second)]
    return float(np.abs(shares[0] - shares[1]).max())


def _p_at_most(distance: float, n_effective: float) -> float:
    """A bound of the p value that holds for any distribution, ties included, and any two sample sizes.

    The inequality of Dvoretzky, Kiefer and Wolfowitz for two samples (Wei & Dudley 2012, Statistics &
    Probability Letters 82:636), with the constant e.
    """
    return min(1.0, e * exp(-2 * distance**2 * n_effective))


def _compared(found: DriftAnswer, own_level: float) -> str:
    return (
        f"distance {found.distance:.3f}, p at most {found.p_value:.2g} ({own_level:.2g} at look "
        f"{found.look}); {found.n_now} now, {found.n_frozen} frozen, unscored {found.unscored_now:.1%} "
        f"({found.unscored_frozen:.1%})"
    )


def _filled(scores: tuple[float | None, ...] | list[float | None]) -> FloatArray:
    return np.array([_UNSCORED if score is None else score for score in scores], dtype=np.float64)
