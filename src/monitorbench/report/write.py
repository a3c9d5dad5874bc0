"""The report stage: `metrics.json` of a transfer or scored run to `report.html`, `samples.html` and tables.

The numbers are `metrics.json`'s; the samples shown come from the dataset and the verdict logs.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from monitorbench.config.base import UserError
from monitorbench.config.study import Paths, Study
from monitorbench.metrics.results import as_results
from monitorbench.metrics.robustness.facts import StressFacts
from monitorbench.records import Split
from monitorbench.report.html import render_report
from monitorbench.report.samples import browsable
from monitorbench.report.samples.page import render_samples
from monitorbench.report.samples.runs import read_judged, worst_of
from monitorbench.report.scores import read_scores, runs_of
from monitorbench.report.tables.tables import show_tables
from monitorbench.runs.directory import kind_of, read_checked, read_finished, record_files
from monitorbench.runs.files import write_atomically
from monitorbench.runs.run_folders import evaluation_id
from monitorbench.runs.tracking import track_results
from monitorbench.scoring.stress_runs import read_stress


def is_unscored_evaluation(directory: Path) -> bool:
    """Whether it is a finished evaluation run over the test split without metrics."""
    if (directory / "metrics.json").is_file() or not (directory / "manifest.json").is_file():
        return False
    manifest = read_finished(directory)
    return "judge" in manifest["results"] and manifest["identity"].get("split", Split.TEST) == Split.TEST


def _stress_of(directory: Path, manifest: Mapping[str, Any], paths: Paths) -> list[StressFacts]:
    """The stress of the evaluation run, or of each run of the transfer run, that a report is of."""
    ids: list[str] = []
    for run in runs_of(paths, directory, manifest):
        try:
            ids.append(evaluation_id(read_finished(run)))
        except UserError:  # gone since; the page's last sections say which
            continue
    return read_stress(paths.runs, ids)


def report(study: Study, *, is_brief: bool = False) -> Path:
    """Write `report.html` beside the metrics of `study.run`, and print the answer and the tables to stdout.

    `is_brief` prints the answer with overall numbers alone. Of each cell at most `report.worst` misses and as
    many false alarms are shown on the page with their text; `samples.html` has all samples of the runs
    that are still there, and is not written where none is. Raises `UserError` where the run has no metrics
    yet, or is of a kind that never has.
    """
    directory = study.required_run()
    manifest = read_finished(directory)
    # An evaluation's results name its judge, a transfer run's the runs that it lays side by side.
    if not {"judge", "runs"} & manifest["results"].keys():
        raise UserError(
            f"{directory}: {kind_of(directory)}, which has no report; expected an evaluation, a transfer run "
            "or a pilot"
        )
    metrics = directory / "metrics.json"
    if not metrics.is_file():
        raise UserError(f"{directory}: no metrics.json there; run eval/score.py run={directory}")
    try:
        results = as_results(read_checked(directory, metrics.name))
    except ValueError as error:  # of another version of this project
        raise UserError(f"{metrics}: {error}") from error
    judged = read_judged(directory, manifest, results, study.paths)
    scores = read_scores(directory, manifest, results, study.paths)
    page = render_report(
        results,
        manifest,
        worst_of(judged.runs, study.report.worst),
        judged.missing,
        scores,
        browsable={(run.monitor, run.prompt) for run in judged.runs},
        other_points=study.report.other_points,
        stress=_stress_of(directory, manifest, study.paths),
    )
    write_atomically(directory / "report.html", page)
    written = [directory / "report.html"]
    if judged.runs:
        written.append(directory / browsable.PAGE)
        write_atomically(written[-1], render_samples(results, judged.runs))
    record_files(directory, *(file.name for file in written))
    track_results(study, directory, "report", files=written)
    show_tables(results, is_brief=is_brief)
    return directory
