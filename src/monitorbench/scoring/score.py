"""Metrics from logs alone: one evaluation run, or several laid side by side in a transfer run.

No model is run here, and nothing heavy is imported. A transfer run also reads the directions of linear heads
from the runs of their fits, and which prompt was chosen on the validation split.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, cast

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.engines.stored.head import DIRECTIONS_FILE, read_directions
from monitorbench.metrics.choice import Recommendation
from monitorbench.metrics.metrics_json import CsvRow, monitor_rows, nested, to_csv, transfer_rows
from monitorbench.metrics.points_in_words import by_question, in_words, notes
from monitorbench.metrics.prompts import WordingChoice
from monitorbench.metrics.results import Results, numbers_at
from monitorbench.metrics.trainings import (
    DirectionsFacts,
    Found,
    Place,
    common_place,
    directions,
    doses_in_words,
)
from monitorbench.records import Split
from monitorbench.runs.directory import (
    RunDirectory,
    checked_file,
    kind_of,
    read_checked,
    read_finished,
    record_files,
)
from monitorbench.runs.files import content_hash, write_atomically, write_json
from monitorbench.runs.run_folders import dataset_name
from monitorbench.runs.tracking import track_results
from monitorbench.scoring.evaluations import Evaluation, read_covered, with_distinct_names
from monitorbench.scoring.measure import measured
from monitorbench.scoring.points import PointAt, points_at


def _directions_of(evaluations: Sequence[Evaluation]) -> DirectionsFacts | None:
    """The cosines of linear heads.

    None with fewer than two trainings whose heads are linear and read one base's states, and without a layer
    and position that all were fitted in. A head whose run is not there any more is left out with a warning.
    """
    trainings: dict[str, list[dict[Place, Found]]] = {}
    bases = Counter[str]()
    for evaluation in evaluations:
        head = read_checked(evaluation.directory, "config.json")["monitor"].get("head")
        if head and (at_places := _read(Path(head))):
            bases[evaluation.basis] += 1
            trainings.setdefault(evaluation.family, []).append(at_places)
    if len(bases) > 1:
        _log.info("transfer: heads of %d bases or prompts: their directions have no common axes", len(bases))
        return None
    place = common_place(trainings) if len(trainings) > 1 else None
    if place is None:
        return None
    return directions(trainings, place)


def _read(head: Path) -> dict[Place, Found] | None:
    """The directions that a head's fit found in each place; None where there are none to read."""
    folder = head.parent if head.is_file() else head
    if not (folder / DIRECTIONS_FILE).is_file():
        return None  # of another kind, or by itself
    try:
        read = read_directions(checked_file(folder, DIRECTIONS_FILE))
    except UserError as error:
        _log.warning("transfer: left out of the directions: %s", error)
        return None
    return {
        (direction.place.layer, direction.place.position): Found(direction.auroc, direction.weights_H)
        for direction in read
    }


WORDING_FILE = "wording.json"


class ReadWording(NamedTuple):
    """A finished run of `wording.py`."""

    choice: WordingChoice
    tested: tuple[Path, ...]
    """Evaluation runs over the test split, of the chosen prompt or of all."""


def read_wording(directory: Path, runs: Path) -> ReadWording:
    """The choice of a finished run; `UserError` where it is none, or where it tested nothing.

    What it tested is looked for in the folder of runs `runs` where it is not where it was.
    """
    results = read_finished(directory)["results"]
    if "chosen" not in results or not (directory / WORDING_FILE).is_file():
        raise UserError(f"{directory}: {kind_of(directory)}; expected a run of `monitorbench wording`")
    if not results["tested"]:
        raise UserError(f"{directory}: judged no test split; run it again with wording.test=chosen or all")
    choice = cast("WordingChoice", read_checked(directory, WORDING_FILE))
    tested = [Path(run) for run in results["tested"]]
    return ReadWording(choice, tuple(run if run.is_dir() else runs / "evaluate" / run.name for run in tested))


def _choices_of(
    wordings: Sequence[ReadWording], evaluations: Sequence[Evaluation]
) -> dict[str, WordingChoice]:
    """The choices by the names that their monitors have among these evaluations.

    Raises `UserError` where two are of one monitor.
    """
    monitors = {evaluation.directory.resolve(): evaluation.monitor for evaluation in evaluations}
    choices: dict[str, WordingChoice] = {}
    for wording in wordings:
        for monitor in {monitors[run.resolve()] for run in wording.tested}:
            if monitor in choices:
                raise UserError(f"transfer.wordings: two choices are of {monitor}; expected one")
            choices[monitor] = wording.choice
    return choices


_log = logging.getLogger(__name__)


def score_run(study: Study) -> Path:
    """Write `metrics.json` and `table.csv` of the run `study.run`; returns its directory.

    These are of the judge's own answers. With `study.operating_point` they also say what its threshold comes
    to, and all numbers at it are beside them, in `metrics-at-<point>.json` and `table-at-<point>.csv`.
    """
    directory = study.required_run()
    evaluation = read_covered(study.paths.data, directory, study.score.min_coverage)
    if evaluation.split is not Split.TEST:
        raise UserError(
            f"{directory}: judged the {evaluation.split} split; expected a run over the test split, or "
            "`monitorbench calibrate`"
        )
    wanted = [study.operating_point] if study.operating_point else []
    points = points_at(wanted, [evaluation], other_dataset=study.score.other_dataset)
    metrics = measured(study, [evaluation], points)
    written = _write_results(directory, metrics)
    for applied in points:
        written += _write_at(
            directory, applied, measured(study, [applied.evaluation], decision=metrics["decision"])
        )
    record_files(directory, *written)
    track_results(study, directory, "score", tables=lambda: _tables(metrics))
    for applied in points:
        judged = applied.evaluation.monitor, applied.evaluation.prompt
        point = metrics["operating_points"][judged[0]][judged[1]]
        summary = "; ".join(
            [
                in_words(applied.thresholds),
                by_question(numbers_at(metrics, *judged)),
                *notes(metrics["dataset"]["directory"], point),
            ]
        )
        _log.info(
            "score: threshold applied beside the own answers: %s; metrics-at-%s.json", summary, applied.name
        )
    if not points:
        _log.info("score: the judge's own answers, no threshold applied")
    return directory


def _write_at(directory: Path, one: PointAt, metrics: Results) -> list[str]:
    """Write all numbers at one operating point beside those of the judge's own answers."""
    metrics["operating_point"] = one.point.model_dump(mode="json")
    files = [f"metrics-at-{one.name}.json", f"table-at-{one.name}.csv"]
    write_json(directory / files[0], nested(metrics))
    rows = monitor_rows(metrics)
    if one.is_elsewhere:
        rows = [{**row, "calibrated_on": one.calibrated_on} for row in rows]
    write_atomically(directory / files[1], to_csv(rows))
    return files


def transfer(study: Study, decision: Recommendation | None = None) -> Path:
    """Lay `transfer.runs` and what `transfer.wordings` tested side by side; returns the run directory.

    A `decision` that was made of these runs already takes the place of one at their operating points.

    Raises `UserError` when a run is not over the test split, when the runs are not of one dataset, when
    an adapter's base is not among them or judged other samples, or when two runs have one name.
    """
    least = study.score.min_coverage
    wordings = [read_wording(one, study.paths.runs) for one in study.transfer.wordings]
    tested = (run for wording in wordings for run in wording.tested)
    runs = {run.resolve(): run for run in (*study.transfer.runs, *tested)}
    evaluations = [read_covered(study.paths.data, run, least) for run in runs.values()]
    _refuse_other_splits(evaluations)
    if len({evaluation.data for evaluation in evaluations}) > 1:
        raise UserError("transfer.runs: the runs judged different datasets; expected one")
    evaluations = with_distinct_names(evaluations)
    choices = _choices_of(wordings, evaluations)
    points = points_at(study.transfer.operating_points, evaluations, other_dataset=study.score.other_dataset)
    identity = {
        "runs": sorted(content_hash([e.id, e.monitor, e.prompt]) for e in evaluations),
        "resamples": study.score.resamples,
        "auroc_margin": study.transfer.auroc_margin,
        "seed": study.seed,
        "stakes": study.stakes.model_dump(),
    }
    if points:
        identity["operating_points"] = sorted(content_hash(p.point.model_dump(mode="json")) for p in points)
    if choices:
        identity["wordings"] = choices
    if decision is not None:
        identity["decision"] = content_hash(decision)
    run = RunDirectory(study.paths.runs / "transfer", dataset_name(evaluations[0].data.name), identity)
    with run.recording(study) as results:
        metrics = measured(study, evaluations, points, decision)
        if choices:
            metrics["wordings"] = choices
        if (facts := _directions_of(evaluations)) is not None:
            metrics["directions"] = facts
        _write_results(run.path, metrics)
        results["sentence"] = metrics["decision"]["sentence"]
        results["runs"] = [str(evaluation.directory) for evaluation in evaluations]
        results["monitors"] = list(dict.fromkeys(name for name, _ in metrics["table"].judged()))
        results["operating_points"] = [str(one.directory) for one in points]
    for sentence in doses_in_words(metrics["exposures"]):
        if sentence.startswith("Unlike"):
            _log.warning("transfer: %s", sentence)
    if decision is None:
        _log.info("transfer: %s", metrics["decision"]["sentence"])
    track_results(study, run.path, "transfer", tables=lambda: _tables(metrics))
    return run.path


def _refuse_other_splits(evaluations: Sequence[Evaluation]) -> None:
    """Refuse runs over other splits: the metrics laid side by side come from the test split."""
    tested = next((e for e in evaluations if e.split is Split.TEST), None)
    for run in evaluations:
        if run.split is not Split.TEST:
            beside = f", {tested.directory} the test split" if tested else ""
            raise UserError(
                f"transfer.runs: {run.directory} judged the {run.split} split{beside}; expected runs over "
                "the test split"
            )


def _write_results(directory: Path, results: Results) -> list[str]:
    """The files that were written."""
    write_json(directory / "metrics.json", nested(results))
    write_atomically(directory / "table.csv", to_csv(monitor_rows(results)))
    write_atomically(directory / "transfer.csv", to_csv(transfer_rows(results)))
    return ["metrics.json", "table.csv", "transfer.csv"]


def _tables(results: Results) -> dict[str, list[CsvRow]]:
    """Tables that W&B shows: `table.csv`, and `transfer.csv` where there are adapters."""
    tables = {"by_cell": monitor_rows(results), "transfer": transfer_rows(results)}
    return {name: rows for name, rows in tables.items() if rows}
