"""From evaluations and their operating points to the answer; the rule itself is `metrics.decision`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from monitorbench.config.evaluation import Calibrate, Stakes
from monitorbench.corpus.columns import read_columns
from monitorbench.metrics.columns import Columns
from monitorbench.metrics.decision import Candidate, DecisionFacts, PromiseFacts, decide
from monitorbench.metrics.guarantees.lacking import least_questions
from monitorbench.metrics.guarantees.mix import of_questions, question_weights
from monitorbench.records import Split
from monitorbench.runs.directory import read_finished
from monitorbench.scoring.calibrate import guarantee_of
from monitorbench.scoring.evaluations import Evaluation
from monitorbench.scoring.mix import mix_asked
from monitorbench.scoring.numbers import Drawn
from monitorbench.scoring.points import PointAt


def decision_of(
    stakes: Stakes,
    calibrate: Calibrate,
    evaluations: Sequence[Evaluation],
    points: Sequence[PointAt],
    baselines: Mapping[str, Columns],
    drawn: Drawn,
) -> DecisionFacts:
    """Over the monitors at their operating points; where there is none, over all by their own answers."""
    read = [one.evaluation for one in points] or evaluations
    return decide(
        [Candidate(e.monitor, e.prompt, e.judged) for e in read],
        baselines,
        stakes,
        is_calibrated=bool(points),
        promise=None if points else _promise(calibrate, evaluations[0].data),
        **drawn,
    )


def _promise(settings: Calibrate, data: Path) -> PromiseFacts | None:
    """How many benign questions the dataset has for the promise that `calibrate` asks for, and it takes."""
    splits = read_finished(data)["results"]["splits"]
    if not splits.get(Split.CALIBRATION.value, {}).get("samples"):
        return None
    held = read_columns(data, Split.CALIBRATION)
    benign = ~held.is_misbehavior
    mix, strata = mix_asked(settings, held, data, None)
    names = np.full(len(held), "") if strata is None else np.asarray(strata)
    weights = question_weights(of_questions(held.groups[benign], names[benign]), mix)
    facts = PromiseFacts(
        method=settings.method,
        alpha=settings.alpha,
        delta=settings.delta if settings.method == "neyman_pearson" else None,
        n=len(np.unique(held.groups[benign])),
        needed=least_questions(guarantee_of(settings).of_each(), weighted=not weights.equal),
    )
    if not weights.equal:
        facts["worth"] = int(weights.worth(settings.alpha))
    return facts
