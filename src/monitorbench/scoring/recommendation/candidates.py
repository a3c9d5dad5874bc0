"""Build candidates: each is a monitor over both splits with the thresholds that it may take and their costs.

Promises: the two runs of a monitor are of one judge; all runs are over one dataset, and over the same test
samples; the calibration split alone decides which thresholds are allowed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitorbench.config.base import ConfigError, UserError
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.columns import BoolArray, Columns
from monitorbench.metrics.guarantees.allowed import (
    AlertBudget,
    Allowed,
    allowed,
    n_within_budget,
    questions,
)
from monitorbench.metrics.guarantees.order_statistic import Mix, question_weights
from monitorbench.metrics.regret import (
    Entrant,
    RateCurves,
    Suspicion,
    Unscored,
    first_flagged,
    rates_along,
    suspicion,
)
from monitorbench.records import Split
from monitorbench.scoring.calibrate import judge_id
from monitorbench.scoring.evaluations import Evaluation, read_covered, with_distinct_names
from monitorbench.scoring.recommendation.more import Promise

_OWN_ANSWERS: FloatArray = np.array([0.5])
"""The one threshold of answers that are read as scores of 0 and 1."""


class Contender(NamedTuple):
    """A monitor that may be chosen, or a shortcut check that has to be beaten."""

    monitor: str
    prompt: str
    calibration: Suspicion
    test: Suspicion
    held: Columns
    """Calibration samples of the monitor; `judged` holds its test samples."""
    judged: Columns
    allowed: Allowed
    on_calibration: RateCurves
    """Rates on the calibration split at every threshold; `on_test` holds those on the test split."""
    on_test: RateCurves
    outside: str
    """Reason why it may not be chosen at any threshold (too slow, too dear, no readable answer); empty where
    it may be."""
    reads_answers: bool
    n_unscored: int
    """Number of test samples without a score, or without an answer where answers are read."""
    n_unanswered: int
    """Those of `n_unscored` that have a score, or whose monitor has none at all: an answer is missing."""
    only: int | None
    """Index of the operating point's threshold, the only one it may take. None: any that is allowed."""
    limits: Mapping[str, float] | None
    """Thresholds to report where answers are read: those of the operating point by category, empty for the
    judge's own answers. None: the threshold itself is reported."""

    @property
    def choosable(self) -> RateCurves:
        """The rates on the calibration split at the thresholds that the monitor may take."""
        start, stop = (0, self.allowed.n) if self.only is None else (self.only, self.only + 1)
        # A point's own promise was kept where it was calibrated; a budget is of this deployment.
        if self.outside or (self.only is not None and self.only >= self.allowed.n_in_budget):
            stop = start
        return RateCurves(self.on_calibration.missed[start:stop], self.on_calibration.alarms[start:stop])

    @property
    def flags_nothing(self) -> bool:
        """Whether the monitor has thresholds to take, and no calibration sample's score is above any.

        Of samples of one label this is not known: what the other one scores is not there.
        """
        bad = self.calibration.is_misbehavior
        if not bad.any() or bad.all():
            return False
        start, n = self.only or 0, len(self.choosable.missed)
        scores = self.calibration.values[np.isfinite(self.calibration.values)]
        return bool(n and not (scores > self.allowed.thresholds[start + n - 1]).any())

    @property
    def n_in_the_way(self) -> int:
        """How many benign questions are flagged as soon as anything is, where more questions may allow that.

        0 where something is flagged, without a promise, and where their share is not below the promised one.
        """
        guarantee, first = self.allowed.guarantee, self.allowed.good.first
        if guarantee is None or not self.flags_nothing:
            return 0
        n = int(np.count_nonzero(first <= 1))
        return n if n < guarantee.of_each().alpha * len(first) else 0

    @property
    def is_unpromised(self) -> bool:
        """Whether the monitor gives answers only, which are not shown to keep the promise or the budget."""
        return self.reads_answers and self.limits is None and not self.allowed.n

    def answers_at(self, index: int) -> Columns:
        """Return the test samples with the monitor's answers at a threshold; every sample has an answer."""
        flagged = self.test.values > self.allowed.thresholds[index]
        return replace(self.judged, flagged=flagged.astype(np.float64))

    def entrant(self) -> Entrant:
        """Return the monitor for redraws, in which it takes the cheapest threshold that is allowed there."""
        of = self.allowed
        return Entrant(self.calibration, of.thresholds, of.n_in_draws, self.test, self.on_test)


def contender(
    monitor: str,
    prompt: str,
    calibration: Columns,
    test: Columns,
    *,
    promise: Promise | None,
    budget: AlertBudget | None,
    unscored: Unscored,
    weights: FloatArray | None = None,
    outside: str = "",
    limit: float | None = None,
    limits: Mapping[str, float] | None = None,
) -> Contender:
    """Build a contender from columns of both splits, calibration cut to samples that may set a threshold.

    `weights` [calibration samples] make these stand for a deployment's shares of cells. A `limit` is the one
    threshold that the monitor may take; with `limits` its answers are read as they are, as scores of 0 and 1.
    """
    reads_answers = limits is not None or bool(np.isnan(calibration.scores).all())
    if reads_answers:
        as_scores = [replace(judged, scores=judged.flagged) for judged in (calibration, test)]
    else:
        as_scores = [calibration, test]
    calibrated, used = suspicion(as_scores[0], unscored, weights), suspicion(as_scores[1], unscored)
    guarantee, shares = (None, None) if promise is None else (promise.guarantee, promise.weights)
    may_have, only = allowed(calibrated, guarantee, shares, budget), None
    if reads_answers:
        may_have = _at(may_have, calibrated, _OWN_ANSWERS)
    elif limit is not None:
        # In the gap that it lies in, so that no calibration sample changes sides.
        only = min(int(np.count_nonzero(may_have.thresholds > limit)), len(may_have.thresholds) - 1)
        exact = may_have.thresholds.copy()
        exact[only] = limit
        may_have = may_have._replace(thresholds=exact)
    thresholds = may_have.thresholds
    n = len(thresholds)
    has_score = ~np.isnan(test.scores) | np.isnan(test.scores).all()
    if len(calibrated) and np.isnan([calibration.scores, calibration.flagged]).all():
        outside = outside or (
            f"none of its {len(calibrated):,} answers in the split that it is chosen on could be read as a "
            "label, and none has a score"
        )
    return Contender(
        monitor=monitor,
        prompt=prompt,
        calibration=calibrated,
        test=used,
        held=calibration,
        judged=test,
        allowed=may_have,
        on_calibration=rates_along(
            first_flagged(calibrated.values, thresholds), n, calibrated.is_misbehavior, calibrated.weights
        ),
        on_test=rates_along(first_flagged(used.values, thresholds), n, used.is_misbehavior, used.weights),
        outside=outside,
        reads_answers=reads_answers,
        n_unscored=int(np.isnan(as_scores[1].scores).sum()),
        n_unanswered=int((np.isnan(as_scores[1].scores) & has_score).sum()),
        only=only,
        limits=limits,
    )


def _at(found: Allowed, held: Suspicion, thresholds: FloatArray) -> Allowed:
    """Put `thresholds` in place of those between scores; which keep promise and budget is asked anew."""
    bad, good = (questions(held, thresholds, are_misbehavior=label) for label in (True, False))
    in_budget = n_promised = n = len(thresholds)
    if found.promised is not None:
        limit = np.inf if found.promised.threshold is None else found.promised.threshold
        n_promised = int(np.count_nonzero(thresholds >= limit))
    if found.budget is not None:
        once = np.ones((1, int(held.groups.max(initial=-1)) + 1))
        in_budget = int(n_within_budget(bad, good, n, found.budget, once)[0])
    kept = found._replace(n_promised=n_promised, n_in_budget=in_budget)
    return kept._replace(thresholds=thresholds, bad=bad, good=good)


def sample_weights(is_misbehavior: BoolArray, strata: NDArray[np.str_], mix: Mix | None) -> FloatArray | None:
    """Weigh samples [samples] so that each label's stand for the mix's shares of strata; None where they do.

    A stratum that the mix lacks weighs nothing; where a label is in none of its strata, that label weighs 1
    each.
    """
    of_labels = (is_misbehavior, ~is_misbehavior)
    if mix is None or all(question_weights(strata[rows], mix).equal for rows in of_labels):
        return None
    weights = np.ones(len(strata))
    for rows in of_labels:
        names, index, counts = np.unique(strata[rows], return_inverse=True, return_counts=True)
        shares = np.array([mix.weights.get(str(name), 0.0) for name in names])
        if shares.sum() > 0:
            weights[rows] = (shares / shares.sum() / counts)[index] * rows.sum()
    return weights


class CandidateRuns(NamedTuple):
    """Runs of one monitor over the calibration and the test split, both under its name."""

    calibration: Evaluation
    test: Evaluation

    @property
    def monitor(self) -> str:
        """Name of the monitor."""
        return self.test.monitor

    @property
    def prompt(self) -> str:
        """Prompt that the monitor was asked with."""
        return self.test.prompt


def pairs_of(runs: tuple[Path, ...], datasets: Path, min_coverage: float) -> list[CandidateRuns]:
    """Pair the runs of `study.recommend.runs` by monitor, in the order of the test runs.

    Raises `ConfigError` where no run is given, `UserError` for a run over another split, for a monitor with a
    run over one of both splits only, and where the runs are of several datasets or of other test samples.
    """
    if not runs:
        raise ConfigError(
            "recommend.runs=[]: nothing to choose from; expected finished evaluation runs, of each monitor "
            "one over the calibration split and one over the test split"
        )
    evaluations = [read_covered(datasets, run, min_coverage) for run in runs]
    _refuse_several_datasets(evaluations)
    calibrations = _by_judge(evaluations, Split.CALIBRATION)
    tests = _by_judge(evaluations, Split.TEST)
    for run in evaluations:
        if run.split not in (Split.CALIBRATION, Split.TEST):
            raise UserError(
                f"recommend.runs: {run.directory} judged the {run.split} split; expected runs over the "
                "calibration and the test split"
            )
        partners = tests if run.split is Split.CALIBRATION else calibrations
        if run.judge_hash not in partners:
            lacks = "test" if partners is tests else "calibration"
            raise UserError(
                f"recommend.runs: no run of {judge_id(run)} over the {lacks} split beside {run.directory}; "
                "expected both, of the same judge (`monitorbench evaluate evaluate.split=...`)"
            )
    renamed = with_distinct_names(list(tests.values()))
    first = renamed[0]
    for run in renamed:
        if not run.judged.sample_ids.equals(first.judged.sample_ids):
            raise UserError(
                f"recommend.runs: {run.directory} judged other samples of the test split than "
                f"{first.directory}; expected the same settings of dataset.test"
            )
    return [CandidateRuns(calibrations[run.judge_hash]._replace(monitor=run.monitor), run) for run in renamed]


def _refuse_several_datasets(found: Sequence[Evaluation]) -> None:
    names: dict[Path, Path] = {}
    for run in found:
        names.setdefault(run.data, run.directory)
    if len(names) > 1:
        (first, run_a), (second, run_b) = list(names.items())[:2]
        raise UserError(
            f"recommend.runs: {run_a} judged {first.name}, {run_b} judged {second.name}; expected one dataset"
        )


def _by_judge(found: Sequence[Evaluation], split: Split) -> dict[str, Evaluation]:
    by_judge: dict[str, Evaluation] = {}
    for run in found:
        if run.split is split:
            if (before := by_judge.get(run.judge_hash)) is not None:
                raise UserError(
                    f"recommend.runs: {before.directory} and {run.directory} are both of {judge_id(run)} "
                    f"over the {split} split; expected one"
                )
            by_judge[run.judge_hash] = run
    return by_judge
