"""Who&When (Zhang et al. 2025, arXiv:2505.00212): failed multi-agent runs, the decisive mistake marked.

Upstream's `mistake_step` counts the messages of `history` from 0: in 178 of 184 logs the message of that
number is by the agent that is marked too, and no other way of counting agrees as often. The six others
are kept as they are. Generated systems name the speaker in `name`, the hand-crafted one in `role`, with
what it was doing in brackets: `Orchestrator (thought)` is the agent `Orchestrator`.
"""

import re
from collections.abc import Mapping
from typing import Any

from monitorbench.intervention.recorded.archive import as_object, broken, members, parsed, text_field
from monitorbench.intervention.recorded.localisation import HUMAN, MarkedRun, MarkedStep
from monitorbench.sources.read import SourceFiles

_LOG = re.compile(r"Who&When/([\w-]+/\d+)\.json")


def load(files: SourceFiles) -> list[MarkedRun]:
    """Every log, by subset and number; a task is `<subset>/<number>`, its group upstream's question id.

    One question may be in both subsets. What the answer should have been is not handed on: a critic would
    be told what it has to find. `UserError` where a log can't be used.
    """
    logs = members(files, lambda name: _LOG.fullmatch(name) is not None)
    if not logs:
        broken(files, "the archive", "holds no log Who&When/<subset>/<number>.json")
    runs = [_marked(files, member, content) for member, content in logs.items()]
    return sorted(runs, key=lambda run: (run.subset, int(run.task.rpartition("/")[2])))


def _marked(files: SourceFiles, member: str, content: bytes) -> MarkedRun:
    log = as_object(files, member, parsed(files, member, content))
    history, marked = log.get("history"), log.get("mistake_step")
    if not isinstance(history, list):
        broken(files, member, "field 'history' is no list")
    steps = tuple(_step(files, f"{member} message {number}", row) for number, row in enumerate(history))
    if not isinstance(marked, str) or not re.fullmatch(r"[0-9]{1,6}", marked):
        broken(files, member, "field 'mistake_step' is no number in quotes")
    if int(marked) >= len(steps):
        broken(files, member, f"step {marked} is marked, of {len(steps)}")
    match = _LOG.fullmatch(member)
    task = match[1] if match else member
    return MarkedRun(
        task=task,
        group=text_field(files, member, log, "question_ID"),
        subset=task.partition("/")[0],
        question=text_field(files, member, log, "question"),
        steps=steps,
        mistake_step=int(marked),
        mistake_agent=text_field(files, member, log, "mistake_agent"),
    )


def _step(files: SourceFiles, where: str, row: Any) -> MarkedStep:
    message: Mapping[str, Any] = as_object(files, where, row)
    speaker = text_field(files, where, message, "name" if "name" in message else "role")
    content = message.get("content")
    if not isinstance(content, str):
        broken(files, where, "field 'content' is no text")
    agent = speaker.partition(" (")[0]
    return MarkedStep(HUMAN if agent == "human" else agent, content)
