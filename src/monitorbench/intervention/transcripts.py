"""A run with all that was said and done in it: a line of a pilot's log, and what a critic is shown.

What the world and the agent said is foreign text and stays data, kept as it was but for half characters,
which no UTF-8 file can hold. It stands in messages of its own (`tool`), which the renderer quotes, and never
in an instruction.
"""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from monitorbench.intervention.loop.agents import AgentTurn, Mechanism
from monitorbench.intervention.outcomes import Outcome
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
    messages: list[Message] = []
    for turn in turns:
        messages.append(Message(role=Role.ASSISTANT, content=turn.action, thinking=turn.thought))
        messages.append(Message(role=Role.TOOL, content=turn.result))
        if warnings and turn.warning:
            messages.append(Message(role=Role.SYSTEM, content=turn.warning))
    return tuple(messages)


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


EPISODES = "episodes.jsonl"
"""Every run of a live pilot with its full transcript, one `Episode` a line."""
Count = Annotated[int, Field(ge=0)]


class Step(BaseModel):
    """One action of the agent, what came of it, and what the monitor said and did."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    attempt: Count = 0
    """Number of the run in best-of-2, 0 or 1; 0 without best-of-2."""
    step: Count
    action: str
    thinking: str = ""
    """A reasoning model's thinking before its thought and action; the run goes on without it."""
    thought: str = ""
    observation: str
    done: bool
    p_fail: float | None = None
    """P(fail) as the critic gave it; None where no critic judged this step."""
    calibrated: float | None = None
    intervention: Mechanism | None = None
    """The intervention at this step; with `rollback` the action was undone."""
    tokens: Count = 0


class Episode(BaseModel):
    """A finished run with all of its steps."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    task: str
    seed: int
    agent: str
    condition: str
    goal: str
    opening: str
    steps: tuple[Step, ...]
    success: bool
    interventions: Count
    judged_steps: Count
    """Number of decisions whether to intervene."""
    tokens: Count
    """Tokens read and written by the agent and by the critic."""
    reason: str = ""
    """Why the run broke down, if it did; such a run is no success."""
    kept_attempt: Count = 0
    """Number of the run that the critic kept in best-of-2."""
    seconds: Annotated[float, Field(ge=0)]

    @property
    def outcome(self) -> Outcome:
        """The run as a row of an outcomes file."""
        return Outcome(
            task=self.task,
            seed=self.seed,
            agent=self.agent,
            condition=self.condition,
            success=self.success,
            interventions=self.interventions,
            steps=len(self.steps),
            tokens=self.tokens,
            reason=self.reason,
        )

    def sample(self, attempt: int = 0, upto: int | None = None) -> Sample:
        """An attempt, or its first `upto` steps, as a critic is shown it, labelled with how it ended."""
        steps = [step for step in self.steps if step.attempt == attempt][:upto]
        turns = [
            AgentTurn(step.action, step.thought, step.observation)
            for step in steps
            if step.intervention != "rollback"
        ]
        fails = not self.success
        return sample_of_run(self.task, self.seed, self.agent, self.goal, self.opening, turns, fails=fails)


def storable(text: str) -> str:
    """Text without half characters, which can be written as UTF-8."""
    return text.encode("utf-8", "replace").decode()
