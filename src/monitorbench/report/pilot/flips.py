"""The runs that changed their outcome, as the page shows them: side by side, step by step.

Promises: every disruption and every recovery of the pairs is there, in their order, and no other pair; a
text is cut only where what is left out is counted.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from monitorbench.intervention.outcomes import Outcome
from monitorbench.intervention.statistics.effect import MatchedRuns
from monitorbench.intervention.transcripts import Episode, Step
from monitorbench.metrics.written import counted
from monitorbench.report.pilot.reading import ComparedCondition, Transcripts
from monitorbench.report.samples.marked import MOST_CHARACTERS

Kind = Literal["disruption", "recovery"]
_KINDS: dict[str, Kind] = {"B": "disruption", "C": "recovery"}
_DONE = {
    "rollback": "Intervention (rollback): this action was undone, and the agent was told so.",
    "append": "Intervention (append): the action stood, and the agent was warned.",
}


class Text(NamedTuple):
    """A text as far as it is shown."""

    shown: str
    n_more: int


class StepView(NamedTuple):
    """One step as it is shown; a text is empty where the run had none."""

    number: int
    action: Text
    thinking: Text
    thought: Text
    observation: Text
    judgement: str
    intervention: str


class RunAttempt(NamedTuple):
    """One try of a run: best-of-2 has two."""

    title: str
    steps: list[StepView]


class RunView(NamedTuple):
    """A run with all that was done in it."""

    title: str
    how: str
    goal: Text
    opening: Text
    attempts: list[RunAttempt]


class Flip(NamedTuple):
    """A pair whose treated run ended otherwise than its baseline."""

    kind: Kind
    task: str
    seed: int
    baseline: str
    """End of the baseline run, in words."""
    treated: str
    runs: tuple[RunView, RunView] | None
    parted: str
    """Sentence on the step from which the two runs differ; empty without transcripts."""


class OfCondition(NamedTuple):
    """All flips of one agent under one condition."""

    agent: str
    condition: str
    control: bool
    disruptions: list[Flip]
    recoveries: list[Flip]


def flips(compared: ComparedCondition, transcripts: Transcripts) -> OfCondition:
    """The disruptions and recoveries among the pairs of a condition."""
    flipped = [_flip(pair, transcripts) for pair in compared.matched.pairs if pair.cell in _KINDS]
    return OfCondition(
        agent=compared.result.agent,
        condition=compared.result.condition,
        control=compared.result.control,
        disruptions=[flip for flip in flipped if flip.kind == "disruption"],
        recoveries=[flip for flip in flipped if flip.kind == "recovery"],
    )


def _flip(pair: MatchedRuns, transcripts: Transcripts) -> Flip:
    runs, parted = None, ""
    without, treated = transcripts.of(pair.baseline), transcripts.of(pair.treated)
    if without is not None and treated is not None:
        runs = _run("Without intervention", without), _run(f"With {treated.condition}", treated)
        parted = _parted(without, treated)
    return Flip(
        kind=_KINDS[pair.cell],
        task=pair.baseline.task,
        seed=pair.baseline.seed,
        baseline=_how(pair.baseline),
        treated=_how(pair.treated),
        runs=runs,
        parted=parted,
    )


def _how(run: Outcome) -> str:
    """Say how a run ended and what it took."""
    ended = "succeeded" if run.success else "broke down" if run.reason else "failed"
    took = [counted(run.steps, "step")]
    took += [counted(run.interventions, "intervention")] if run.interventions else []
    took += [counted(run.tokens, "token")] if run.tokens else []
    return f"{ended} ({', '.join(took)})" + (f": {run.reason}" if run.reason else "")


def _run(title: str, episode: Episode) -> RunView:
    tried = sorted({step.attempt for step in episode.steps} | {episode.kept_attempt})
    return RunView(
        title=title,
        how=_how(episode.outcome),
        goal=_text(episode.goal),
        opening=_text(episode.opening),
        attempts=[
            RunAttempt(
                title=f"Try {attempt + 1}{', kept by the critic' if attempt == episode.kept_attempt else ''}"
                if len(tried) > 1
                else "",
                steps=[_step(step) for step in episode.steps if step.attempt == attempt],
            )
            for attempt in tried
        ],
    )


def _step(step: Step) -> StepView:
    return StepView(
        number=step.step,
        action=_text(step.action),
        thinking=_text(step.thinking),
        thought=_text(step.thought),
        observation=_text(step.observation),
        judgement="; ".join(_judgement(step)),
        intervention=_DONE[step.intervention] if step.intervention else "",
    )


def _judgement(step: Step) -> Iterator[str]:
    if step.p_fail is not None:
        yield f"P(fail) {step.p_fail:.3f}"
    if step.calibrated is not None:
        yield f"calibrated {step.calibrated:.3f}"


def _text(text: str) -> Text:
    return Text(text[:MOST_CHARACTERS], max(0, len(text) - MOST_CHARACTERS))


def _parted(without: Episode, treated: Episode) -> str:
    """Name the first step at which the two runs differ in action, observation or intervention."""
    for before, after in zip(without.steps, treated.steps, strict=False):
        if after.intervention or (before.action, before.observation) != (after.action, after.observation):
            return f"The two runs differ from step {after.step} on."
    return "The two runs are alike as far as both go."
