"""One monitor made of several judges, from their finished evaluation runs and baselines; no model is run.

What is fitted is fitted on the first half of the calibration split (`divide`). Writes two evaluation
runs in the format of `judge`, one over the calibration split and one over the test split, which every
later stage reads as it reads any judge's. Promises: both runs have the same judge
hash, which the rule, its members and its weights decide, in whatever order an ensemble's runs are given.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.config.evaluation import Combine
from monitorbench.config.study import Study
from monitorbench.records import Label, Split
from monitorbench.scoring.calibration_split import CalibrationScores, calibration_scores, divide
from monitorbench.scoring.combination.cascade import Cascade, fit_cascade
from monitorbench.scoring.combination.combined_run import write_combined
from monitorbench.scoring.combination.ensembles import Ensemble, choose_members, fit_stack
from monitorbench.scoring.combination.members import SplitMembers, runs_over, with_baselines

_log = logging.getLogger(__name__)


def combine_runs(study: Study) -> Path:
    """Combine `study.combine`'s runs; returns the directory of the run over the test split.

    Raises `ConfigError` where runs are not given, `UserError` where they are not of one dataset, of the
    split they are given as, of the same judges on either, or have no scores; or where the first half of
    the calibration split has one label only.
    """
    settings = study.combine
    calibration = runs_over(
        Split.CALIBRATION, settings.calibration, study.paths.data, study.score.min_coverage
    )
    test = runs_over(Split.TEST, settings.test, study.paths.data, study.score.min_coverage)
    _refuse_other_judges(settings, calibration, test)
    calibration, test = with_baselines(settings.baselines, calibration, test)
    names = list(calibration.members)
    order = names if settings.rule == "cascade" else sorted(names)
    rule = _fitted_rule(settings, _calibration_scores(calibration, order))
    calibrated = write_combined(study, rule, calibration)
    run = write_combined(study, rule, test)
    _log.info("combine: on the calibration split, for a threshold: %s", calibrated)
    return run


def _refuse_other_judges(settings: Combine, calibration: SplitMembers, test: SplitMembers) -> None:
    for first, second in ((calibration, test), (test, calibration)):
        if missing := sorted(first.members.keys() - second.members.keys()):
            raise UserError(
                f"combine.{second.split}: no run of {missing[0]}, which combine.{first.split} has; "
                "expected the same judges on both splits"
            )
    if calibration.data != test.data:
        raise UserError(
            f"combine.calibration is of {calibration.data.name}, combine.test of {test.data.name}; "
            "expected one dataset"
        )
    n, n_baselines = len(calibration.members), len(settings.baselines)
    if n + n_baselines < 2 or (settings.rule == "cascade" and n + n_baselines > 2):
        expected = "two, the cheap one first" if settings.rule == "cascade" else "at least two"
        beside = f" and {n_baselines} baselines" if n_baselines else ""
        raise UserError(
            f"combine.calibration: {n} runs{beside} for rule {settings.rule}; expected {expected}"
        )


def _calibration_scores(runs: SplitMembers, order: Sequence[str]) -> CalibrationScores:
    return calibration_scores(
        runs.data.name,
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
        return fit_cascade(
            fit,
            cheap=cheap,
            strong=strong,
            budget=settings.budget,
            aim=settings.aim,
            scale=settings.scale,
        )
    if settings.size is not None:
        return choose_members(fit, settings.rule, size=settings.size)
    if settings.rule == "stacked":
        return fit_stack(fit)
    return Ensemble(rule=settings.rule, members=whole.members)
