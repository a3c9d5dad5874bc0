"""A critic's scores, step by step, read from JSON lines with `task`, `step` and `score`.

`step` counts a run's messages from 0; `score` in [0, 1] is P(fail) after that step, seen so far. Promises:
a score is read as it was written or refused with its line. A step without a line has no score, which is
not a low one.
"""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench import strict_json
from monitorbench.config.base import UserError

Scores = Mapping[str, Mapping[int, float]]
"""Scores by task, then by step."""


class StepScore(NamedTuple):
    """The score that a critic gave a run after one step."""

    task: str
    step: int
    score: float


def read_step_scores(path: Path) -> dict[str, dict[int, float]]:
    """Scores by task and step; other fields of a line are passed over.

    Raises `UserError` for a file that can't be read, and with its number for a line that is no such
    object, a score outside [0, 1] and a step that is scored twice.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UserError(
            f"{path}: can't be read ({error.strerror or error}); set recorded.scores to a JSON-lines file "
            "with task, step and score"
        ) from error
    scores: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        row = _parsed(f"{path} line {number}", line)
        if row.step in scores[row.task]:
            raise UserError(
                f"{path} line {number}: step {row.step} of {row.task} has a score already; keep one of them"
            )
        scores[row.task][row.step] = row.score
    if not scores:
        raise UserError(f"{path}: no scores; expected JSON lines with task, step and score")
    return dict(scores)


def _parsed(where: str, line: bytes) -> StepScore:
    try:
        row: Any = strict_json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{where}: no JSON ({error}); write one object with task, step and score a line"
        ) from error
    if not isinstance(row, dict):
        raise UserError(f"{where}: no object; write one with task, step and score")
    task, step, score = row.get("task"), row.get("step"), row.get("score")
    if not isinstance(task, str) or not task:
        raise UserError(f"{where}: 'task' is {task!r:.40}; expected the run's name as text")
    if isinstance(step, bool) or not isinstance(step, int) or step < 0:
        raise UserError(f"{where}: 'step' is {step!r:.40}; expected a whole number from 0")
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise UserError(f"{where}: 'score' is {score!r:.40}; expected a number from 0 to 1, or no line")
    return StepScore(task, step, float(score))
