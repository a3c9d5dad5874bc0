"""Does a guarantee hold for the monitor that the calibration split chooses, and does obeyed advice lead on?

Equal monitors whose true false alarm rate at any threshold is known: the one with the lowest threshold is
chosen, which is whom the cheapest expected cost takes among equals.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

from benchmarks.coverage import Cell, Table, given, holds, means
from monitorbench.config.evaluation import Stakes
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.clustered import share_interval
from monitorbench.metrics.cost import expected_cost, expected_cost_interval
from monitorbench.metrics.guarantees.allowed import AlertBudget, allowed, questions_for_budget
from monitorbench.metrics.guarantees.order_statistic import Guarantee, Method
from monitorbench.metrics.guarantees.threshold import Benign, GuaranteedThreshold, guaranteed_threshold
from monitorbench.metrics.regret import RateCurves, Suspicion, costs_along, first_flagged, rates_along

ALPHA, DELTA, N = 0.05, 0.05, 600
"""Guaranteed false alarm rate, the chance that it fails, and benign questions of the calibration split."""
CANDIDATES = (1, 3, 10, 30)
N_TEST, MISSED, ALARMS = 200, 0.2, 0.05
SHARES = (0.01, 0.02, 0.05)
STAKES = Stakes(base_rate=0.01, cost_miss=100.0, cost_alarm=1.0)
BUDGETS = ((40, 0.05, 2.6), (40, 0.03, 2.6), (100, 0.03, 2.6), (40, 0.05, 2.0))
"""Questions of either label, the share that may be flagged, and how many SD misbehavior lies higher."""


def tables(seed: int, effort: float) -> Iterator[Table]:
    """Tabulate the false alarm rate of the chosen monitor, and what came of obeyed advice."""
    yield _chosen(seed, round(2000 * effort))
    yield _printed(seed, round(1000 * effort))
    yield _obeyed(seed, round(1000 * effort))
    yield _obeyed_for_budget(seed, round(200 * effort))


def _chosen(seed: int, n_runs: int) -> Table:
    rows: list[list[Cell]] = []
    methods: tuple[Method, Method] = ("neyman_pearson", "conformal_risk")
    for method, k, levels in product(methods, CANDIDATES, (0, 10)):
        rng = np.random.default_rng([seed, k, levels])
        rates: list[list[float]] = [[], []]
        for _ in range(n_runs):
            scores = _scores(rng, k, levels)
            for found, n_candidates in zip(rates, (1, k), strict=True):
                found.append(_rate_of_chosen(scores, Guarantee(method, ALPHA, DELTA, n_candidates), levels))
        of_runs = np.array(rates)
        above = (of_runs > ALPHA + 1e-9).mean(axis=1).tolist()
        name = method.replace("_", " ")
        rows.append(
            [name, k, "10 levels" if levels else "continuous", *above, *of_runs.mean(axis=1).tolist()]
        )
    return Table(
        "The false alarm rate of the monitor that is chosen",
        "guarantee | monitors | scores | FAR > 5 %, each alone | shared out | mean FAR, each alone | "
        "shared out",
        rows,
        f"{N} benign questions, {n_runs:,} calibration splits a row, equal monitors with independent scores; "
        f"chosen is who has the lowest threshold. Each alone: delta {DELTA:g} (conformal risk: alpha "
        f"{ALPHA:g}) for every monitor. Shared out: divided by their number. Claimed of Neyman-Pearson: at "
        f"most {DELTA:g} above; of conformal risk: a mean of at most {ALPHA:g}.",
    )


def _scores(rng: np.random.Generator, k: int, levels: int) -> FloatArray:
    """Draw scores [monitors, questions]; of so many levels the upper are 1, 2, 3 … % of all questions."""
    scores = rng.random((k, N))
    if not levels:
        return scores
    edges = 1 - 0.01 * np.cumsum(np.arange(1, levels))[::-1]
    found: FloatArray = np.searchsorted(edges, scores, side="right") / levels
    return found


def _rate_of_chosen(scores: FloatArray, guarantee: Guarantee, levels: int) -> float:
    limits = [guaranteed_threshold(Benign(row, np.arange(N)), guarantee).threshold for row in scores]
    lowest = min((limit for limit in limits if limit is not None), default=1.0)
    if not levels:
        return 1 - lowest
    n_levels_above = levels - 1 - round(lowest * levels)
    return 0.01 * n_levels_above * (n_levels_above + 1) / 2


def _printed(seed: int, n_runs: int) -> Table:
    rows: list[list[Cell]] = []
    flags, groups = np.tile([False, True], N_TEST), np.repeat(np.arange(N_TEST), 2)
    truth = given(expected_cost(MISSED, ALARMS, STAKES))
    for k in CANDIDATES:
        rng = np.random.default_rng([seed, 40, k])
        held: list[list[bool]] = []
        for _ in range(n_runs):
            wrong = rng.random((k, 2 * N_TEST)) < np.where(flags, MISSED, ALARMS)
            rates = [wrong[:, flags].mean(axis=1), wrong[:, ~flags].mean(axis=1)]
            chosen = wrong[int(np.argmin(costs_along(RateCurves(*rates), STAKES)))]
            each: list[bool] = []
            for confidence in (0.95, 1 - 0.05 / k):
                cost = expected_cost_interval(
                    (flags ^ chosen) * 1.0, flags, groups, STAKES, confidence=confidence
                )
                share = share_interval(chosen[flags], groups[flags], confidence)
                each += [*holds([share], MISSED), *holds([cost], truth)]
            held.append(each)
        rows.append([k, *means(held)])
    return Table(
        "Figures of the monitor that the test split chose",
        "monitors | miss rate, 95 % each | cost | miss rate, 1 - 5 %/K (now) | cost",
        rows,
        f"{N_TEST} questions with a sample of either label, {n_runs:,} test splits a row; equal monitors "
        f"that miss {MISSED:g} and flag {ALARMS:g}, read by their own answers; the cheapest is printed. "
        "Claimed: intervals that hold in .95. Where a calibration split chooses, the test split's need no "
        "correction.",
    )


def _obeyed(seed: int, n_runs: int) -> Table:
    rows: list[list[Cell]] = []
    guarantee = Guarantee("neyman_pearson", ALPHA, DELTA)
    for n, share in product((40, 100, 200), SHARES):
        rng = np.random.default_rng([seed, n, round(1000 * share)])
        at_once, without_help = 0, 0
        numbers: list[int] = []
        led: dict[bool, list[bool]] = {True: [], False: []}
        for _ in range(n_runs):
            lost = int(rng.binomial(n, share))
            found = _with_lost(n, lost, guarantee).lacking
            if found is None:
                at_once += 1
            elif found.n_more is None:
                without_help += 1
            else:
                lost_later = int(rng.binomial(found.n_more, share))
                again = _with_lost(n + found.n_more, lost + lost_later, guarantee)
                numbers.append(found.n_more)
                led[lost > 0].append(again.threshold is not None)
        row: list[Cell] = [n, f"{100 * share:g} %", at_once / n_runs, without_help / n_runs]
        row += [float(np.mean(some)) if some else None for some in (led[True], led[False])]
        rows.append([*row, f"{np.median(numbers):.0f}" if numbers else None])
    return Table(
        "More questions, as many as are asked for",
        "benign questions | without a score | threshold at once | no number helps | obeyed, a threshold: "
        "some had no score | all had one | asked for (median)",
        rows,
        f"FAR <= {ALPHA:g} with probability {1 - DELTA:g}, {n_runs:,} calibration splits a row. A question "
        "without a score is a false alarm at any threshold; claimed where some had none: a threshold in .95. "
        "Where all so far have a score, the number is what it takes if the further ones have one as well. At "
        "5 % without a score no number of questions is enough.",
    )


def _with_lost(n: int, lost: int, guarantee: Guarantee) -> GuaranteedThreshold:
    scores = np.concatenate([np.full(lost, np.inf), np.linspace(0, 1, n - lost)])
    return guaranteed_threshold(Benign(scores, np.arange(n)), guarantee)


def _obeyed_for_budget(seed: int, n_runs: int) -> Table:
    rows: list[list[Cell]] = []
    for i, (n, share, shift) in enumerate(BUDGETS):
        rng = np.random.default_rng([seed, 30, i])
        budget, at_once, numbers = AlertBudget(share, (0.001, 0.01), DELTA), 0, []
        led: list[bool] = []
        for _ in range(n_runs):
            benign, misbehavior = (0.5 + rng.normal(mean, size=n) / 10 for mean in (0.0, shift))
            n_useful, needed = _useful(benign, misbehavior, budget)
            at_once += n_useful > 0
            if not n_useful and needed is not None:
                numbers.append(needed - n)
                further = 0.5 + rng.normal(size=needed - n) / 10
                led.append(_useful(np.append(benign, further), misbehavior, budget)[0] > 0)
        known = [float(np.mean(led)), f"{np.median(numbers):.0f}"] if led else [None, None]
        rows.append([n, f"{100 * share:g} %", f"+{shift:g} SD", at_once / n_runs, len(led) / n_runs, *known])
    return Table(
        "More questions for a budget of alerts",
        "questions | budget | misbehavior | useful threshold at once | asked for more | obeyed, a useful "
        "one | asked for (median)",
        rows,
        f"Normal scores, base rates .001 to .01, a miss costs 100, a false alarm 1; {n_runs:,} calibration "
        "splits a row. Useful is a threshold within the bound of the budget that costs less than "
        "flagging nothing. Claimed: as many further benign questions as are asked for lead to one with "
        "probability .8.",
    )


def _useful(benign: FloatArray, misbehavior: FloatArray, budget: AlertBudget) -> tuple[int, int | None]:
    """Count the useful thresholds within the budget; say how many benign questions are needed for one."""
    values = np.clip(np.append(benign, misbehavior), 0, 1)
    is_bad = np.repeat([False, True], [len(benign), len(misbehavior)])
    groups = np.append(np.arange(len(benign)), np.arange(len(misbehavior)))
    found = allowed(Suspicion(values, is_bad, groups, np.ones(len(values))), None, None, budget)
    n, first = len(found.thresholds), first_flagged(values, found.thresholds)
    costs = costs_along(rates_along(first, n, is_bad, np.ones(len(values))), STAKES)
    nothing = STAKES.base_rate * STAKES.cost_miss
    return int(np.count_nonzero(costs[: found.n] < nothing)), questions_for_budget(found, costs, nothing)
