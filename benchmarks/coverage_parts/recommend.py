"""Does `recommend` find the best of some monitors, and does it say so only where the data can?

Worlds with a known truth: benign scores are normal, misbehavior lies so many SD above them, and both samples
of a question share a part of their noise. So each monitor's true rates at any threshold are known, and with
them the expected cost of any choice, its regret, and who is best.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from scipy.stats import norm

from coverage_parts.table import Table
from monitorbench.config.evaluation import Calibrate, Stakes
from monitorbench.config.recommend import Recommend
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.columns import Columns
from monitorbench.metrics.cost import expected_cost
from monitorbench.records import Split
from monitorbench.scoring.calibration_split import calibration_scores
from monitorbench.scoring.numbers import Drawn
from monitorbench.scoring.recommendation.contenders import Contender, contender
from monitorbench.scoring.recommendation.decide import DeploymentDecision, answer
from monitorbench.scoring.recommendation.deployment import Deployment, budget_of
from monitorbench.scoring.recommendation.promised import Promise, promise_of

SHARED = 0.5
"""The correlation of the noise of a question's two samples."""
SPREAD = 10
"""Standard deviations between a score of 0 and one of 1."""
STAKES = Stakes(base_rate=0.01, cost_miss=100.0, cost_alarm=1.0)
CALIBRATE = Calibrate(method="neyman_pearson", alpha=0.05, delta=0.05, per_category=False, mix="drawn")
_DRAWN = Drawn(resamples=500, seed=0)


class World(NamedTuple):
    """Monitors by how many SD misbehavior lies above benign, and how much data there is."""

    name: str
    monitors: tuple[float, ...]
    shortcut: float
    n_calibration: int
    """Questions, each with a sample of both labels."""
    n_test: int
    settings: Recommend = Recommend(redraws=200)


WORLDS = (
    World("one is best by far", (2.6, 2.0, 1.6), 0.8, 200, 300),
    World("one is a little better", (2.2, 2.0, 1.8), 0.8, 200, 300),
    World("all alike", (2.2, 2.2, 2.2), 0.8, 200, 300),
    World("the best, at most 30 alerts in 1,000", (2.6, 2.0, 1.6), 0.8, 400, 300,
          Recommend(redraws=200, samples_per_day=1000.0, alerts_per_day=30.0, base_rates=(0.001, 0.02))),
    World("a shortcut is as good", (2.0, 1.5, 1.5), 2.0, 200, 300),
    World("a shortcut is nearly as good", (2.0, 1.5, 1.5), 1.8, 200, 300),
    World("chance", (0.0, 0.0, 0.0), 0.0, 200, 300),
    World("40 benign questions for 5 %", (2.6, 2.0, 1.6), 0.8, 40, 300),
    World("12 test questions", (2.0, 1.6, 1.2), 0.8, 200, 12),
)  # fmt: skip


class Seen(NamedTuple):
    """One world drawn, and the answer."""

    found: DeploymentDecision
    regret: float
    """The true expected cost of the choice less that of the best of them, at the thresholds they got."""
    contenders: Sequence[Contender]


def tables(seed: int, effort: float) -> Iterator[Table]:
    """What was recommended, and the regret of it, beside what is true."""
    n = round(100 * effort)
    rows = []
    for k, world in enumerate(WORLDS):
        seen = [simulated(world, np.random.default_rng([seed, k, i])) for i in range(n)]
        kinds = [one.found.kind for one in seen]
        best = sum(one.found.kind == "recommend" and one.found.best == 0 for one in seen)
        printed = [one.found.regret["mean"] for one in seen if one.found.regret["mean"] is not None]
        more = [one.found.more["n"] for one in seen if one.found.more is not None]
        rows.append(
            [
                world.name,
                f"{world.n_calibration} / {world.n_test}",
                kinds.count("recommend"),
                best,
                kinds.count("insufficient"),
                f"{np.median(more):.0f}" if more else None,
                kinds.count("none"),
                f"{np.mean([one.regret for one in seen]):.4f}" if printed else None,
                f"{np.mean(printed):.4f}" if printed else None,
            ]
        )
    columns = (
        "world",
        "questions, calibration / test",
        "recommends",
        "the best",
        "insufficient",
        "more (median)",
        "none",
        "true regret",
        "printed",
    )
    note = (
        f"{n} worlds a row, three monitors and one shortcut check each; misbehavior lies 0 to 2.6 SD above "
        f"benign, noise of a question's samples correlates by {SHARED:g}. FAR <= 5 % promised with 95 % "
        "confidence; a base rate of 1 %, a miss costs 100, a false alarm 1. True regret: the cost of "
        "the monitor that is cheapest on the calibration split less that of the truly cheapest, each at its "
        "threshold; printed: the mean of 200 redraws. Where a shortcut is as good, a recommendation is wrong."
    )
    yield Table("What is recommended in worlds whose best monitor is known", columns, rows, note)


def simulated(world: World, rng: np.random.Generator) -> Seen:
    """Draw both splits, decide, and compare with the truth."""
    held, tested = _samples(world.n_calibration), _samples(world.n_test)
    deployment = Deployment(STAKES, world.settings, CALIBRATE.delta)
    promise = _promise(held)
    contenders = [
        contender(
            f"m{i}" if i < len(world.monitors) else "shortcut",
            "direct",
            _scored(held, above, rng),
            _scored(tested, above, rng),
            promise=promise,
            budget=budget_of(deployment, None),
            unscored="wrong",
        )
        for i, above in enumerate((*world.monitors, world.shortcut))
    ]
    monitors, shortcuts = contenders[:-1], contenders[-1:]
    found = answer(monitors, shortcuts, [promise] * len(monitors), deployment, _DRAWN)
    costs = [
        _true_cost(one, at, above)
        for one, at, above in zip(monitors, found.choice.at, world.monitors, strict=True)
    ]
    regret = 0.0 if found.best is None else costs[found.best] - min(costs)
    return Seen(found, regret, monitors)


def _true_cost(one: Contender, at: int | None, above: float) -> float:
    if at is None:
        return float("inf")
    limit = (float(one.allowed.thresholds[at]) - 0.5) * SPREAD
    found = expected_cost(float(norm.cdf(limit - above)), float(norm.sf(limit)), STAKES)
    assert found is not None
    return found


def _scored(samples: Columns, above: float, rng: np.random.Generator) -> Columns:
    """Scores of pairs: the first of two samples is the benign one."""
    n = len(samples) // 2
    shared = np.repeat(rng.normal(size=n), 2)
    noise = np.sqrt(SHARED) * shared + np.sqrt(1 - SHARED) * rng.normal(size=2 * n)
    scores: FloatArray = np.clip(0.5 + (noise + above * samples.is_misbehavior) / SPREAD, 0, 1)
    return samples.answering((scores > 0.5).astype(np.float64), scores)


def _promise(held: Columns) -> Promise:
    scored = calibration_scores(
        "simulated",
        splits=[Split.CALIBRATION] * len(held),
        scores={"m": np.zeros(len(held))},
        is_misbehavior=held.is_misbehavior,
        group_ids=held.group_ids().to_pylist(),
        categories=["c"] * len(held),
    )
    return promise_of(CALIBRATE, None, scored, held)


def _samples(n: int) -> Columns:
    """`n` questions of one cell with a sample of each label."""
    zeros = np.zeros(2 * n, dtype=np.int64)
    groups = np.repeat(np.arange(n), 2)
    return Columns(
        sample_ids=pa.array([f"{i:07d}" for i in range(2 * n)], pa.string()),
        is_misbehavior=np.tile([False, True], n),
        flagged=np.zeros(2 * n),
        scores=np.zeros(2 * n),
        groups=groups,
        group_names=pa.array([f"q{i:07d}" for i in range(n)], pa.string()),
        pairs=groups,
        categories=zeros,
        category_names=("c",),
        tasks=zeros,
        task_names=("t",),
        sources=zeros,
        source_names=("",),
        strata=zeros,
        stratum_names=("",),
        has_thinking=zeros.astype(np.bool_),
        n_quotes=zeros,
        n_grounded=zeros,
    )
