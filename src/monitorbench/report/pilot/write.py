"""The report stage of a pilot: a decision and the runs behind it to `report.html` and a printed table."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from monitorbench.config.study import Study
from monitorbench.intervention.statistics.decision_table import show_decision
from monitorbench.report.pilot.page import render_pilot
from monitorbench.report.pilot.reading import read_pilot
from monitorbench.runs.files import write_atomically


def report_pilot(study: Study, directory: Path, manifest: Mapping[str, Any]) -> None:
    """Write `report.html` beside the decision, and print the decision as `eval/pilot.py` does.

    Raises `UserError` where the run's files can't be read or don't belong together.
    """
    run = read_pilot(directory, manifest, study.paths.runs)
    write_atomically(directory / "report.html", render_pilot(run, manifest))
    show_decision(run.decision)
