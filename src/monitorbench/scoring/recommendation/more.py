"""Count how much data is missing, and of which cell: for a promise, for a budget of alerts, for a difference.

The numbers for a promise and a budget are those of `metrics.guarantees`, in the cells that are named; those
for a difference are a forecast, by the spread that the test split shows.
"""

from collections.abc import Mapping
from math import ceil
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitorbench.config.evaluation import Calibrate, Stakes
from monitorbench.corpus.columns import read_columns
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.choice import Labelled, MoreFacts, Needed, Why
from monitorbench.metrics.columns import Columns
from monitorbench.metrics.cost import Costs
from monitorbench.metrics.guarantees.allowed import (
    AlertBudget,
    Allowed,
    allowed,
    first_worth_it,
    questions_for_budget,
    questions_for_promise,
)
from monitorbench.metrics.guarantees.lacking import questions_of_cells
from monitorbench.metrics.guarantees.order_statistic import (
    Guarantee,
    Mix,
    Weights,
    of_questions,
    question_weights,
)
from monitorbench.metrics.guarantees.threshold import guaranteed_threshold
from monitorbench.metrics.regret import (
    Suspicion,
    cost_without_reading,
    costs_along,
    first_flagged,
    rates_along,
    suspicion,
)
from monitorbench.records import Split
from monitorbench.runs.directory import read_finished
from monitorbench.scoring.calibrate import guarantee_of
from monitorbench.scoring.calibration_split import CalibrationScores, calibration_scores
from monitorbench.scoring.mix import mix_asked

_LEAST = 0.1
"""Least share of the questions that is asked for: a bound at 0 says that a few more might do."""
_MOST = 0.75
"""Share of the interval's square from which on one split alone is to blame."""
_FURTHEST = 20
"""Multiple of the data beyond which asking for more of it is no answer."""
_MOST_ALPHA = 0.3
"""Largest share of false alarms that is proposed in place of the promised one."""


class Promise(NamedTuple):
    """The guarantee that the calibration split is to give, before any monitor's scores."""

    guarantee: Guarantee
    weights: Weights
    """Weights of the benign questions, in the order of their groups' numbers."""
    cells: NDArray[np.str_]
    """[samples]: the `category/task` of each calibration sample."""


def promise_of(settings: Calibrate, mix: Mix | None, scored: CalibrationScores, samples: Columns) -> Promise:
    """Build the guarantee over `scored`, whose samples are `samples` in this order."""
    benign = ~samples.is_misbehavior
    strata = of_questions(samples.groups[benign], scored.strata[benign])
    return Promise(guarantee_of(settings), question_weights(strata, mix), cell_names(samples))


def cell_names(samples: Columns) -> NDArray[np.str_]:
    """Name the `category/task` of each sample [samples]."""
    names = np.array([f"{c}/{t}" for c in samples.category_names for t in samples.task_names], dtype=np.str_)
    of_samples: NDArray[np.str_] = names[samples.cells]
    return of_samples


def more_for_promise(promise: Promise, of: Allowed, index: int | None) -> MoreFacts | None:
    """Count calibration questions that are missing for a threshold; None where no number of them helps.

    The threshold is that at `index`; it is any, also one that flags nothing, without an index, and where the
    promise is of another mix or has no confidence. Where scores for the questions at hand (`n_unscored`) save
    questions, they are asked for: in place of any question, or beside the few that are needed even so.
    """
    n_unscored, are_both_needed = of.promised.n_unscored if of.promised is not None else 0, False
    n_more, short = _lacking(promise, of, index, are_scored=False)
    if n_unscored:
        n_beside, of_strata = _lacking(promise, of, index, are_scored=True)
        if n_beside is None or (n_more is not None and n_beside >= n_more):
            n_unscored = 0
        elif n_beside:
            n_more, short, are_both_needed = n_beside, of_strata, True
    if not n_more and not n_unscored:
        return None
    n_more = n_more or 0
    short = short or questions_of_cells(_shares(_benign_cells(of, promise.cells)), n_more)
    more = _more("promise", "calibration", "benign", n_more, short, of.n_benign)
    more["promised"], more["n_unscored"] = promise.guarantee.in_words(), n_unscored
    more["are_both_needed"] = are_both_needed
    return more


def n_to_collect(more: MoreFacts) -> int:
    """Count the questions that have to be collected, where scores for those at hand are given as asked."""
    return 0 if more["n_unscored"] and not more["are_both_needed"] else more["n"]


def _lacking(
    promise: Promise, of: Allowed, index: int | None, *, are_scored: bool
) -> tuple[int | None, Mapping[str, int]]:
    """Count the questions that are missing, and of which stratum; None where no number of them helps.

    With `are_scored` the benign questions without a score are taken to have one that passes.
    """
    weights, is_unequal = of.benign.weights, False
    if weights is not None:
        is_unequal = not weights.equal
    if index is not None and promise.guarantee.method == "neyman_pearson" and not is_unequal:
        needed = questions_for_promise(of, index, are_scored=are_scored)
        return (None if needed is None else needed - of.n_benign), {}
    scores = of.benign.scores
    passed = np.where(np.isposinf(scores) & are_scored | np.isneginf(scores), 0.0, scores)
    found = guaranteed_threshold(of.benign._replace(scores=passed), promise.guarantee)
    return (0, {}) if found.lacking is None else (found.lacking.n_more, found.lacking.by_stratum)


def alpha_at_hand(
    promise: Promise, calibration: Suspicion, budget: AlertBudget | None, stakes: Costs
) -> float | None:
    """Find the least larger alpha, in whole percents, that a threshold which is worth it promises.

    Worth it is a threshold within the budget that costs less than reading nothing on the calibration split.
    None where `_MOST_ALPHA` is not enough.
    """
    without_reading = cost_without_reading(stakes, everything=budget is None)
    for percent in range(int(100 * promise.guarantee.alpha + 1e-9) + 1, round(100 * _MOST_ALPHA) + 1):
        guarantee = promise.guarantee._replace(alpha=percent / 100)
        found = allowed(calibration, guarantee, promise.weights, budget)
        first = first_flagged(calibration.values, found.thresholds)
        rates = rates_along(first, len(found.thresholds), calibration.is_misbehavior, calibration.weights)
        index = first_worth_it(costs_along(rates, stakes), without_reading)
        if index is not None and index < found.n:
            return guarantee.alpha
    return None


def has_calibration_split(data: Path) -> bool:
    """Whether a dataset has a calibration split with samples."""
    splits = read_finished(data)["results"]["splits"]
    return bool(splits.get(Split.CALIBRATION.value, {}).get("samples"))


def more_for_any_scores(
    calibrate: Calibrate, n_candidates: int, data: Path, stakes: Costs
) -> MoreFacts | None:
    """Say what the calibration split lacks for the promise under any scores; None where there is no split."""
    if not has_calibration_split(data):
        return None
    samples = read_columns(data, Split.CALIBRATION)
    settings = calibrate.model_copy(update={"n_candidates": max(calibrate.n_candidates, n_candidates)})
    mix, strata = mix_asked(settings, samples, data, None)
    # Scores without ties: what answers alone lack is no number of questions.
    order = np.arange(len(samples)) / max(1, len(samples))
    samples = samples.answering(np.zeros(len(samples)), np.where(samples.is_misbehavior, 1.0, order))
    scored = calibration_scores(
        data.name,
        splits=[Split.CALIBRATION] * len(samples),
        scores={"any": samples.scores},
        is_misbehavior=samples.is_misbehavior,
        group_ids=samples.group_ids().to_pylist(),
        categories=[samples.category_names[i] for i in samples.categories.tolist()],
        strata=strata,
    )
    promise = promise_of(settings, mix, scored, samples)
    of_any = suspicion(samples, "wrong")
    thresholds = allowed(of_any, promise.guarantee, promise.weights, None)
    more = None if thresholds.n_promised else more_for_promise(promise, thresholds, None)
    if more is not None:
        more["alpha_at_hand"] = alpha_at_hand(promise, of_any, None, stakes)
    return more


def more_for_budget(
    of: Allowed, cells: NDArray[np.str_], costs: FloatArray, nothing: float
) -> MoreFacts | None:
    """Count what is missing for a useful threshold within the alert budget; None where no number would help.

    `cells` [calibration samples] names the cell of each sample, `costs` [thresholds] is what each threshold
    costs on the calibration split, `nothing` what flagging nothing costs. The result is None too where a
    threshold that flags something is allowed already.
    """
    if of.budget is None or of.n_in_budget > 1:
        return None
    needed = questions_for_budget(of, costs, nothing)
    if needed is None or needed <= of.n_benign:
        return None
    missing = needed - of.n_benign
    by_cell = questions_of_cells(_shares(_benign_cells(of, cells)), missing)
    return _more("budget", "calibration", "benign", missing, by_cell, of.n_benign)


def _benign_cells(of: Allowed, cells: NDArray[np.str_]) -> NDArray[np.str_]:
    """Name the cell of each benign question [questions]."""
    return of_questions(of.benign.groups, cells[~of.is_misbehavior])


class CostSeparation(NamedTuple):
    """Difference shown between two costs, below 0 where the first is less; halves reach up from it."""

    difference: float
    half: float
    """Upper half of the interval of both splits."""
    half_of_test: float
    """Upper half of the test split's interval alone, thresholds as they are; at most `half`."""


def more_for_difference(
    first: Columns, second: Columns, n_calibration: int, stakes: Stakes, shown: CostSeparation
) -> MoreFacts | None:
    """Count further questions that would show the first to cost less than the second, if it does by as much.

    An interval's half shrinks with the root of the number of questions. Where most of it, in squares, comes
    from one split, that one is to grow alone: the calibration split, of `n_calibration` benign questions, by
    benign ones, since they decide a threshold; the test split most by the label, and the cells, that the
    spread comes from. Otherwise both splits are to grow. The result is None where the first does not cost
    less, or where twenty times the data would be needed.
    """
    if shown.difference >= 0:
        return None
    wanted, total, tested = (value**2 for value in (shown.difference, shown.half, shown.half_of_test))
    calibration = max(total - tested, 0.0)
    split: Needed = "both"
    if tested < wanted and calibration > _MOST * total:
        split, factor, n = "calibration", calibration / (wanted - tested), n_calibration
    elif calibration < wanted and tested > _MOST * total:
        split, factor, n = "test", tested / (wanted - calibration), len(np.unique(first.groups))
    else:
        factor, n = total / wanted, len(np.unique(first.groups)) + n_calibration
    if factor > _FURTHEST:
        return None
    missing = ceil(n * max(factor - 1, _LEAST))
    label, shares = _spread_from(first, second, stakes, benign_only=split == "calibration")
    return _more("difference", split, label, missing, questions_of_cells(shares, missing), n_calibration)


def _spread_from(
    first: Columns, second: Columns, stakes: Stakes, *, benign_only: bool
) -> tuple[Labelled, dict[str, float]]:
    """Find the label that most of the difference's variance comes from, and each cell's share within it."""
    bad = first.is_misbehavior
    wrong = [
        np.where(bad, answers.flagged != 1, answers.flagged != 0).astype(float) for answers in (first, second)
    ]
    apart = wrong[0] - wrong[1]
    weights = stakes.base_rate * stakes.cost_miss, (1 - stakes.base_rate) * stakes.cost_alarm
    parts = [
        weight**2 * float(np.var(apart[rows])) / max(int(rows.sum()), 1)
        for weight, rows in zip(weights, (bad, ~bad), strict=True)
    ]
    of_misbehavior = parts[0] > parts[1] and not benign_only
    rows = bad if of_misbehavior else ~bad
    off = (apart[rows] - apart[rows].mean()) ** 2
    names = cell_names(first)[rows]
    total = float(off.sum())
    shares = {
        name: float(off[names == name].sum()) / total if total else float(np.mean(names == name))
        for name in np.unique(names).tolist()
    }
    return ("misbehavior" if of_misbehavior else "benign"), shares


def _shares(names: NDArray[np.str_]) -> dict[str, float]:
    distinct, counts = np.unique(names, return_counts=True)
    return dict(zip(distinct.tolist(), (counts / max(1, len(names))).tolist(), strict=True))


def _more(
    why: Why, split: Needed, label: Labelled, n: int, by_cell: Mapping[str, int], n_held: int
) -> MoreFacts:
    return MoreFacts(
        why=why,
        split=split,
        label=label,
        n=n,
        by_cell=dict(sorted(by_cell.items(), key=lambda item: (-item[1], item[0]))),
        n_held=n_held,
        monitor="",
        promised="",
        n_unscored=0,
        are_both_needed=False,
        alpha_at_hand=None,
        calibration_share=0.0,
    )
