"""Metrics from logs alone: one evaluation run, or several laid side by side in a probe.

No model is run here, and nothing heavy is imported.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.metrics.results import Results
from monitorbench.records import Category, Label, Split
from monitorbench.report.tables.tables import Row, monitor_rows, show_tables, to_csv, transfer_rows
from monitorbench.runs.directory import RunDirectory, record_files
from monitorbench.runs.files import content_hash, write_atomically, write_json
from monitorbench.runs.tracking import track_results
from monitorbench.scoring.calibrate import judge_id, read_operating_point
from monitorbench.scoring.evaluations import Evaluation, read_covered, with_distinct_names
from monitorbench.scoring.measure import measured
from monitorbench.scoring.operating_point import GREEDY, OperatingPoint, labels_at

_RESULTS = ("metrics.json", "table.csv", "transfer.csv")
_CATEGORIES = [category.value for category in Category]


def score_run(study: Study) -> Path:
    """Print the table of the run `study.run`, write its `metrics.json` and `table.csv`; returns it."""
    directory = study.required_run()
    evaluation = read_covered(study.paths.data, directory, study.score.min_coverage)
    if evaluation.split is not Split.TEST:
        raise UserError(
            f"{directory}: judged the {evaluation.split} split; expected a run over the test split, or "
            "eval/calibrate.py"
        )
    point = read_operating_point(study.operating_point) if study.operating_point else GREEDY
    metrics = measured(study, [_answers_at(point, evaluation)])
    if point is not GREEDY:
        metrics["operating_point"] = point.model_dump(mode="json")
    _write_results(directory, metrics)
    record_files(directory, *_RESULTS)
    track_results(study, directory, "score", tables=lambda: _tables(metrics))
    show_tables(metrics, stderr=True)  # a sweep's stdout has one directory a run
    return directory


def probe(study: Study) -> Path:
    """Lay `study.probe.runs` side by side; returns the probe's run directory.

    Raises `UserError` when a run is not over the test split, when the runs are not of one dataset, when
    an adapter's base is not among them or judged other samples, or when two runs have one name.
    """
    least = study.score.min_coverage
    evaluations = [read_covered(study.paths.data, run, least) for run in study.probe.runs]
    _refuse_other_splits(evaluations)
    if len({evaluation.data for evaluation in evaluations}) > 1:
        raise UserError("probe.runs: the runs judged different datasets; expected one")
    evaluations = with_distinct_names(evaluations)
    identity = {
        "runs": sorted(content_hash([e.directory.name, e.monitor, e.prompt]) for e in evaluations),
        "resamples": study.probe.resamples,
        "auroc_margin": study.probe.auroc_margin,
        "seed": study.seed,
        "stakes": study.stakes.model_dump(),
    }
    run = RunDirectory(study.paths.runs / "probe", study.dataset.name, identity)
    with run.recording(study) as results:
        metrics = measured(study, evaluations)
        _write_results(run.path, metrics)
        results["runs"] = [str(evaluation.directory) for evaluation in evaluations]
        results["monitors"] = list(metrics["monitors"])
    track_results(study, run.path, "probe", tables=lambda: _tables(metrics))
    return run.path


def _refuse_other_splits(evaluations: Sequence[Evaluation]) -> None:
    """What is laid side by side is metrics, and these come from the test split."""
    tested = next((e for e in evaluations if e.split is Split.TEST), None)
    for one in evaluations:
        if one.split is not Split.TEST:
            beside = f", {tested.directory} the test split" if tested else ""
            raise UserError(
                f"probe.runs: {one.directory} judged the {one.split} split{beside}; expected runs over "
                "the test split"
            )


def _answers_at(point: OperatingPoint, evaluation: Evaluation) -> Evaluation:
    """The run with its answers read at an operating point."""
    if point is GREEDY:
        return evaluation
    judged = evaluation.judged
    labels = labels_at(
        point,
        monitor=judge_id(evaluation),
        scores=judged.scores,
        answers=[None] * len(judged),  # a threshold doesn't read them
        categories=[_CATEGORIES[i] for i in judged.categories.tolist()],
    )
    answers = {Label.MISBEHAVIOR: 1.0, Label.BENIGN: 0.0, None: np.nan}
    flagged = np.array([answers[label] for label in labels])
    return evaluation._replace(judged=replace(judged, flagged=flagged))


def _write_results(directory: Path, results: Results) -> None:
    write_json(directory / "metrics.json", results)
    write_atomically(directory / "table.csv", to_csv(monitor_rows(results)))
    write_atomically(directory / "transfer.csv", to_csv(transfer_rows(results)))


def _tables(results: Results) -> dict[str, list[Row]]:
    """What W&B shows: `table.csv`, and `transfer.csv` where there are adapters."""
    tables = {"by_cell": monitor_rows(results), "transfer": transfer_rows(results)}
    return {name: rows for name, rows in tables.items() if rows}
