"""A critic's scores, step by step, read from rows with `task`, `step` and `score`.

`step` counts a run's messages from 0; `score` in [0, 1] is P(fail) after that step, seen so far. Promises:
a score is read as it was written or refused with its line. A step without a line has no score, which is
not a low one.
"""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.untrusted_rows import rows

Scores = Mapping[str, Mapping[int, float]]
"""Scores by task, then by step."""


class StepScore(NamedTuple):
    """The score that a critic gave a run after one step."""

    task: str
    step: int
    score: float


def read_step_scores(path: Path) -> dict[str, dict[int, float]]:
    """Scores by task and step; other fields of a line are passed over.

    Raises `UserError` for a file that can't be read, and with its place for a row that is no such object,
    a score outside [0, 1] and a step that is scored twice.
    """
    scores: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for place, fields in rows(path, "recorded.scores"):
        row = _score_of(fields, f"{path}, {place}")
        if row.step in scores[row.task]:
            raise UserError(
                f"{path}, {place}: step {row.step} of {row.task} has a score already; keep one of them"
            )
        scores[row.task][row.step] = row.score
    return dict(scores)


def _score_of(row: Mapping[str, Any], where: str) -> StepScore:
    task, step, score = row.get("task"), row.get("step"), row.get("score")
    if not isinstance(task, str) or not task:
        raise UserError(f"{where}: 'task' is {task!r:.40}; expected the run's name as text")
    if isinstance(step, bool) or not isinstance(step, int) or step < 0:
        raise UserError(f"{where}: 'step' is {step!r:.40}; expected a whole number from 0")
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise UserError(f"{where}: 'score' is {score!r:.40}; expected a number from 0 to 1, or no line")
    return StepScore(task, step, float(score))
