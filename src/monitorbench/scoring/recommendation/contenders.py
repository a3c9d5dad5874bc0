"""One monitor, or one shortcut check, with all that choosing needs of it: thresholds, rates, answers.

Promises: the calibration split alone decides thresholds; what the test split says is read at them.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.choice.curve import (
    RateCurves,
    Suspicion,
    Unscored,
    first_flagged,
    rates_along,
    suspicion,
)
from monitorbench.metrics.choice.regret import Entrant
from monitorbench.metrics.columns import BoolArray, Columns
from monitorbench.metrics.guarantees.allowed import AlertBudget, Allowed, allowed
from monitorbench.metrics.guarantees.mix import Mix, question_weights
from monitorbench.scoring.recommendation.more import Promise


class Contender(NamedTuple):
    """A monitor that may be chosen, or a shortcut check that has to be beaten."""

    monitor: str
    prompt: str
    calibration: Suspicion
    test: Suspicion
    held: Columns
    """Its calibration samples, and its test samples."""
    judged: Columns
    allowed: Allowed
    on_calibration: RateCurves
    """At every threshold."""
    on_test: RateCurves
    outside: str
    """Why it may not be chosen whatever it scores: too slow, too dear. Empty where it may."""
    reads_answers: bool
    n_unscored: int
    """Test samples."""

    @property
    def choosable(self) -> RateCurves:
        """The rates on the calibration split at the thresholds that it may have."""
        n = 0 if self.outside else self.allowed.n
        return RateCurves(self.on_calibration.missed[:n], self.on_calibration.alarms[:n])

    def answers_at(self, index: int) -> Columns:
        """The test samples with its answers at a threshold; all of them have one."""
        flagged = self.test.values > self.allowed.thresholds[index]
        return replace(self.judged, flagged=flagged.astype(np.float64))

    def entrant(self) -> Entrant:
        """The same for redraws."""
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
) -> Contender:
    """A monitor's columns of both splits, calibration cut to the samples that a threshold may be set on.

    `weights` [calibration samples] make these stand for a deployment's shares of cells.
    """
    held, used = suspicion(calibration, unscored, weights), suspicion(test, unscored)
    guarantee, shares = (None, None) if promise is None else (promise.guarantee, promise.weights)
    may_have = allowed(held, guarantee, shares, budget)
    thresholds = may_have.thresholds
    n = len(thresholds)
    reads_answers = bool(np.isnan(calibration.scores).all())
    return Contender(
        monitor=monitor,
        prompt=prompt,
        calibration=held,
        test=used,
        held=calibration,
        judged=test,
        allowed=may_have,
        on_calibration=rates_along(
            first_flagged(held.values, thresholds), n, held.is_misbehavior, held.weights
        ),
        on_test=rates_along(first_flagged(used.values, thresholds), n, used.is_misbehavior, used.weights),
        outside=outside,
        reads_answers=reads_answers,
        n_unscored=int(np.isnan(test.flagged if reads_answers else test.scores).sum()),
    )


def sample_weights(is_misbehavior: BoolArray, strata: NDArray[np.str_], mix: Mix | None) -> FloatArray | None:
    """[samples]: what makes each label's samples stand for the mix's shares of strata; None where they do.

    A stratum that the mix lacks weighs nothing; where a label is in none of its strata, that label weighs 1
    each.
    """
    if mix is None or _is_drawn_alike(is_misbehavior, strata, mix):
        return None
    found = np.ones(len(strata))
    for label in (True, False):
        rows = is_misbehavior == label
        names, index, counts = np.unique(strata[rows], return_inverse=True, return_counts=True)
        shares = np.array([mix.weights.get(str(name), 0.0) for name in names])
        if shares.sum() > 0:
            found[rows] = (shares / shares.sum() / counts)[index] * rows.sum()
    return found


def _is_drawn_alike(is_misbehavior: BoolArray, strata: NDArray[np.str_], mix: Mix) -> bool:
    """Whether both labels have the mix's shares as they are, up to rounding."""
    return all(question_weights(strata[is_misbehavior == label], mix).equal for label in (True, False))
