"""An audit queue of some days: what it finds in an hour, and whether the miss rate is without bias.

Each day's traffic is new; the queue takes the highest alerts up to its budget, and a share blindly, each with
its probability. Beside it stand queues of alerts alone and of blind samples alone.
"""

from collections.abc import Iterator

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from benchmarks.coverage import Cell, Table, holds, means
from monitorbench.metrics.labelled import PartlyLabelled, estimated, rates_of
from monitorbench.metrics.labels_to_ask import draw, probabilities, risk

DAYS, A_DAY, AUROC, FAR = 10, 2_000, 0.9, 0.02
PER_HOUR = 30
RATES = rates_of(np.array([0.0, 1.0]), 100.0, 1.0)


def tables(seed: int, effort: float) -> Iterator[Table]:
    """MR, FAR and what is found, by budget and blind share."""
    rng, n_runs = np.random.default_rng([seed, 49]), max(20, round(150 * effort))
    rows: list[list[Cell]] = []
    for budget in (30, 100):
        for blind in (0.03, 0.2, 0.5, 1.0):
            figures = means(_queue(rng, budget, blind) for _ in range(n_runs))
            rows.append([budget, f"{blind:.0%}", *figures])
    missed = float(norm.cdf(norm.isf(FAR) - np.sqrt(2) * norm.ppf(AUROC)))
    yield Table(
        "An audit queue",
        "samples a day | blind | misbehavior found an hour | misses found an hour | mean MR | MR holds | "
        "width of MR | FAR holds | FAR of the queue, mean | holds",
        rows,
        f"{n_runs} runs a row of {DAYS} days with {A_DAY:,} samples, 1 % misbehavior, AUROC {AUROC:g}; "
        f"flagged at a FAR of {FAR:.0%}, which misses {missed:.3f}; {PER_HOUR} samples are read in an hour. "
        "*Blind* is the share of the budget that is drawn blindly; 100 % is no queue at all.",
    )


def _queue(rng: np.random.Generator, budget: int, blind: float) -> list[float]:
    """Misbehavior and misses found an hour, MR and whether its interval holds, FAR, the queue's own FAR."""
    n, apart = DAYS * A_DAY, float(np.sqrt(2) * norm.ppf(AUROC))
    is_bad = (rng.random(n) < 0.01).astype(np.float64)
    scores = rng.normal(size=n) + is_bad * apart
    flagged, limit = (scores > norm.isf(FAR)).astype(np.float64), norm.isf(FAR)
    labels, weights, queued = np.full(n, np.nan), np.zeros(n), np.zeros(n)
    for day in range(DAYS):
        free = np.arange(n) // A_DAY == day
        risks = risk(expit(scores)[None], labels)
        chances = probabilities(budget, risks, flagged[None], free, "alerts", blind_share=blind)
        rows = draw(chances, scores, rng)
        labels[rows], weights[rows] = is_bad[rows], 1 / chances[rows]
        queued[rows] = (chances[rows] == 1) * flagged[rows]
    of = PartlyLabelled(labels, weights, scores, np.arange(n))
    rates, own = (estimated(of, alarms[None], RATES) for alarms in (flagged, queued))
    hours = DAYS * budget / PER_HOUR
    far, truth = own["false_alarm_rate"], float(queued[is_bad == 0].mean())
    miss, alarm = rates["miss_rate"], rates["false_alarm_rate"]
    missed = float(norm.cdf(limit - apart))
    return [
        float(np.nansum(labels)) / hours,
        float(np.nansum(labels * (1 - flagged))) / hours,
        missed if miss.value is None else miss.value,
        *holds([miss.interval], missed),
        miss.interval.high - miss.interval.low,
        *holds([alarm.interval], FAR),
        far.value or 0.0,
        *holds([far.interval], truth),
    ]
