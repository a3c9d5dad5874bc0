"""Reading back what a pilot left: its decision, the pairs of runs behind it, and their transcripts.

Promises: the pairs are those that were decided on. Transcripts may be gone since, or never have been: then a
sentence says why there are none, and the rest is there.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.intervention.outcomes import Outcome, read_outcomes
from monitorbench.intervention.statistics.decision_file import (
    DECISION,
    ConditionResult,
    PilotDecision,
    read_decision,
)
from monitorbench.intervention.statistics.effect import Matched, matched
from monitorbench.intervention.transcripts import EPISODES, Episode
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
    if [_counts(condition) for condition in pairs.values()] != [
        _stated(condition) for condition in decision.conditions
    ]:
        raise UserError(
            f"{directory}: decision.json is not of the outcomes.jsonl beside it; run eval/pilot.py again"
        )
    compared = [
        ComparedCondition(condition, pairs[condition.agent, condition.condition])
        for condition in decision.conditions
    ]
    transcripts = _transcripts(directory, manifest["results"], runs)
    if transcripts.by_run and any(transcripts.of(outcome) is None for outcome in outcomes):
        transcripts = _none("The runs were made again since, and are others than were decided on")
    return PilotRun(directory.name, decision, outcomes, compared, transcripts)


def _counts(one: Matched) -> tuple[str, str, dict[str, int]]:
    cells = [pair.cell for pair in one.pairs]
    return one.agent, one.condition, {cell: cells.count(cell) for cell in "ABCD"}


def _stated(one: ConditionResult) -> tuple[str, str, dict[str, int]]:
    return one.agent, one.condition, one.counts.model_dump()


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
