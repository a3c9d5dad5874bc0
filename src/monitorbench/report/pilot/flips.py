"""A pilot's run read for its page, and the runs that changed their outcome: side by side, step by step.

Promises: every disruption and every recovery of the pairs is there, in their order, and no other pair; a
text is cut only where what is left out is counted.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.intervention.outcomes import Outcome, read_outcomes
from monitorbench.intervention.statistics.decision_file import (
    DECISION,
    ConditionResult,
    PilotDecision,
    read_decision,
)
from monitorbench.intervention.statistics.effect import Matched, MatchedRuns, matched
from monitorbench.intervention.transcripts import EPISODES, Episode
from monitorbench.metrics.written import counted
from monitorbench.runs.directory import checked_file
from monitorbench.runs.keyed_log import read_log

RunName = tuple[str, str, str, int]
"""Agent, condition, task, seed."""


class ComparedCondition(NamedTuple):
    """One agent under one condition: its result, and the pairs that it is of."""

    result: ConditionResult
    matched: Matched


class Transcripts(NamedTuple):
    """Every run with all that was done in it, or why there are none."""

    by_run: Mapping[RunName, Episode]
    missing: str
    """A sentence; empty where there are transcripts."""

    def of(self, outcome: Outcome) -> Episode | None:
        """The transcript of a run; None where there is none, or only one of a run that ended otherwise."""
        episode = self.by_run.get((outcome.agent, outcome.condition, outcome.task, outcome.seed))
        return episode if episode is not None and episode.outcome == outcome else None


class PilotRun(NamedTuple):
    """All that the report of a pilot is made of."""

    name: str
    decision: PilotDecision
    outcomes: list[Outcome]
    compared: list[ComparedCondition]
    transcripts: Transcripts


def read_pilot(directory: Path, manifest: Mapping[str, Any], runs: Path) -> PilotRun:
    """Read a finished run of `eval/pilot.py`; transcripts are looked for in `runs` as well.

    Raises `UserError` where a file of it can't be read, or the outcomes are not those that were decided on.
    """
    checked_file(directory, DECISION)
    decision = read_decision(directory)
    outcomes = read_outcomes(checked_file(directory, "outcomes.jsonl"))
    pairs = {(condition.agent, condition.condition): condition for condition in matched(outcomes)}
    counted_cells = [
        (of.agent, of.condition, {cell: [pair.cell for pair in of.pairs].count(cell) for cell in "ABCD"})
        for of in pairs.values()
    ]
    stated = [(of.agent, of.condition, of.counts.model_dump()) for of in decision.conditions]
    if counted_cells != stated:
        raise UserError(
            f"{directory}: decision.json is not of outcomes.jsonl beside it; run `monitorbench pilot` again"
        )
    compared = [
        ComparedCondition(condition, pairs[condition.agent, condition.condition])
        for condition in decision.conditions
    ]
    transcripts = _transcripts(directory, manifest["results"], runs)
    if transcripts.by_run and any(transcripts.of(outcome) is None for outcome in outcomes):
        transcripts = _none("The runs were made again since, and are others than were decided on")
    return PilotRun(directory.name, decision, outcomes, compared, transcripts)


def _transcripts(directory: Path, results: Mapping[str, Any], runs: Path) -> Transcripts:
    match results.get("origin"):
        case "live":
            folder = Path(results["episodes"])
        case "recorded":
            return _none(f"The runs are recorded ones ({results['set']})")
        case "file":
            return _none(f"The runs were read from a file ({results['file']})")
        case _:
            return _none("Nothing says where the runs are from")
    # Runs that were moved along with the pilot are where their names are looked for.
    places = (folder, runs / "episodes" / folder.name, directory.parent.parent / "episodes" / folder.name)
    log = next((place / EPISODES for place in places if (place / EPISODES).is_file()), None)
    if log is None:
        return Transcripts({}, f"The runs were kept in {folder} and are gone, and with them the transcripts.")
    try:
        episodes = read_log(log, Episode)
    except UserError as error:
        return Transcripts({}, f"The transcripts can't be read. {error}.")
    return Transcripts(
        {(episode.agent, episode.condition, episode.task, episode.seed): episode for episode in episodes}, ""
    )


def _none(why: str) -> Transcripts:
    return Transcripts({}, f"{why}, of which there are counts and no transcripts.")


Kind = Literal["disruption", "recovery"]
_KINDS: dict[str, Kind] = {"B": "disruption", "C": "recovery"}


class Flip(NamedTuple):
    """A pair whose treated run ended otherwise than its baseline."""

    kind: Kind
    task: str
    seed: int
    baseline: str
    """End of the baseline run, in words."""
    treated: str
    runs: tuple[tuple[str, Episode, str], ...]
    """Of either run its name, all that was done in it, and its end in words; empty without transcripts."""
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
    before, after = transcripts.of(pair.baseline), transcripts.of(pair.treated)
    ends = _how(pair.baseline), _how(pair.treated)
    runs: tuple[tuple[str, Episode, str], ...] = ()
    parted = ""
    if before is not None and after is not None:
        runs = ("Without intervention", before, ends[0]), (f"With {after.condition}", after, ends[1])
        parted = _parted(before, after)
    return Flip(_KINDS[pair.cell], pair.baseline.task, pair.baseline.seed, *ends, runs, parted)


def _how(run: Outcome) -> str:
    """Say how a run ended and what it took."""
    ended = "succeeded" if run.success else "broke down" if run.reason else "failed"
    took = [counted(run.steps, "step")] if run.steps else []
    took += [counted(run.interventions, "intervention")] if run.interventions else []
    took += [counted(run.tokens, "token")] if run.tokens else []
    told = f"{ended} ({', '.join(took)})" if took else ended
    return told + (f": {run.reason}" if run.reason else "")


def _parted(without: Episode, treated: Episode) -> str:
    """Name the first step at which the two runs differ in action, observation or intervention."""
    for before, after in zip(without.steps, treated.steps, strict=False):
        if after.intervention or (before.action, before.observation) != (after.action, after.observation):
            return f"The two runs differ from step {after.step} on."
    return "The two runs are alike as far as both go."
