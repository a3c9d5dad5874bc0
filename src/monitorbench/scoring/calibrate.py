"""From a judge's verdicts on the calibration split to the operating point it is to be used at.

Writes `runs/calibrate/<monitor>-<prompt>-<dataset>-<hash>/operating_point.json`. `thresholds` says what
such a point promises, and what counts as evidence.
"""

import json
import logging
from pathlib import Path

from pydantic import ValidationError

from monitorbench.config.base import UserError
from monitorbench.config.evaluation import Calibrate
from monitorbench.config.study import Study
from monitorbench.runs.directory import RunDirectory, read_checked, read_finished
from monitorbench.runs.files import write_atomically
from monitorbench.runs.run_folders import dataset_name, run_name
from monitorbench.scoring.calibration_split import (
    CalibrationScores,
    FittedOn,
    calibration_scores,
    divide,
    per_category,
    refuse_fitted_samples,
)
from monitorbench.scoring.evaluations import Evaluation, read_covered
from monitorbench.scoring.operating_point import OperatingPoint, threshold_point
from monitorbench.scoring.thresholds import CalibratedThreshold, conformal_risk, neyman_pearson

_FILE = "operating_point.json"
_log = logging.getLogger(__name__)


def calibrate_run(study: Study) -> Path:
    """Calibrate the evaluation run `study.run`; returns the calibration's run directory.

    Raises `UserError` where the run judged another split than calibration, or where no threshold keeps the
    promise: the line says how many benign questions it would take.
    """
    judged = read_covered(study.paths.data, study.required_run(), study.score.min_coverage)
    scored = _unseen(judged)
    settings = study.calibrate
    parts = per_category(scored) if settings.per_category else (scored,)
    thresholds = [_threshold(part, settings) for part in parts]
    point = threshold_point(*thresholds)
    identity = {"run": judged.id, "point": point.model_dump(mode="json")}
    name = run_name(judged.monitor, judged.prompt, dataset_name(judged.data.name))
    formerly = f"{judged.monitor}-{judged.prompt}"
    run = RunDirectory(study.paths.runs / "calibrate", name, identity, formerly=formerly)
    with run.recording(study) as results:
        write_atomically(run.path / _FILE, point.model_dump_json(indent=2) + "\n")
        results["operating_point"] = point.model_dump(mode="json")
        results["judged"] = str(judged.directory)
        for one in thresholds:
            _log.info("calibrate: %s", _in_words(one))
    return run.path


def read_operating_point(directory: Path) -> OperatingPoint:
    """The operating point of a finished calibration; `UserError` where there is none."""
    file = directory / _FILE
    if "operating_point" not in read_finished(directory)["results"] or not file.is_file():
        raise UserError(f"{directory}: not a calibration; expected a run of eval/calibrate.py")
    try:
        return OperatingPoint.model_validate_json(json.dumps(read_checked(directory, _FILE)))
    except ValidationError as error:
        raise UserError(f"{file}: no operating point of this version; run eval/calibrate.py again") from error


def judge_id(evaluation: Evaluation) -> str:
    """What a threshold is bound to: the judge, its prompt, and everything that decides its scores."""
    return f"{evaluation.monitor}/{evaluation.prompt}/{evaluation.judge_hash}"


def _unseen(judged: Evaluation) -> CalibrationScores:
    """The samples that a threshold may be set on.

    All of them; of a combination that was fitted on the first half, the second half.
    """
    scored = _calibration_scores(judged)
    combined = read_finished(judged.directory)["results"].get("combined")
    if not combined or combined["rule"]["fitted_on"] is None:
        return scored
    _, rest = divide(scored)
    refuse_fitted_samples(FittedOn.model_validate(combined["rule"]["fitted_on"]), rest)
    _log.info("calibrate: on the half that %s was not fitted on", judged.monitor)
    return rest


def _calibration_scores(judged: Evaluation) -> CalibrationScores:
    samples = judged.judged
    return calibration_scores(
        judged.data.name,
        splits=[judged.split] * len(samples),
        scores={judge_id(judged): samples.scores},
        is_misbehavior=samples.is_misbehavior,
        group_ids=samples.group_ids().to_pylist(),
        categories=[samples.category_names[i] for i in samples.categories.tolist()],
    )


def _threshold(part: CalibrationScores, settings: Calibrate) -> CalibratedThreshold:
    if settings.method == "conformal_risk":
        return conformal_risk(part, alpha=settings.alpha)
    return neyman_pearson(part, alpha=settings.alpha, delta=settings.delta)


def _in_words(one: CalibratedThreshold) -> str:
    where = one.category or "all categories"
    if one.threshold is None:
        return f"{where}: no threshold, its samples will be unscored ({one.reason})"
    sure = f" with probability {1 - one.delta:g}" if one.delta is not None else " on average"
    return f"{where}: alarm above {one.threshold:.6g}; FAR <= {one.alpha:g}{sure} ({one.n} benign questions)"
