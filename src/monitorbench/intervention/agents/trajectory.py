"""A run so far as messages and as a sample: what agents are shown, critics judge and trainers learn from.

The environment's texts are foreign: they stand in messages of their own (`tool`), which the renderer quotes,
and never in an instruction.
"""

from collections.abc import Sequence

from monitorbench.intervention.agents.protocol import AgentTurn
from monitorbench.records import (
    Category,
    Construction,
    Label,
    LabelSource,
    Message,
    Role,
    Sample,
    Task,
)

SUBCATEGORY = "agent_failure"
_NOTHING = "(nothing)"


def request(goal: str, opening: str) -> tuple[Message, ...]:
    """The messages with the agent's task and the first text of the environment."""
    goal_message = Message(role=Role.USER, content=goal.strip() or _NOTHING)
    if not opening.strip():
        return (goal_message,)
    return goal_message, Message(role=Role.TOOL, content=opening)


def response(turns: Sequence[AgentTurn], *, warnings: bool) -> tuple[Message, ...]:
    """The turns in order; `warnings`: with what the monitor said, which a critic is not shown."""
    found: list[Message] = []
    for turn in turns:
        found.append(Message(role=Role.ASSISTANT, content=turn.action, thinking=turn.thought))
        found.append(Message(role=Role.TOOL, content=turn.result))
        if warnings and turn.warning:
            found.append(Message(role=Role.SYSTEM, content=turn.warning))
    return tuple(found)


def sample_of_run(
    task: str,
    seed: int,
    agent: str,
    goal: str,
    opening: str,
    turns: Sequence[AgentTurn],
    *,
    fails: bool = True,
) -> Sample:
    """A run up to some step, labelled with how the whole run ended: `misbehavior` is failure.

    The three categories have none for an agent that fails: such samples are counted under
    `specification_gaming/reasoning`, subcategory `agent_failure`. A task's runs are one group.
    `fails` is read in training only; a critic can't see a label.
    """
    return Sample(
        pair_id=f"run-{task}/{agent}/{seed}/{len(turns)}",
        group_id=f"task-{task}",
        category=Category.SPECIFICATION_GAMING,
        task=Task.REASONING,
        subcategory=SUBCATEGORY,
        request=request(goal, opening),
        response=response(turns, warnings=False),
        label=Label.MISBEHAVIOR if fails else Label.BENIGN,
        label_source=LabelSource.OUTCOME,
        construction=Construction.LABELLED,
        subject_model=agent,
        source="pilot",
        licence="not stated",
    )
