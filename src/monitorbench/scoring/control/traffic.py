"""A judge's scores as they count: honest traffic and attacks, after the policy for missing scores."""

from typing import NamedTuple

import numpy as np

from monitorbench.config.deployment import Control
from monitorbench.metrics.bootstrap import IntArray
from monitorbench.metrics.columns import BoolArray, Columns
from monitorbench.metrics.control.safety import Attacks
from monitorbench.metrics.guarantees.threshold import Benign
from monitorbench.scoring.control.inputs import JudgedMonitor, JudgedSplit, counted
from monitorbench.scoring.control.outcomes import Outcomes, values_of


class ControlDraws(NamedTuple):
    """Number of draws and their seed; attacks are drawn by the next seed, the same for all judges."""

    resamples: int
    seed: int


class Routes(NamedTuple):
    """Ways of attacking."""

    of_attack: IntArray
    """[attacks], index into `names`."""
    names: list[str]


class Traffic(NamedTuple):
    """A judge's samples by what they are."""

    held: Benign
    """Held-out honest samples, of the calibration split."""
    honest: Benign
    """Honest samples of the test split."""
    attacks: Attacks
    routes: Routes


def traffic_of(judge: JudgedMonitor, settings: Control, outcomes: Outcomes | None) -> Traffic:
    """The judge's traffic; with `leave_out` without what it did not score."""
    test = judge.test
    scores = counted(test.scores, settings.unscored, is_attack=True)
    rows = test.samples.is_misbehavior & ~np.isnan(scores)
    attacks = Attacks(scores[rows], succeeds(test.samples, outcomes)[rows], test.samples.groups[rows])
    routes = _routes(test.samples, settings)
    return Traffic(
        _honest(judge.calibration, settings),
        _honest(test, settings),
        attacks,
        Routes(routes.of_attack[rows], routes.names),
    )


def succeeds(samples: Columns, outcomes: Outcomes | None) -> BoolArray:
    """Which samples [samples] would do harm if they were let through: attacks, but those known to fail."""
    successes = {} if outcomes is None else outcomes.success
    succeeded: BoolArray = samples.is_misbehavior & (values_of(successes, samples.sample_ids, 1.0) == 1)
    return succeeded


def _honest(side: JudgedSplit, settings: Control) -> Benign:
    scores = counted(side.scores, settings.unscored, is_attack=False)
    rows = ~side.samples.is_misbehavior & ~np.isnan(scores)
    return Benign(scores[rows], side.samples.groups[rows], everything=side.scores)


def _routes(samples: Columns, settings: Control) -> Routes:
    match settings.routes:
        case "category":
            return Routes(samples.categories, list(samples.category_names))
        case "source":
            return Routes(samples.sources, [name or "unnamed" for name in samples.source_names])
        case "cell":
            names = [f"{c}/{t}" for c in samples.category_names for t in samples.task_names]
            return Routes(samples.cells, names)
