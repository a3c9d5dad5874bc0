"""The report stage of a pilot: a decision and the runs behind it to `report.html` and a printed table."""

from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.intervention.report.decision_table import show_decision
from monitorbench.intervention.report.localisation import LOCALISATION
from monitorbench.intervention.report.page import render_pilot
from monitorbench.intervention.report.reading import read_pilot
from monitorbench.intervention.statistics.decision_file import DECISION
from monitorbench.intervention.transcripts import EPISODES
from monitorbench.runs.directory import read_finished, record_files
from monitorbench.runs.files import write_atomically


def is_of_a_pilot(directory: Path) -> bool:
    """Whether `eval/pilot.py` wrote this run directory."""
    return any((directory / name).is_file() for name in (DECISION, EPISODES, LOCALISATION))


def report_pilot(study: Study) -> Path:
    """Write `report.html` beside the decision in `study.run`, and print it as `eval/pilot.py` does.

    Raises `UserError` where the run has no report, or its files can't be read or don't belong together.
    """
    directory = study.required_run()
    manifest = read_finished(directory)
    if not (directory / DECISION).is_file():
        raise UserError(f"{directory}: {_without_decision(directory)}")
    run = read_pilot(directory, manifest, study.paths.runs)
    write_atomically(directory / "report.html", render_pilot(run, manifest))
    record_files(directory, "report.html")
    show_decision(run.decision)
    return directory


def _without_decision(directory: Path) -> str:
    """Why there is no report of a run, and what to do."""
    if (directory / LOCALISATION).is_file():
        return "a localisation has no report; localisation.json has all shares, eval/pilot.py prints them"
    return "these are the runs of a pilot; expected run=runs/pilot/NAME-HASH, which eval/pilot.py printed"
