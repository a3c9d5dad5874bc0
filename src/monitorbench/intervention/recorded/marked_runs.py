"""Failed runs whose decisive mistake people marked, and a critic's scores of their steps.

The runs are Who&When's (Zhang et al. 2025, arXiv:2505.00212). Upstream's `mistake_step` counts the messages
of `history` from 0: in 178 of 184 logs the message of that number is by the agent that is marked too, and no
other way of counting agrees as often. The six others are kept as they are. Generated systems name the speaker
in `name`, the hand-crafted one in `role`, with what it was doing in brackets: `Orchestrator (thought)` is the
agent `Orchestrator`.

Scores are JSON lines with `task`, `step` and `score`: `step` counts a run's messages from 0, `score` in
[0, 1] is P(fail) after that step. A score is read as it was written or refused with its line. A step without
a line has no score, which is not a low one.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, Field

from monitorbench.config.base import UserError
from monitorbench.intervention.recorded.archives import Text, broken, members, read_as
from monitorbench.sources.read import SourceFiles
from monitorbench.untrusted_rows import rows

HUMAN = "human"
"""The agent of a message that a person wrote."""
_LOG = re.compile(r"Who&When/([\w-]+/\d+)\.json")


class MarkedStep(NamedTuple):
    """One message of a run, and who wrote it."""

    agent: str
    text: str


class MarkedRun(NamedTuple):
    """A failed run and the step, counted from 0, that people marked as its decisive mistake.

    Runs of one `group` share a question and are drawn together.
    """

    task: str
    group: str
    subset: str
    question: str
    steps: tuple[MarkedStep, ...]
    mistake_step: int
    mistake_agent: str


def marked_runs(files: SourceFiles) -> list[MarkedRun]:
    """Every log, by subset and number; a task is `<subset>/<number>`, its group upstream's question id.

    One question may be in both subsets. What the answer should have been is not handed on: a critic would
    be told what it has to find. `UserError` where a log can't be used.
    """
    logs = members(files, lambda name: _LOG.fullmatch(name) is not None)
    if not logs:
        broken(files, "the archive", "holds no log Who&When/<subset>/<number>.json")
    runs = [_marked(files, member, content) for member, content in logs.items()]
    return sorted(runs, key=lambda run: (run.subset, int(run.task.rpartition("/")[2])))


class _Message(BaseModel):
    name: Text | None = None
    role: Text | None = None
    content: str


class _Log(BaseModel):
    history: list[_Message]
    mistake_step: Annotated[str, Field(pattern=r"^[0-9]{1,6}$")]
    question_ID: Text
    question: Text
    mistake_agent: Text


def _marked(files: SourceFiles, member: str, content: bytes) -> MarkedRun:
    log = read_as(files, member, _Log, content)
    steps = tuple(_step(files, f"{member} message {number}", row) for number, row in enumerate(log.history))
    if int(log.mistake_step) >= len(steps):
        broken(files, member, f"step {log.mistake_step} is marked, of {len(steps)}")
    match = _LOG.fullmatch(member)
    task = match[1] if match else member
    return MarkedRun(
        task=task,
        group=log.question_ID,
        subset=task.partition("/")[0],
        question=log.question,
        steps=steps,
        mistake_step=int(log.mistake_step),
        mistake_agent=log.mistake_agent,
    )


def _step(files: SourceFiles, where: str, row: _Message) -> MarkedStep:
    speaker = row.name or row.role or broken(files, where, "it names no speaker")
    agent = speaker.partition(" (")[0]
    return MarkedStep(HUMAN if agent == "human" else agent, row.content)


Scores = Mapping[str, Mapping[int, float]]
"""Scores by task, then by step."""


def read_step_scores(path: Path) -> dict[str, dict[int, float]]:
    """Scores by task and step; other fields of a row are passed over.

    Raises `UserError` for a file that can't be read, and with its place for a row that is no such object,
    a score outside [0, 1] and a step that is scored twice.
    """
    scores: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for place, fields in rows(path, "recorded.scores"):
        task, step, score = _step_score(fields, f"{path}, {place}")
        if step in scores[task]:
            raise UserError(f"{path}, {place}: step {step} of {task} has a score already; keep one of them")
        scores[task][step] = score
    return dict(scores)


def _step_score(row: Mapping[str, Any], where: str) -> tuple[str, int, float]:
    task, step, score = row.get("task"), row.get("step"), row.get("score")
    if not isinstance(task, str) or not task:
        raise UserError(f"{where}: 'task' is {task!r:.40}; expected the run's name as text")
    if isinstance(step, bool) or not isinstance(step, int) or step < 0:
        raise UserError(f"{where}: 'step' is {step!r:.40}; expected a whole number from 0")
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise UserError(f"{where}: 'score' is {score!r:.40}; expected a number from 0 to 1, or no line")
    return task, step, float(score)
