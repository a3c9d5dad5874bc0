"""A pilot that is decided again after tasks were added to it: at the error that its earlier decisions left.

An inconclusive pilot says how many tasks to add. All tasks together are one pilot still, and deciding on them
as if for the first time would err anew. Promise: runs that hold all runs of an earlier decision, and tasks
or seeds besides, are decided at what that one left (`PilotStatistics.error`).
"""

import csv
import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.config.pilot import MOST_DECISIONS, PilotStatistics
from monitorbench.intervention.outcomes import Outcome
from monitorbench.intervention.statistics.decision_file import DECISION, PAIRS, read_decision
from monitorbench.intervention.statistics.matched import matched

_log = logging.getLogger(__name__)
Pairs = dict[tuple[str, str], set[tuple[str, str, str]]]
"""Task, seed and cell of each pair, by agent and condition."""


def at_its_error(outcomes: Sequence[Outcome], settings: PilotStatistics, pilots: Path) -> PilotStatistics:
    """The settings, with the earlier decisions in the folder `pilots` counted.

    Raises `UserError` where so many decisions were made that no error is left, and where the earlier one was
    made by looks: these hold for all tasks that are added, and only other looks may follow.
    """
    now = _by_condition(
        (one.agent, one.condition, pair.baseline.task, str(pair.baseline.seed), pair.cell)
        for one in matched(outcomes)
        for pair in one.pairs
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
    found: Pairs = defaultdict(set)
    for agent, condition, task, seed, cell in rows:
        found[agent, condition].add((task, seed, cell))
    return found


def _grew(before: Pairs, now: Pairs) -> bool:
    """Whether a condition has all the pairs that it had, and others."""
    return any(before.get(key, pairs) < pairs for key, pairs in now.items())
