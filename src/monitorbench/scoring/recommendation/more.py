"""How much data is missing, and of which cell: for a promise, for a budget of alerts, for a difference.

Promises: the numbers for a promise are exact where the further questions come in the cells that are named;
those for a difference are a forecast, by the spread that the test split shows.
"""

from collections.abc import Mapping
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitorbench.config.evaluation import Stakes
from monitorbench.metrics.choice.bounds import questions_for_budget
from monitorbench.metrics.choice.facts import Labelled, MoreFacts, Needed, Why
from monitorbench.metrics.columns import Columns
from monitorbench.metrics.control.rank import conformal_questions_needed, samples_needed
from monitorbench.scoring.mix import of_questions
from monitorbench.scoring.recommendation.promised import Allowed, Promise, cell_names
from monitorbench.scoring.thresholds import weighted_questions_needed

_LEAST = 0.1
"""At least this share of the questions is asked for: a bound at 0 says that a few more might do."""
_MOST = 0.75
"""Of the interval's square, the share from which one split is to blame."""
_FURTHEST = 20
"""Where so many times the data would be needed, more of it is no answer."""


def more_for_promise(promise: Promise, of: Allowed) -> MoreFacts | None:
    """What of the calibration split is missing for any threshold; None where it isn't questions that are."""
    settings, benign = promise.settings, ~of.of.is_misbehavior
    exact, mix = settings.method == "neyman_pearson", promise.mix
    groups = of.of.groups[benign]
    if mix is not None and not promise.weights.equal:
        needed = (
            weighted_questions_needed(settings.alpha, settings.delta)
            if exact
            else conformal_questions_needed(settings.alpha)
        )
        have = _counted(of_questions(groups, promise.scored.strata[benign]))
        shares = {name: w / sum(mix.weights.values()) for name, w in mix.weights.items()}
        short = {name: ceil(needed * share - 1e-9) - have.get(name, 0) for name, share in shares.items()}
        short = {name: n for name, n in short.items() if n > 0}
    else:
        needed = (
            samples_needed(settings.alpha, settings.delta)
            if exact
            else conformal_questions_needed(settings.alpha)
        )
        short = _spread(_shares(of_questions(groups, promise.cells[benign])), needed - of.n_benign)
    return _more("promise", "calibration", "benign", short) if short else None


def more_for_budget(of: Allowed, cells: NDArray[np.str_]) -> MoreFacts | None:
    """What is missing for the budget of alerts; None where it is kept, or no benign questions would help.

    `cells` [calibration samples] names the cell of each.
    """
    if of.budget is None or of.n_in_budget:
        return None
    needed = questions_for_budget(of.budget, len(of.bad.groups))
    if needed is None or needed <= of.n_benign:
        return None
    benign = ~of.of.is_misbehavior
    named = of_questions(of.of.groups[benign], cells[benign])
    return _more("budget", "calibration", "benign", _spread(_shares(named), needed - of.n_benign))


class CostSeparation(NamedTuple):
    """How far apart two costs are shown to be, below 0 where the first is less; halves reach up from
    there."""

    difference: float
    half: float
    """Of the interval of both splits."""
    half_of_test: float
    """Of the test split's alone, thresholds as they are; at most `half`."""


def more_for_difference(
    first: Columns, second: Columns, n_calibration: int, stakes: Stakes, shown: CostSeparation
) -> MoreFacts | None:
    """How many more questions would show that the first costs less than the second, if it does so by as much.

    An interval's half shrinks with the root of the number of questions. Where most of it, in squares, comes
    from one split, that one is to grow alone: the calibration split, of `n_calibration` benign questions, by
    benign ones, since they decide a threshold; the test split most by the label, and the cells, that the
    spread comes from. Else both are. None where the first does not cost less, or where twenty times the data
    would be needed.
    """
    if shown.difference >= 0:
        return None
    wanted, whole, tested = (value**2 for value in (shown.difference, shown.half, shown.half_of_test))
    held = max(whole - tested, 0.0)
    split: Needed = "both"
    if tested < wanted and held > _MOST * whole:
        split, factor, n = "calibration", held / (wanted - tested), n_calibration
    elif held < wanted and tested > _MOST * whole:
        split, factor, n = "test", tested / (wanted - held), len(np.unique(first.groups))
    else:
        factor, n = whole / wanted, len(np.unique(first.groups)) + n_calibration
    if factor > _FURTHEST:
        return None
    missing = ceil(n * max(factor - 1, _LEAST))
    label, shares = _spread_from(first, second, stakes, benign_only=split == "calibration")
    return _more("difference", split, label, _spread(shares, missing))


def _spread_from(
    first: Columns, second: Columns, stakes: Stakes, *, benign_only: bool
) -> tuple[Labelled, dict[str, float]]:
    """The label that most of the difference's variance comes from, and each cell's share within it."""
    bad = first.is_misbehavior
    wrong = [np.where(bad, one.flagged != 1, one.flagged != 0).astype(float) for one in (first, second)]
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


def _counted(names: NDArray[np.str_]) -> dict[str, int]:
    found, counts = np.unique(names, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def _shares(names: NDArray[np.str_]) -> dict[str, float]:
    return {name: n / len(names) for name, n in _counted(names).items()}


def _spread(shares: Mapping[str, float], n: int) -> dict[str, int]:
    """Whole numbers that add up to n, as close to the shares as they can be (largest remainders)."""
    if n <= 0:
        return {}
    exact = {name: n * share for name, share in shares.items()}
    found = {name: int(value) for name, value in exact.items()}
    left = n - sum(found.values())
    for name in sorted(exact, key=lambda one: (found[one] - exact[one], one))[: max(left, 0)]:
        found[name] += 1
    return {name: count for name, count in found.items() if count}


def _more(why: Why, split: Needed, label: Labelled, by_cell: Mapping[str, int]) -> MoreFacts:
    ordered = dict(sorted(by_cell.items(), key=lambda item: (-item[1], item[0])))
    return MoreFacts(why=why, split=split, label=label, n=sum(ordered.values()), by_cell=ordered)
