"""The report stage: what a run found to `report.html` and printed tables.

Of a probe or a scored run the numbers are `metrics.json`'s, and the samples shown come from the dataset and
the verdict logs; of a pilot they are `decision.json`'s.
"""

from pathlib import Path

from monitorbench.config.errors import UserError
from monitorbench.config.study import Study
from monitorbench.intervention.statistics.decision import DECISION
from monitorbench.intervention.transcripts import EPISODES
from monitorbench.metrics.results import as_results
from monitorbench.report.html import render_report
from monitorbench.report.pilot.write import report_pilot
from monitorbench.report.tables import show_tables
from monitorbench.report.worst_runs import read_worst
from monitorbench.runs.directory import read_finished
from monitorbench.runs.files import read_json, write_atomically


def report(study: Study) -> Path:
    """Write `report.html` into `study.run`, and print the tables to stdout.

    Of each cell at most `report.worst` misses and as many false alarms are shown with their text. Raises
    `UserError` where the run has no metrics yet, or is of a kind that has no report.
    """
    directory = study.required_run()
    manifest = read_finished(directory)
    if (directory / DECISION).is_file():
        report_pilot(study, directory, manifest)
        return directory
    metrics = directory / "metrics.json"
    if not metrics.is_file():
        raise UserError(f"{directory}: {_without_metrics(directory)}")
    results = as_results(read_json(metrics))
    found = read_worst(study, directory, manifest, results)
    page = render_report(results, manifest, found.worst, found.missing)
    write_atomically(directory / "report.html", page)
    show_tables(results)
    return directory


def _without_metrics(directory: Path) -> str:
    """Why there is no report of a run, and what to do."""
    if (directory / "localisation.json").is_file():
        return "a localisation has no report; localisation.json has all shares, eval/pilot.py prints them"
    if (directory / EPISODES).is_file():
        return "these are the runs of a pilot; expected run=runs/pilot/NAME-HASH, which eval/pilot.py printed"
    return f"no metrics.json there; run eval/score.py run={directory}"
