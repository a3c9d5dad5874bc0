"""`score`, `calibrate` and `recommend` on a round of labels, a run of which few samples have a label.

The rows are those of any run, by another estimator. Promises: a threshold is written only where its promise
is shown from the labels; an answer that the labels don't suffice for names the batch to label next.
"""

import logging
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.labelling.answer import FILES, LabelledAnswer, LabelledPromise, answer
from monitorbench.labelling.stage import is_round, labelled_pool
from monitorbench.metrics.points_in_words import percent
from monitorbench.runs.directory import RunDirectory, read_finished, record_files
from monitorbench.runs.files import write_atomically
from monitorbench.runs.run_folders import run_name
from monitorbench.scoring.operating_point import CalibratedThreshold, OperatingPoint

_log = logging.getLogger(__name__)


def score_round(study: Study, run: Path) -> LabelledAnswer:
    """Estimate everything anew by the settings of `study`; writes `metrics.json` and `table.csv`.

    The costs are the round's own, unless others than the defaults are given.
    """
    given, own = study.stakes.model_dump(exclude_defaults=True), read_finished(run)["identity"]["stakes"]
    kept = {name: of for name, of in own.items() if name not in given and of != getattr(study.stakes, name)}
    if kept:
        costs = " ".join(f"stakes.{name}={of:g}" for name, of in kept.items())
        _log.info("%s: by its own %s", run.name, costs)
    stakes = study.stakes.model_copy(update=kept)
    estimates = answer(labelled_pool(run, study.label, stakes, study.calibrate))
    estimates.write(run)
    record_files(run, *FILES)
    return estimates


def recommend_round(study: Study) -> Path | None:
    """Say which monitor to deploy by the one round among `recommend.runs`; None where there is none."""
    rounds = [run for run in study.recommend.runs if is_round(run)]
    if not rounds:
        return None
    if len(study.recommend.runs) > 1:
        raise UserError(
            f"recommend.runs: {rounds[0].name} is a round of labels, which has all its monitors; expected it "
            "alone"
        )
    (run,) = rounds
    estimates, batch = score_round(study, run), run / "batches"
    more = estimates.decision == "insufficient"
    _log.info(
        "recommend: %s%s", estimates.sentence, f": label {batch} next" if more and batch.is_dir() else ""
    )
    if more and not batch.is_dir():
        command = f"monitorbench label run={run.name} label.budget={estimates.n_next}"
        _log.info("recommend: `%s` writes the next batch", command)
    for words in (*estimates.remarks, estimates.sensitivity):
        _log.info("recommend: %s", words)
    return run


def calibrate_round(study: Study, run: Path) -> Path:
    """Write the threshold of the monitor that the round's labels choose; returns the calibration's run.

    With `study.operating_point`, at which the monitor of a log was served, the new threshold is that
    monitor's, to be served next. Raises `UserError` with the reason where no threshold keeps the promise.
    """
    estimates = score_round(study, run)
    for remark in estimates.remarks:
        _log.warning("calibrate: %s", remark)
    for other in estimates.promises:
        _log.info("calibrate: %s", in_words(other))
    promise = next(of for of in estimates.promises if of.monitor == estimates.monitor)
    if promise.found.threshold is None:
        raise UserError(f"no threshold for {promise.monitor}: {promise.found.reason}; label more samples")
    monitor, judged = promise.monitor, run
    if study.operating_point is not None:
        if len(estimates.promises) > 1:
            names = ", ".join(of.monitor for of in estimates.promises)
            raise UserError(
                f"operating_point: {run.name} has labels of {names}; expected a round of the log of the one "
                "monitor that it serves"
            )
        from monitorbench.scoring.operating_point import read_operating_point

        monitor = read_operating_point(study.operating_point).thresholds[0].monitor
        judged = Path(read_finished(study.operating_point)["results"]["judged"])
    threshold = CalibratedThreshold(
        method="few_labels",
        monitor=monitor,
        category="",
        data=run.name,
        part="whole",
        alpha=promise.alpha,
        delta=promise.delta,
        n=estimates.n_benign,
        n_unscored=promise.n_unscored,
        threshold=promise.found.threshold,
    )
    point = OperatingPoint(rule="threshold", thresholds=(threshold,))
    identity = {"run": run.name, "point": point.model_dump(mode="json")}
    calibration = RunDirectory(study.paths.runs / "calibrate", run_name(promise.monitor, "labels"), identity)
    with calibration.recording(study) as results:
        write_atomically(calibration.path / "operating_point.json", point.model_dump_json(indent=2) + "\n")
        results |= {"operating_point": point.model_dump(mode="json"), "judged": str(judged)}
        results |= {"rates": None, "flags_nothing": False}
    return calibration.path


def in_words(promise: LabelledPromise) -> str:
    """Say what is promised, or why nothing is."""
    found = promise.found
    if found.threshold is None or found.far is None:
        return f"{promise.monitor}: no threshold, {found.reason}"
    return (
        f"{promise.monitor}: alarm above {found.threshold:.6g}; false alarms on ≤ "
        f"{percent(promise.alpha)} % of benign samples with {percent(1 - promise.delta)} % confidence, over "
        "traffic drawn alike"
    )
