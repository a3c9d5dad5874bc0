"""A pilot's run directory as `eval/pilot.py` leaves it, with chosen cells and transcripts, for the report."""

from collections.abc import Sequence
from pathlib import Path

from sealed import seal, seal_log

from monitorbench.config.pilot import PilotStatistics
from monitorbench.intervention.outcomes import BASELINE, Outcome, write_outcomes
from monitorbench.intervention.statistics.analysis import analyse
from monitorbench.intervention.statistics.decision_file import write_decision
from monitorbench.intervention.transcripts import EPISODES, Episode, Step

FAST = PilotStatistics(draws=1000)


def episode(
    task: str,
    condition: str,
    success: bool,
    *,
    seed: int = 0,
    fired: Sequence[int] = (),
    reason: str = "",
    said: str = "go north",
    length: int = 4,
) -> Episode:
    """A run that was intervened in at the steps `fired`; each step's texts name task, condition and step."""
    mechanism = "append" if condition == "append" else "rollback"
    steps = tuple(
        Step(
            step=i,
            action=f"{said}, {condition} {task} action {i}",
            thought=f"{said}, thought {i}",
            observation=f"{said}, observation {i}",
            done=success and i == length - 1,
            p_fail=0.75 if condition != BASELINE else None,
            calibrated=0.625 if condition != BASELINE else None,
            intervention=mechanism if i in fired else None,
            tokens=5,
        )
        for i in range(length)
    )
    return Episode(
        key=f"{task}/{seed}/{condition}",
        task=task,
        seed=seed,
        agent="scripted",
        condition=condition,
        goal=f"{said}, goal",
        opening=f"{said}, opening",
        steps=steps,
        success=success,
        interventions=len(fired),
        judged_steps=0 if condition == BASELINE else length,
        tokens=5 * length,
        reason=reason,
        seconds=0.5,
    )


def episodes(cells: dict[str, str], said: str = "go north") -> list[Episode]:
    """One task for each letter: `{"rollback": "ABCD", "append": "ABDD"}`; the baseline must agree."""
    found: dict[str, Episode] = {}
    for condition, letters in cells.items():
        for i, letter in enumerate(letters):
            task = f"task-{i:03}"
            for one in (
                episode(task, BASELINE, letter in "BD", said=said),
                episode(task, condition, letter in "CD", fired=[1 + i % 2], said=said),
            ):
                assert found.setdefault(one.key, one) == one
    return list(found.values())


def write_pilot(
    runs: Path,
    found: Sequence[Episode] | Sequence[Outcome],
    *,
    origin: dict[str, str] | None = None,
    settings: PilotStatistics = FAST,
) -> Path:
    """The directory of a pilot on these runs: a live one of episodes, else of the `origin` given."""
    directory = runs / "pilot" / "corridor-0123456789ab"
    directory.mkdir(parents=True)
    transcripts = [one for one in found if isinstance(one, Episode)]
    outcomes = [one.outcome if isinstance(one, Episode) else one for one in found]
    write_outcomes(directory / "outcomes.jsonl", outcomes)
    write_decision(directory, analyse(outcomes, settings))
    if origin is None:
        folder = runs / "episodes" / "corridor-ba9876543210"
        folder.mkdir(parents=True)
        lines = "".join(one.model_dump_json() + "\n" for one in transcripts)
        (folder / EPISODES).write_text(lines, encoding="utf-8")
        seal_log(folder / EPISODES)
        origin = {"origin": "live", "episodes": str(folder)}
    manifest = {"status": "done", "identity": {"schema_version": 1}, "results": origin}
    seal(directory, manifest)
    return directory
