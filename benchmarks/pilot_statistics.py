"""10,000 joint bootstrap draws of a pilot of 500 tasks × 3 seeds × 5 conditions, beside scipy and pandas.

All ways draw whole tasks and give the intervals of ΔSuccess, p − p*, p, r, d and p* of every condition.
scipy's bootstrap is given a vectorised statistic of all conditions at once; the loop over pandas makes 40
draws, and is scaled. Ours is timed twice: the draws and intervals alone, and all from the file to
decision.json.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import bootstrap

from benchmarks.measuring import Ratio, Result, timed
from monitorbench.config.pilot import PilotStatistics
from monitorbench.intervention.outcomes import BASELINE, Outcome, read_outcomes, write_outcomes
from monitorbench.intervention.statistics import intervals
from monitorbench.intervention.statistics.analysis import analyse
from monitorbench.intervention.statistics.decision_file import write_decision
from monitorbench.intervention.statistics.effect import TaskTable, matched, rates
from monitorbench.intervention.statistics.intervals import draw_rates
from monitorbench.metrics.bootstrap import FloatArray

SEEDS, CONDITIONS, PANDAS_DRAWS = 3, 5, 40
SECONDS, TIMES = 2, 3
"""Seconds that the whole way may take; each way is timed so often, and the fastest counts."""


def main(work: Path, *, tasks: int, draws: int) -> Result:
    """Time all ways on one file of outcomes, and compare their intervals."""
    path = work / "outcomes.jsonl"
    write_outcomes(path, _outcomes(tasks))
    tables = [table.by_task() for table in matched(read_outcomes(path))]
    settings = PilotStatistics(draws=draws)
    ours, our_bounds = timed(lambda: _vectorised(tables, draws), TIMES)
    scipy, scipy_bounds = timed(lambda: _with_scipy(tables, draws), TIMES)
    pandas = timed(lambda: _with_pandas(path))[0] * draws / PANDAS_DRAWS
    whole, _ = timed(lambda: write_decision(work, analyse(read_outcomes(path), settings)), TIMES)
    near = 0.01 * (500 / tasks * 10_000 / draws) ** 0.5  # as far as draws of so few may be apart
    if not np.allclose(our_bounds, scipy_bounds, atol=near):
        raise SystemExit("pilot_statistics: the intervals differ from scipy's")
    rows = {
        "monitorbench: draws and intervals": ours,
        "monitorbench: from outcomes.jsonl to decision.json": whole,
        "scipy.stats.bootstrap, vectorised": scipy,
        "pandas, one draw after another (scaled)": pandas,
    }
    ratios = {
        "scipy_seconds_over_ours": Ratio(scipy / ours),
        "pandas_seconds_over_ours": Ratio(pandas / ours),
        "seconds_over_the_limit": Ratio(whole / SECONDS, most=1),
    }
    return Result({name: {"seconds": seconds} for name, seconds in rows.items()}, ratios, {"draws": draws})


def _outcomes(tasks: int) -> list[Outcome]:
    """Draw a pilot in which every condition helps or hurts a little."""
    rng = np.random.default_rng(0)
    outcomes = []
    for task in range(tasks):
        failing = rng.beta(4, 1)
        for seed in range(SEEDS):
            name, success = f"task-{task}", bool(rng.random() > failing)
            outcomes.append(Outcome(name, seed, "agent", BASELINE, success, 0, 10, 900))
            for number in range(CONDITIONS):
                changed = rng.random() < (0.3 if success else 0.05 + 0.02 * number)
                outcomes.append(Outcome(name, seed, "agent", f"c{number}", success != changed, 1, 11, 990))
    return outcomes


def _vectorised(tables: list[TaskTable], draws: int) -> FloatArray:
    """Ours without the added tasks, which nobody else has. Plain percentiles: [conditions, 6, 2]."""
    drawn = draw_rates(tables, draws=draws, seed=0, prior_tasks=0)
    conditions = []
    for i in range(len(tables)):
        joint = intervals.effect_intervals(drawn, i, intervals.effect_tails(drawn, [i], 0.95))
        rates_of = [(rate[:, i], rate[:, [i]]) for rate in (drawn.p, drawn.r, drawn.d, drawn.p_star)]
        alone = [
            intervals.bounds(rate, intervals.simultaneous_tails(column, 0.95, 0.0, 1.0), 0.0, 1.0)
            for rate, column in rates_of
        ]
        conditions.append([joint.delta_success, joint.p_minus_p_star, *alone])
    return np.array(conditions)


def _with_scipy(tables: list[TaskTable], draws: int) -> FloatArray:
    """scipy's percentile bootstrap over the tasks' numbers, the same draws for all conditions."""
    rows = np.stack([table.cells for table in tables], axis=1)  # [tasks, conditions, 4]

    def statistic(tasks: FloatArray, axis: int = -1) -> FloatArray:
        r = rates(rows[tasks].sum(axis=axis - 2 if axis < 0 else axis))
        values = np.stack([r.delta_success, r.p_minus_p_star, r.p, r.r, r.d, r.p_star])
        return np.moveaxis(values, -1, 0).reshape(-1, *np.shape(tasks)[:-1])

    rng, tasks = np.random.default_rng(1), (np.arange(len(rows)),)
    drawn = bootstrap(tasks, statistic, n_resamples=draws, batch=250, method="percentile", rng=rng)
    return np.stack(drawn.confidence_interval, axis=-1).reshape(len(tables), 6, 2)


def _with_pandas(path: Path) -> FloatArray:
    """Bootstrap as one writes it down: a data frame of pairs, joined with drawn tasks, grouped, averaged."""
    frame = pd.read_json(path, lines=True)
    key, is_baseline = ["task", "seed"], frame.condition == BASELINE
    baseline = frame[is_baseline][[*key, "success"]]
    pairs = frame[~is_baseline].merge(baseline, on=key, suffixes=("", "_baseline"))
    names, rng, values = pairs.task.unique(), np.random.default_rng(2), []
    for _ in range(PANDAS_DRAWS):
        drawn = pd.DataFrame({"task": rng.choice(names, len(names))}).merge(pairs, on="task")
        groups = drawn.groupby("condition")
        p = 1 - groups.success_baseline.mean()
        r = drawn[~drawn.success_baseline].groupby("condition").success.mean()
        d = 1 - drawn[drawn.success_baseline].groupby("condition").success.mean()
        delta = groups.success.mean() - groups.success_baseline.mean()
        values.append(np.stack([delta, p - d / (r + d), p, r, d, d / (r + d)]))
    quantiles: FloatArray = np.quantile(values, [0.025, 0.975], axis=0)
    return quantiles
