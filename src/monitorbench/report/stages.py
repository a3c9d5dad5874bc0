"""The stages `score`, `control` and `recommend`: what was computed is printed, and put on its page."""

import logging
from pathlib import Path

from monitorbench.config.study import Study
from monitorbench.config.terminal import WIDTH, Console, opened
from monitorbench.labelling.stage import is_round
from monitorbench.metrics.choice import FILE
from monitorbench.metrics.metrics_json import as_results, to_csv
from monitorbench.report.labelled import show_round
from monitorbench.report.tables.control import control_rows, print_control
from monitorbench.report.tables.tables import print_tables
from monitorbench.runs.directory import read_checked, read_finished, record_files
from monitorbench.runs.files import write_atomically
from monitorbench.runs.tracking import track_results
from monitorbench.scoring.control.stage import control_runs
from monitorbench.scoring.labelled import recommend_round, score_round
from monitorbench.scoring.recommendation.stage import recommendation_run
from monitorbench.scoring.score import score_run

PAGE = "recommendation.html"
_log = logging.getLogger(__name__)


def score(study: Study) -> Path:
    """Score the run `study.run` and print its tables to stderr; returns its directory."""
    if is_round(run := study.required_run()):
        show_round(score_round(study, run))
        return run
    directory = score_run(study)
    # A sweep's stdout has one directory a run.
    print_tables(opened(stderr=True), as_results(read_checked(directory, "metrics.json")))
    return directory


def control(study: Study) -> Path:
    """Evaluate judges as controls, write `control.csv` and `control.html`, and print the table."""
    from monitorbench.report.control import render_control  # draws: matplotlib takes a third of a second

    directory = control_runs(study)
    results = read_checked(directory, "control.json")
    write_atomically(directory / "control.csv", to_csv(control_rows(results)))
    write_atomically(directory / "control.html", render_control(results))
    record_files(directory, "control.csv", "control.html")
    print_control(Console(stderr=True, width=WIDTH), results)
    return directory


def recommend(study: Study) -> Path:
    """Recommend one of the monitors of `study.recommend.runs`, or none, and log the sentence and remarks.

    Raises what `recommendation_run` raises.
    """
    if (run := recommend_round(study)) is not None:
        return run
    directory = with_page(study, recommendation_run(study))
    recommendation = read_checked(directory, FILE)
    for line in (recommendation["sentence"], *recommendation["remarks"]):
        _log.info("recommend: %s", line)
    _log.info("recommend: the page: %s", directory / PAGE)
    return directory


def with_page(study: Study, directory: Path) -> Path:
    """Write the page of a recommendation that has none yet; returns the recommendation's directory."""
    if not (directory / PAGE).is_file():
        from monitorbench.report.recommendation import render_recommendation  # draws, as above

        page = render_recommendation(read_checked(directory, FILE), read_finished(directory))
        write_atomically(directory / PAGE, page)
        record_files(directory, PAGE)
        track_results(study, directory, "recommend", files=[directory / PAGE])
    return directory
