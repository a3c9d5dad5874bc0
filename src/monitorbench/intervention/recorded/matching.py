"""Two recorded arms matched by task: only tasks that both have make a pair, and what is left out is said."""

import logging
from collections.abc import Mapping
from typing import NamedTuple

from monitorbench.config.base import UserError
from monitorbench.intervention.outcomes import BASELINE, Outcome

_log = logging.getLogger(__name__)


class RecordedRun(NamedTuple):
    """How one recorded run ended; `steps` is in the set's own unit (attempts, actions)."""

    success: bool
    interventions: int
    steps: int


def pair_arms(
    name: str,
    agent: str,
    condition: str,
    baseline: Mapping[str, RecordedRun],
    treated: Mapping[str, RecordedRun],
) -> list[Outcome]:
    """Make two outcomes for each task that both arms have, in the baseline's order, baseline first.

    One run a task and arm was recorded, so that every seed is 0. Tokens were not recorded and are 0.
    Raises `UserError` where the arms share no task.
    """
    common = [task for task in baseline if task in treated]
    if not common:
        raise UserError(
            f"{name}: the baseline and the treated runs share no task; set recorded.baseline and "
            "recorded.treated to runs on the same tasks"
        )
    alone = len(baseline) + len(treated) - 2 * len(common)
    if alone:
        _log.warning("%s: %d tasks were recorded in one arm only and are left out", name, alone)
    return [
        Outcome(task, 0, agent, under, run.success, run.interventions, run.steps, 0)
        for task in common
        for under, run in ((BASELINE, baseline[task]), (condition, treated[task]))
    ]
