"""One monitor made of several judges, from their finished evaluation runs; no model is run.

What is fitted is fitted on the first half of the calibration split (`divide`). Writes two evaluation
runs in the format of `judge`, one over the calibration split and one over the test split, which every
later stage reads as it reads any judge's. Promises: both runs have the same judge
hash, which the rule, its members and its weights decide, in whatever order an ensemble's runs are given.
"""

import json
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.datasets import SplitView
from monitorbench.config.evaluation import Combine
from monitorbench.config.study import Study
from monitorbench.corpus.store import read_split
from monitorbench.records import Label, Sample, Split
from monitorbench.runs.directory import read_finished
from monitorbench.runs.verdict_log import read_run
from monitorbench.scoring.calibrate import judge_id
from monitorbench.scoring.calibration_split import CalibrationScores, calibration_scores, divide
from monitorbench.scoring.cascade import Cascade, fit_cascade
from monitorbench.scoring.combined_run import Member, SplitRuns, write_combined
from monitorbench.scoring.ensembles import Ensemble, choose_members, fit_stack
from monitorbench.scoring.evaluations import Evaluation, read_covered

_log = logging.getLogger(__name__)


def combine_runs(study: Study) -> Path:
    """Combine `study.combine`'s runs; returns the directory of the run over the test split.

    Raises `ConfigError` where runs are not given, `UserError` where they are not of one dataset, of the
    split they are given as, of the same judges on either, or have no scores; or where the first half of
    the calibration split has one label only.
    """
    settings = study.combine
    calibration = _runs_over(Split.CALIBRATION, settings.calibration, study)
    test = _runs_over(Split.TEST, settings.test, study)
    _refuse_other_judges(settings, calibration, test)
    names = list(calibration.members)
    order = names if settings.rule == "cascade" else sorted(names)
    rule = _fitted_rule(settings, _calibration_scores(calibration, order))
    calibrated = write_combined(study, rule, calibration)
    run = write_combined(study, rule, test)
    _log.info("combine: on the calibration split, for a threshold: %s", calibrated)
    return run


def _runs_over(split: Split, directories: Sequence[Path], study: Study) -> SplitRuns:
    """The runs in these directories, all over `split` of one dataset."""
    key = f"combine.{split}"
    if not directories:
        raise ConfigError(f"{key}=[]: no run given; expected finished runs over it as {key}=[DIR,DIR]")
    views: list[SplitView] = []
    runs: dict[str, Evaluation] = {}
    for directory in directories:
        run = read_covered(study.paths.data, directory, study.score.min_coverage)
        manifest = read_finished(directory)
        if run.split is not split:
            raise UserError(f"{directory}: judged the {run.split} split; {key} takes runs over {split}")
        if "combined" in manifest["results"]:
            raise UserError(f"{directory}: a combination itself; combine the runs it was made of")
        if judge_id(run) in runs:
            raise UserError(f"{directory}: {judge_id(run)} is there twice in {key}; expected one run a judge")
        runs[judge_id(run)] = run
        views.append(SplitView.model_validate_json(json.dumps(manifest["identity"]["view"])))
        if (run.data, views[-1]) != (next(iter(runs.values())).data, views[0]):
            raise UserError(
                f"{directory}: judged other samples of the {split} split than {directories[0]}; expected "
                f"one dataset and the same settings of dataset.{split}"
            )
    samples = read_split(run.data, split, views[0])
    return SplitRuns(split, views[0], samples, {name: _member(one, samples) for name, one in runs.items()})


def _member(run: Evaluation, samples: Sequence[Sample]) -> Member:
    by_sample = read_run(run.directory)
    verdicts = [by_sample[sample.id] for sample in samples]
    scores = np.array([verdict.score for verdict in verdicts], dtype=np.float64)
    if np.isnan(scores).all():
        raise UserError(f"{run.directory}: no verdict has a score; combine judges with log-probabilities")
    return Member(run, verdicts, scores)


def _refuse_other_judges(settings: Combine, calibration: SplitRuns, test: SplitRuns) -> None:
    for one, other in ((calibration, test), (test, calibration)):
        if missing := sorted(one.members.keys() - other.members.keys()):
            raise UserError(
                f"combine.{other.split}: no run of {missing[0]}, which combine.{one.split} has; "
                "expected the same judges on both splits"
            )
    if calibration.data != test.data:
        raise UserError(
            f"combine.calibration is of {calibration.data}, combine.test of {test.data}; expected one dataset"
        )
    n = len(calibration.members)
    if n < 2 or (settings.rule == "cascade" and n > 2):
        expected = "two, the cheap one first" if settings.rule == "cascade" else "at least two"
        raise UserError(f"combine.calibration: {n} runs for rule {settings.rule}; expected {expected}")


def _calibration_scores(runs: SplitRuns, order: Sequence[str]) -> CalibrationScores:
    return calibration_scores(
        runs.data,
        splits=[runs.split] * len(runs.samples),
        scores={name: runs.members[name].scores for name in order},
        is_misbehavior=[sample.label is Label.MISBEHAVIOR for sample in runs.samples],
        group_ids=[sample.group_id for sample in runs.samples],
        categories=[str(sample.category) for sample in runs.samples],
    )


def _fitted_rule(settings: Combine, whole: CalibrationScores) -> Ensemble | Cascade:
    fit, _ = divide(whole)
    if settings.rule == "cascade":
        cheap, strong = whole.members
        return fit_cascade(fit, cheap=cheap, strong=strong, budget=settings.budget)
    if settings.size is not None:
        return choose_members(fit, settings.rule, size=settings.size)
    if settings.rule == "stacked":
        return fit_stack(fit)
    return Ensemble(rule=settings.rule, members=whole.members)
