"""A pilot that is decided on more than once: looks while it runs, and decisions after tasks were added.

*Looks* have an interval of ΔSuccess that holds at every look at once: a confidence sequence by betting
(Waudby-Smith & Ramdas 2024, JRSS B 86:1, section 4), not a group-sequential plan. It needs no largest number
of tasks fixed beforehand, so an inconclusive pilot may simply run on; it is exact for few tasks and any
number of seeds, where early looks with three changed runs break every normal approximation; and it holds for
any margin. The price is power: it needs more tasks than one look at the end.

Against the claim that the mean change of a task is at most m, start with a capital of 1 and bet a share
c of what can be lost on each task: the capital is multiplied by 1 + c·(x − m)/(1 + m), which on average does
not grow where the claim holds, so it ever reaches 1/a with a chance of at most a (Ville 1939). The capital
is spread evenly over several c. Promises: that chance bounds the error over all looks, on the condition that
tasks come in random order.

*Added tasks* make no new pilot, and deciding as if for the first time would err anew. Promise: runs that hold
all runs of an earlier decision, and tasks or seeds besides, are decided at what that one left of the error
(`PilotStatistics.error`).
"""

import csv
import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from monitorbench.config.base import UserError
from monitorbench.config.pilot import MOST_DECISIONS, PilotStatistics
from monitorbench.intervention.outcomes import Outcome
from monitorbench.intervention.statistics.decision_file import DECISION, PAIRS, read_decision
from monitorbench.intervention.statistics.effect import matched
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.rates import Interval

_BETS = 0.99 * 2.0 ** (-np.arange(14) / 2)
"""Shares of what can be lost, from nearly all to a hundredth: for effects large and small."""
_STEPS = 32
"""Steps of the bisection, which make its bounds exact to 2^-31."""


class Look(NamedTuple):
    """The interval that is known after so many tasks."""

    n_tasks: int
    interval: Interval
    """Holds the mean change of a task, at this look and at all before it."""


def look_at(changes: FloatArray, every: int, error_low: float, error_high: float) -> list[Look]:
    """Looks after each `every` tasks and after the last, at `changes` [tasks] in [−1, 1], in running order.

    There is at least one task. A task's change is the mean over its seeds of treated minus baseline success.
    The mean change lies below any of the intervals with a chance of at most `error_low`, and above with one
    of at most `error_high`.
    """
    n = len(changes)
    sizes = sorted({*range(every, n + 1, every), n})
    values, kind = np.unique(changes, return_inverse=True)
    seen = np.cumsum(np.eye(len(values))[kind], axis=0)[np.array(sizes) - 1]
    low = np.maximum.accumulate(_lower(seen, values, error_low))
    high = np.minimum.accumulate(-_lower(seen, -values, error_high))
    bounds = [Interval(float(a), float(b)) for a, b in zip(low, high, strict=True)]
    return [Look(*row) for row in zip(sizes, bounds, strict=True)]


def first_decisive(looks: Sequence[Look], margin: float) -> Look | None:
    """The first look whose interval lies on one side of the margin: the pilot stops there."""
    return next((look for look in looks if look.interval.low > margin or look.interval.high < margin), None)


def _lower(seen: FloatArray, values: FloatArray, error: float) -> FloatArray:
    """Lower bounds [looks]: the largest means that are refuted, from how often each of `values` was seen."""
    low, high = np.full(len(seen), -1.0), np.ones(len(seen))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        refuted = _log_capital(seen, values, middle) >= -np.log(error)
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return low


def _log_capital(seen: FloatArray, values: FloatArray, mean: FloatArray) -> FloatArray:
    """The logarithm of the capital [looks] against a mean of at most `mean` [looks], above −1."""
    gain = (values - mean[:, None]) / (1 + mean[:, None])  # [looks, values], at least −1
    growth = np.log1p(_BETS[:, None, None] * gain)  # [bets, looks, values]
    logs = (growth * seen).sum(axis=2)
    top = logs.max(axis=0)
    log_capital: FloatArray = top + np.log(np.exp(logs - top).mean(axis=0))
    return log_capital


_log = logging.getLogger(__name__)
Pairs = dict[tuple[str, str], set[tuple[str, str, str]]]
"""Task, seed and cell of each pair, by agent and condition."""


def at_its_error(outcomes: Sequence[Outcome], settings: PilotStatistics, pilots: Path) -> PilotStatistics:
    """The settings, with the earlier decisions in the folder `pilots` counted.

    Raises `UserError` where so many decisions were made that no error is left, and where the earlier one was
    made by looks: these hold for all tasks that are added, and only other looks may follow.
    """
    now = _by_condition(
        (condition.agent, condition.condition, pair.baseline.task, str(pair.baseline.seed), pair.cell)
        for condition in matched(outcomes)
        for pair in condition.pairs
    )
    before = settings.decided_before
    for file in sorted(pilots.glob(f"*/{PAIRS}")):
        if not (file.parent / DECISION).is_file() or not _grew(_read_pairs(file), now):
            continue
        earlier = read_decision(file.parent).settings
        if earlier.sequential and settings.sequential:
            before = max(before, earlier.decided_before)
        elif earlier.sequential:
            raise UserError(
                f"{file.parent}: looks at a part of these runs were decided on already; expected "
                "pilot.statistics.sequential=true, which holds for the tasks that were added"
            )
        else:
            before = max(before, earlier.decided_before + 1)
            _log.info("pilot: decided on with fewer tasks in %s", file.parent)
    if before >= MOST_DECISIONS:
        raise UserError(
            f"pilot: these runs were decided on {before} times with fewer tasks, and no error is left for "
            "another decision; run a new pilot on other tasks (another seed)"
        )
    return settings.model_copy(update={"decided_before": before})


def _read_pairs(file: Path) -> Pairs:
    with file.open(newline="", encoding="utf-8") as stream:
        return _by_condition(csv.reader(stream))


def _by_condition(rows: Iterable[Sequence[str]]) -> Pairs:
    pairs: Pairs = defaultdict(set)
    for agent, condition, task, seed, cell in rows:
        pairs[agent, condition].add((task, seed, cell))
    return pairs


def _grew(before: Pairs, now: Pairs) -> bool:
    """Whether a condition has all the pairs that it had, and others."""
    return any(before.get(key, pairs) < pairs for key, pairs in now.items())
