"""Rates from a few labels of ten thousand scores: do their intervals hold, and how many labels are saved?

Two monitors share half of the variance of their scores, which are normal; the labels are drawn anew each time
by the ways of `metrics.labels_to_ask`, each with its probability.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from benchmarks.coverage import Cell, Table, holds, means
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.labelled import (
    Estimator,
    PartlyLabelled,
    differences_of,
    estimated,
    rates_of,
)
from monitorbench.metrics.labelled_scores import expected_costs, promised_threshold
from monitorbench.metrics.labels_to_ask import Design, LabelRound, draw, probabilities, risk, weights_of
from monitorbench.metrics.rates import Interval, wilson_interval

N = 10_000
MISS, ALARM = 100.0, 1.0
WAYS: tuple[tuple[Design, Estimator, int], ...] = (
    ("uniform", "ipw", 1),
    ("uniform", "ppi", 1),
    ("stratified", "ipw", 1),
    ("active", "ipw", 1),
    ("active", "ppi", 2),
    ("alerts", "ipw", 1),
)
"""How labels are chosen, the estimator, and in how many rounds."""


class Pool(NamedTuple):
    """Scores of two monitors."""

    is_bad: FloatArray
    scores: FloatArray
    """[monitors, samples]"""
    flagged: FloatArray


def tables(seed: int, effort: float) -> Iterator[Table]:
    """Coverage, what a design saves, thresholds with a promise, and the choice among eight monitors."""
    yield _coverage(np.random.default_rng([seed, 41]), max(10, round(125 * effort)))
    yield _savings(np.random.default_rng([seed, 42]), max(10, round(100 * effort)))
    yield _promises(np.random.default_rng([seed, 47]), max(10, round(100 * effort)))
    yield _choices(np.random.default_rng([seed, 48]), max(10, round(1000 * effort)))


def pool(rng: np.random.Generator, base_rate: float, aurocs: tuple[float, ...], far: float) -> Pool:
    """Draw scores of correlated monitors, each with a threshold at this FAR."""
    is_bad = (rng.random(N) < base_rate).astype(np.float64)
    own = rng.normal(size=(len(aurocs), N))
    drawn = np.sqrt(0.5) * (rng.normal(size=N) + own) + is_bad * _shift(np.array(aurocs))[:, None]
    return Pool(is_bad, norm.cdf(drawn), (drawn > norm.isf(far)).astype(np.float64))


def _shift(auroc: FloatArray) -> FloatArray:
    shift: FloatArray = np.sqrt(2) * norm.ppf(auroc)
    return shift


def labelled(of: Pool, n: int, design: Design, rounds: int, rng: np.random.Generator) -> PartlyLabelled:
    """Label `n` samples of a pool in some rounds, each decided from the labels before."""
    mean, labels, asked = of.scores.mean(axis=0), np.full(N, np.nan), list[LabelRound]()
    for _ in range(rounds):
        risks = risk(of.scores, labels)
        chances = probabilities(n // rounds, risks, of.flagged, np.isnan(labels), design)
        drawn = draw(chances, mean, rng)
        asked.append(LabelRound(drawn, chances[drawn]))
        labels[drawn] = of.is_bad[drawn]
    return PartlyLabelled(labels, weights_of(asked, N), mean, np.arange(N))


def _coverage(rng: np.random.Generator, n_runs: int) -> Table:
    rows: list[list[Cell]] = []
    for base, n, way in product((0.5, 0.05, 0.001), (100, 200, 500), WAYS):
        figures = means(_held(rng, base, n, *way) for _ in range(n_runs))
        rows.append([f"{base:g}", n, ", ".join(map(str, way)), *figures])
    return Table(
        "Rates from a few labels of 10,000",
        "base rate | labels | drawn, estimator, rounds | base rate | MR | FAR | precision | cost | "
        "difference of MR | of FAR | of cost | width of MR",
        rows,
        f"{n_runs:,} data sets a row, nominal .95; AUROC .9 and .8, correlation .5, FAR 5 %. Intervals of "
        "few labels are of Clopper and Pearson's kind, so they hold more often than promised. Where the base "
        "rate is .001, a hundred labels say nothing of MR, and the interval says so.",
    )


def _held(
    rng: np.random.Generator, base: float, n: int, design: Design, estimator: Estimator, rounds: int
) -> list[float]:
    """Whether each interval holds its truth, and how wide MR's is."""
    far = 0.05
    first, second = (float(norm.cdf(norm.isf(far) - _shift(np.array(auroc)))) for auroc in (0.9, 0.8))
    precision = base * (1 - first) / (base * (1 - first) + (1 - base) * far)
    cost = MISS * base * first + ALARM * (1 - base) * far
    truths = [base, first, far, precision, cost, second - first, 0.0, MISS * base * (second - first)]
    drawn = pool(rng, base, (0.9, 0.8), far)
    of = labelled(drawn, n, design, rounds, rng)
    alone = estimated(of, drawn.flagged[:1], rates_of(np.array([0.0, 1.0]), MISS, ALARM), estimator)
    between = estimated(of, drawn.flagged, differences_of(MISS, ALARM), estimator)
    intervals = [figure.interval for figure in [*alone.values(), *between.values()]]
    held = [holds([ends], truth, 1e-12)[0] for ends, truth in zip(intervals, truths, strict=True)]
    return [*held, intervals[1].high - intervals[1].low]


def _savings(rng: np.random.Generator, n_runs: int) -> Table:
    rows: list[list[Cell]] = []
    alone = rates_of(np.array([0.0, 1.0]), MISS, ALARM)

    def one(auroc: float, far: float, n: int, design: Design | None) -> list[float]:
        drawn = pool(rng, 0.01, (auroc, auroc - 0.05), far)
        of = labelled(drawn, n, design or "uniform", 1, rng)
        if design:
            rates = estimated(of, drawn.flagged[:1], alone)
            ends = [rates[name].interval for name in ("miss_rate", "false_alarm_rate")]
        else:
            is_bad, flags = of.labels == 1, drawn.flagged[0] == 1
            wrong = {1: is_bad & ~flags, 0: (of.labels == 0) & flags}
            ends = [
                wilson_interval(int(wrong[label].sum()), int((of.labels == label).sum())) or Interval(0, 1)
                for label in (1, 0)
            ]
        missed = float(norm.cdf(norm.isf(far) - _shift(np.array(auroc))))
        covered = [holds([end], truth)[0] for end, truth in zip(ends, (missed, far), strict=True)]
        return [ends[0].high - ends[0].low, covered[0], ends[1].high - ends[1].low, covered[1]]

    ways: tuple[tuple[int, Design | None], ...] = (
        (1_250, None),
        (1_250, "uniform"),
        (500, "uniform"),
        (500, "stratified"),
        (500, "active"),
    )
    for auroc, far in product((0.9, 0.95), (0.01, 0.05)):
        for n, design in ways:
            figures = means(one(auroc, far, n, design) for _ in range(n_runs))
            least = _least_share(auroc, far) if design == "active" else None
            rows.append(
                [f"{auroc:g}", f"{far:.0%}", n, design or "uniform, scores not used", *figures, least]
            )
    return Table(
        "Labels that a design saves, at a base rate of 1 %",
        "AUROC | FAR | labels | drawn | width of MR | holds | width of FAR | holds | least share for MR",
        rows,
        f"{n_runs:,} data sets a row, nominal .95; a second monitor with an AUROC .05 lower. 500 labels are "
        '40 % of 1,250. "Scores not used" is Wilson\'s interval among the labelled alone. *Least share for '
        "MR*: no choice of labels by this score does with fewer of those that uniform labels take for the "
        "same variance of MR, even where each score's risk is known (Neyman's optimum).",
    )


def _least_share(auroc: float, far: float, base: float = 0.01) -> float:
    """(Σ√v)²/(N·Σv) with v a score's share of the variance of MR: p(1 − p) by (1 − MR)² or MR²."""
    apart, limit = float(_shift(np.array(auroc))), float(norm.isf(far))
    x = np.linspace(-8, 8 + apart, 20_001)
    mass = (1 - base) * norm.pdf(x) + base * norm.pdf(x - apart)
    risks = base * norm.pdf(x - apart) / mass
    missed = float(norm.cdf(limit - apart))
    v = risks * (1 - risks) * np.where(x > limit, missed, 1 - missed) ** 2
    return float(np.average(np.sqrt(v), weights=mass) ** 2 / np.average(v, weights=mass))


def _promises(rng: np.random.Generator, n_runs: int) -> Table:
    rows: list[list[Cell]] = []
    designs: tuple[Design, ...] = ("uniform", "active", "alerts")
    for base, n, design in product((0.3, 0.01), (100, 500), designs):
        figures = []
        for _ in range(n_runs):
            drawn = pool(rng, base, (0.9,), 0.05)
            found = promised_threshold(labelled(drawn, n, design, 1, rng), drawn.scores[0], 0.05, 0.05)
            at = 1.0 if found.threshold is None else found.threshold
            far = float(norm.sf(norm.ppf(at)))
            figures.append([found.threshold is not None, far <= 0.05, far])
        rows.append([f"{base:g}", n, design, *means(figures)])
    return Table(
        "A threshold from a few labels",
        "base rate | labels | drawn | has a threshold | FAR <= .05 | mean FAR",
        rows,
        f"{n_runs:,} data sets of 10,000 a row, AUROC .9; promised: FAR <= .05 with probability .95.",
    )


EIGHT = (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
WORLDS = ("normal", "0 to 10", "two kinds", "heavy tails")


def choice(rng: np.random.Generator, world: str, n: int, design: Design, rounds: int) -> tuple[float, float]:
    """What the choice among eight monitors costs a sample beyond the best one, and misbehavior found."""
    apart = _shift(np.array(EIGHT))[:, None]
    is_bad = (rng.random(N) < 0.01).astype(np.float64)
    common, own = rng.normal(size=N), rng.normal(size=(8, N))
    if world == "heavy tails":
        common, own = 0.8 * rng.standard_t(3, size=N), 0.8 * rng.standard_t(3, size=(8, N))
    if world == "two kinds":  # half of the monitors see the one kind better, half the other
        apart = apart * np.where((np.arange(8) % 2 == 0)[:, None] == (rng.random(N) < 0.5), 1.4, 0.6)
    scores = expit(np.sqrt(0.5) * (common + own) + is_bad * apart - 1)
    if world == "0 to 10":
        scores = np.round(scores, 1)
    flagged = (scores > np.quantile(scores, 0.95, axis=1)[:, None]).astype(np.float64)
    of = labelled(Pool(is_bad, scores, flagged), n, design, rounds, rng)
    chosen = int(np.argmin(expected_costs(risk(scores, of.labels), flagged, (MISS, ALARM))))
    costs = (MISS * is_bad * (1 - flagged) + ALARM * (1 - is_bad) * flagged).mean(axis=1)
    return float(costs[chosen] - costs.min()), float(np.nansum(of.labels))


def _choices(rng: np.random.Generator, n_runs: int) -> Table:
    ways: tuple[tuple[int, Design, int], ...] = (
        (100, "alerts", 2),
        (100, "active", 2),
        (100, "uniform", 1),
        (500, "uniform", 1),
        (1_000, "uniform", 1),
        (2_000, "uniform", 1),
    )
    rows: list[list[Cell]] = []
    for world, (n, design, rounds) in product(WORLDS, ways):
        n_drawn = n_runs if (world, design) == ("normal", "alerts") else max(10, n_runs // 5)
        draws = [choice(rng, world, n, design, rounds) for _ in range(n_drawn)]
        near = float(np.mean([regret <= 0.01 for regret, _ in draws]))
        rows.append([world, n, f"{design}, {rounds}", n_drawn, near, *means(draws)])
    return Table(
        "The choice among eight monitors",
        "scores | labels | drawn, rounds | replays | within .01 of the best | mean regret | bad ones found",
        rows,
        "10,000 samples, 1 % misbehavior, AUROC .6 to .95 in steps of .05, correlation .5, the 5 % highest "
        "scores flagged; a miss costs 100, an alarm 1, so that flagging nothing costs 1 a sample. *0 to 10*: "
        "scores are rounded to tenths; *two kinds*: every other monitor sees half of the misbehavior better; "
        "*heavy tails*: Student's t of 3 degrees.",
    )
