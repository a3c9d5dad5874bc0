"""10,000 joint bootstrap draws of a pilot of 500 tasks × 3 seeds × 5 conditions, beside scipy and pandas.

    python benchmarks/pilot_statistics.py

All ways draw whole tasks and give the intervals of ΔSuccess, p − p*, p, r, d and p* of every condition.
scipy's bootstrap is given a vectorised statistic of all conditions at once; the loop over pandas makes 40
draws, and is scaled. Ours is timed twice: the draws and intervals alone, and all from the file to
decision.json. Prints a table and writes `runs/benchmarks/pilot_statistics/ratios.json`.
"""

import json
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from measure import ROOT
from scipy.stats import bootstrap

from monitorbench.config.pilot import PilotStatistics
from monitorbench.intervention.outcomes import BASELINE, Outcome, read_outcomes, write_outcomes
from monitorbench.intervention.statistics.analysis import analyse
from monitorbench.intervention.statistics.decision_file import write_decision
from monitorbench.intervention.statistics.effect import rates
from monitorbench.intervention.statistics.intervals import (
    bounds,
    effect_intervals,
    effect_tails,
    simultaneous_tails,
)
from monitorbench.intervention.statistics.matched import Table, matched
from monitorbench.intervention.statistics.resampling import draw_rates

WORK = ROOT / "runs" / "benchmarks" / "pilot_statistics"
TASKS, SEEDS, CONDITIONS, DRAWS = 500, 3, 5, 10_000
SECONDS = 2
PANDAS_DRAWS = 40
TIMES = 3
"""Each way is timed so often; the fastest counts."""


def main() -> None:
    """Measure and print."""
    path = WORK / "outcomes.jsonl"
    write_outcomes(path, outcomes())
    tables = [one.by_task() for one in matched(read_outcomes(path))]
    settings = PilotStatistics(draws=DRAWS)

    def whole() -> None:
        write_decision(WORK, analyse(read_outcomes(path), settings))

    ours, our_bounds = timed(lambda: vectorised(tables))
    theirs, scipy_bounds = timed(lambda: with_scipy(tables))
    loop, _ = timed(lambda: with_pandas(path), times=1)
    everything, _ = timed(whole)
    if not np.allclose(our_bounds, scipy_bounds, atol=0.01):
        raise SystemExit("benchmarks/pilot_statistics.py: the intervals differ from scipy's")
    rows = {
        "monitorbench: draws and intervals": ours,
        "monitorbench: from outcomes.jsonl to decision.json": everything,
        "scipy.stats.bootstrap, vectorised": theirs,
        "pandas, one draw after another (scaled)": loop * DRAWS / PANDAS_DRAWS,
    }
    for name, seconds in rows.items():
        print(f"{name:<60} {seconds:10.2f} s")
    ratios = {
        "scipy_seconds_over_ours": theirs / ours,
        "pandas_seconds_over_ours": rows["pandas, one draw after another (scaled)"] / ours,
        "seconds_over_the_limit": everything / SECONDS,
    }
    for name, ratio in ratios.items():
        print(f"{name:<60} {ratio:10.2f}")
    (WORK / "ratios.json").write_text(
        json.dumps({"draws": DRAWS, "ratios": ratios, "measured": rows}, indent=2) + "\n"
    )


def timed(way: Callable[[], object], times: int = TIMES) -> tuple[float, object]:
    """Seconds of the fastest of `times` runs, and what the last gave."""
    seconds, result = [], None
    for _ in range(times):
        began = time.perf_counter()
        result = way()
        seconds.append(time.perf_counter() - began)
    return min(seconds), result


def outcomes() -> list[Outcome]:
    """A pilot in which every condition helps or hurts a little."""
    rng = np.random.default_rng(0)
    found = []
    for task in range(TASKS):
        failing = rng.beta(4, 1)
        for seed in range(SEEDS):
            success = bool(rng.random() > failing)
            found.append(Outcome(f"task-{task}", seed, "agent", BASELINE, success, 0, 10, 900))
            for condition in range(CONDITIONS):
                changed = rng.random() < (0.3 if success else 0.05 + 0.02 * condition)
                found.append(
                    Outcome(f"task-{task}", seed, "agent", f"c{condition}", success != changed, 1, 11, 990)
                )
    return found


def vectorised(tables: list[Table]) -> np.ndarray:
    """Ours; without the added tasks, which nobody else has. Plain percentiles: [conditions, 6, 2]."""
    drawn = draw_rates(tables, draws=DRAWS, seed=0, prior_tasks=0)
    found = []
    for i in range(len(tables)):
        joint = effect_intervals(drawn, i, effect_tails(drawn, [i], 0.95))
        alone = [
            bounds(values[:, i], simultaneous_tails(values[:, [i]], 0.95, 0.0, 1.0), 0.0, 1.0)
            for values in (drawn.p, drawn.r, drawn.d, drawn.p_star)
        ]
        found.append([joint.delta_success, joint.p_minus_p_star, *alone])
    return np.array(found)


def with_scipy(tables: list[Table]) -> np.ndarray:
    """scipy's percentile bootstrap over the tasks' numbers, the same draws for all conditions."""
    rows = np.stack([one.cells for one in tables], axis=1)  # [tasks, conditions, 4]

    def statistic(tasks: np.ndarray, axis: int = -1) -> np.ndarray:
        found = rates(rows[tasks].sum(axis=axis - 2 if axis < 0 else axis))
        values = [found.delta_success, found.p_minus_p_star, found.p, found.r, found.d, found.p_star]
        return np.moveaxis(np.stack(values), -1, 0).reshape(-1, *np.shape(tasks)[:-1])

    found = bootstrap(
        (np.arange(TASKS),),
        statistic,
        n_resamples=DRAWS,
        batch=250,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    return np.stack(found, axis=-1).reshape(len(tables), 6, 2)


def with_pandas(path: object) -> np.ndarray:
    """As one writes it down: a data frame of pairs, joined with the drawn tasks, grouped and averaged."""
    frame = pd.read_json(path, lines=True)
    key = ["task", "seed"]
    pairs = frame[frame.condition != BASELINE].merge(
        frame[frame.condition == BASELINE][[*key, "success"]], on=key, suffixes=("", "_baseline")
    )
    names = pairs.task.unique()
    rng = np.random.default_rng(2)
    values = []
    for _ in range(PANDAS_DRAWS):
        drawn = pd.DataFrame({"task": rng.choice(names, len(names))}).merge(pairs, on="task")
        groups = drawn.groupby("condition")
        p = 1 - groups.success_baseline.mean()
        r = drawn[~drawn.success_baseline].groupby("condition").success.mean()
        d = 1 - drawn[drawn.success_baseline].groupby("condition").success.mean()
        delta = groups.success.mean() - groups.success_baseline.mean()
        values.append(np.stack([delta, p - d / (r + d), p, r, d, d / (r + d)]))
    return np.quantile(values, [0.025, 0.975], axis=0)


if __name__ == "__main__":
    main()
