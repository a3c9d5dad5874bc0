"""The drift alarm: are a deployment's scores still drawn as those that were frozen? No labels are needed.

A promise holds where questions are drawn alike; this is the part of that which can be seen without labels.
An alarm says that the traffic or the monitor changed, not which: a check of the anchors tells them apart.
"""

from math import comb, inf
from pathlib import Path
from typing import NamedTuple

import numpy as np

from monitorbench import strict_json
from monitorbench.config.base import UserError
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.drift import two_samples

DRIFT_EXIT_CODES = {"NO_DRIFT": 0, "DRIFTED": 6, "INCONCLUSIVE": 5}
_UNSCORED = 2.0
"""Above every score: what is unscored is never taken for benign."""


class DriftAnswer(NamedTuple):
    """What the alarm says."""

    word: str
    why: str
    level: float
    """How often it goes off where nothing drifted, at most."""
    distance: float | None
    """Of Kolmogorov and Smirnov: the largest between both distribution functions."""
    p_value: float | None
    """By permutation of groups, ties included."""
    higher: float | None
    """P(now > frozen) + half of ties."""
    n_frozen: int
    n_now: int
    """Groups; a score without a group is one of its own."""
    unscored_frozen: float
    unscored_now: float
    """Shares of these of which one is unscored."""


def read_traffic(file: Path) -> list[float | None]:
    """The highest score of each group in JSON lines, None where one of it is unscored; in the file's order.

    A line is an object with `score` (a number in [0, 1] or null) and perhaps `group` (a string), or else
    `sample_id`, which decisions on one exchange share; whatever else it has is not read, so that a log of
    verdicts will do. Raises `UserError` with the line's number.
    """
    if not file.is_file():
        raise UserError(f"gate.traffic={file}: no such file; expected JSON lines with a score each")
    highest: dict[str | int, float] = {}
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            group, score = _line(line, f"{file}, line {number}")
            key = number if group is None else group
            highest[key] = max(highest.get(key, -inf), inf if score is None else score)
    if not highest:
        raise UserError(f"gate.traffic={file}: no line in it; expected JSON lines with a score each")
    return [None if value == inf else value for value in highest.values()]


def _line(line: bytes, where: str) -> tuple[str | None, float | None]:
    try:
        found = strict_json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not JSON; expected an object with a score") from error
    if not isinstance(found, dict) or "score" not in found:
        raise UserError(f"{where}: no score in it; expected a number from 0 to 1, or null where unscored")
    score, group = found["score"], found.get("group")
    if isinstance(score, bool) or not (score is None or (isinstance(score, int | float) and 0 <= score <= 1)):
        raise UserError(f"{where}: score={score!r}; expected a number from 0 to 1, or null where unscored")
    if group is not None and not isinstance(group, str):
        raise UserError(f"{where}: group={group!r}; expected a string, or none")
    if group is None and isinstance(name := found.get("sample_id"), str):
        group = name
    return group, None if score is None else float(score)


def compare_traffic(
    frozen: tuple[float | None, ...], now: list[float | None], *, level: float, seed: int
) -> DriftAnswer:
    """The two-sample Kolmogorov–Smirnov test by permutation: exact at `level` for any distribution."""
    first, second = _filled(frozen), _filled(now)
    unscored = float((first == _UNSCORED).mean()), float((second == _UNSCORED).mean())
    n, m = len(first), len(second)
    permutations = max(999, round(20 / level))
    if 1 / comb(n + m, n) > level / 2:
        why = f"{n} scores frozen and {m} now: too few for any alarm at {level:g}"
        return DriftAnswer("INCONCLUSIVE", why, level, None, None, None, n, m, *unscored)
    one_cell = (np.zeros(n, dtype=np.int64), np.zeros(m, dtype=np.int64))
    found = two_samples(first, one_cell[0], second, one_cell[1], permutations=permutations, seed=seed)
    assert found is not None  # both sides have scores
    p, distance, higher = found["p_value"], found["distance"], found["higher"]
    side = "higher" if higher > 0.5 else "lower" if higher < 0.5 else "as high, but spread otherwise"
    said = (
        f"distance {distance:.3f}, p {p:.3f}; {m} now, {n} frozen, unscored {unscored[1]:.1%} "
        f"({unscored[0]:.1%})"
    )
    if p <= level:
        why = f"scores are {side} than those frozen: {said}; the promise is for traffic like that"
        return DriftAnswer("DRIFTED", why, level, distance, p, higher, n, m, *unscored)
    return DriftAnswer("NO_DRIFT", f"no drift shown: {said}", level, distance, p, higher, n, m, *unscored)


def _filled(scores: tuple[float | None, ...] | list[float | None]) -> FloatArray:
    return np.array([_UNSCORED if one is None else one for one in scores], dtype=np.float64)
