"""The drift alarm: are a deployment's scores still drawn as those that were frozen? No labels are needed.

A promise holds where questions are drawn alike; this is the part of that which can be seen without labels.
An alarm says that the traffic or the monitor changed, not which: a check of the anchors tells them apart.
NO_DRIFT is said only by an alarm that could have gone off: with too few scores, or a level too small for the
permutations that can be drawn, the answer is INCONCLUSIVE.
"""

from collections.abc import Mapping
from contextlib import suppress
from math import ceil, comb, inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from monitorbench.config.base import UserError
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.drift import two_samples
from monitorbench.untrusted_rows import rows

DRIFT_EXIT_CODES = {"NO_DRIFT": 0, "DRIFTED": 6, "INCONCLUSIVE": 5}
_UNSCORED = 2.0
"""Value above every score: what is unscored is never taken for benign."""
_MOST_SCORES = 100_000
"""Groups of a deployment that are compared; of more as many by chance, which keeps the test exact."""
_MOST_WORK, _MOST_PERMUTATIONS = 50_000_000, 200_000
"""Scores times permutations beyond those that the level needs; permutations at all."""


class DriftAnswer(NamedTuple):
    """Answer of the drift alarm."""

    word: str
    why: str
    level: float
    """How often it goes off where nothing drifted, at most."""
    distance: float | None
    """Distance of Kolmogorov and Smirnov: the largest between both distribution functions."""
    p_value: float | None
    """The p-value by permutation of groups, ties included."""
    higher: float | None
    """P(now > frozen) + half of ties."""
    n_frozen: int
    n_now: int
    """Groups; a score without a group is one of its own."""
    n_compared: int
    """Groups of `n_now` that were compared: all, or so many drawn by chance."""
    permutations: int
    """0 where none were drawn."""
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
        group, score = _entry(row.fields, f"{file}, {row.place}")
        key = number if group is None else group
        highest[key] = max(highest.get(key, -inf), inf if score is None else score)
    return [None if value == inf else value for value in highest.values()]


def _entry(entry: Mapping[str, Any], where: str) -> tuple[str | None, float | None]:
    if "score" not in entry:
        raise UserError(f"{where}: no score in it; expected a number from 0 to 1, or null where unscored")
    score, group = entry["score"], entry.get("group")
    if isinstance(score, str):  # as a CSV has it
        with suppress(ValueError):
            score = float(score) if score.strip() else None
    if isinstance(score, bool) or not (score is None or (isinstance(score, int | float) and 0 <= score <= 1)):
        raise UserError(f"{where}: score={score!r}; expected a number from 0 to 1, or null where unscored")
    if group is not None and not isinstance(group, str):
        raise UserError(f"{where}: group={group!r}; expected a string, or none")
    if not group and isinstance(name := entry.get("sample_id"), str):
        group = name
    return group or None, None if score is None else float(score)


def compare_traffic(
    frozen: tuple[float | None, ...], now: list[float | None], *, level: float, seed: int
) -> DriftAnswer:
    """The two-sample Kolmogorov–Smirnov test by permutation: exact at `level` for any distribution."""
    first, current = _filled(frozen), _filled(now)
    second = current
    if len(current) > _MOST_SCORES:
        second = np.random.default_rng(seed).choice(current, _MOST_SCORES, replace=False)
    n, m = len(first), len(second)
    drawn = _permutations(n + m, level)
    open_ = DriftAnswer(
        word="INCONCLUSIVE",
        why="",
        level=level,
        distance=None,
        p_value=None,
        higher=None,
        n_frozen=n,
        n_now=len(current),
        n_compared=m,
        permutations=0,
        unscored_frozen=float((first == _UNSCORED).mean()),
        unscored_now=float((current == _UNSCORED).mean()),
    )
    if 1 / comb(n + m, n) > level / 2:
        return open_._replace(why=f"{n} scores frozen and {m} now: too few for any alarm at {level:g}")
    if 1 / (drawn + 1) > level:
        return open_._replace(
            why=f"{drawn} permutations are too few for any alarm at {level:g}; freeze with a larger "
            "gate.drift_level"
        )
    one_cell = (np.zeros(n, dtype=np.int64), np.zeros(m, dtype=np.int64))
    test = two_samples(first, one_cell[0], second, one_cell[1], permutations=drawn, seed=seed)
    assert test is not None  # both sides have scores
    p, distance, higher = test["p_value"], test["distance"], test["higher"]
    result = open_._replace(distance=distance, p_value=p, higher=higher, permutations=drawn)
    comparison = _compared(result)
    if p > level:
        return result._replace(word="NO_DRIFT", why=f"no drift shown: {comparison}")
    side = "higher" if higher > 0.5 else "lower" if higher < 0.5 else "as high, but spread otherwise"
    why = f"scores are {side} than those frozen: {comparison}; the promise is for traffic like that"
    return result._replace(word="DRIFTED", why=why)


def _permutations(n: int, level: float) -> int:
    """How many are drawn of `n` scores: 20 over `level` where that is cheap, never fewer than 2 over it.

    Only where that is more than `_MOST_PERMUTATIONS` there are fewer.
    """
    wanted = max(999, round(20 / level))
    return min(max(ceil(2 / level), min(wanted, _MOST_WORK // n)), _MOST_PERMUTATIONS)


def _compared(found: DriftAnswer) -> str:
    of = f" of {found.n_now}" if found.n_compared < found.n_now else ""
    return (
        f"distance {found.distance:.3f}, p {found.p_value:.3g}; {found.n_compared}{of} now, "
        f"{found.n_frozen} frozen, unscored {found.unscored_now:.1%} ({found.unscored_frozen:.1%})"
    )


def _filled(scores: tuple[float | None, ...] | list[float | None]) -> FloatArray:
    return np.array([_UNSCORED if score is None else score for score in scores], dtype=np.float64)
