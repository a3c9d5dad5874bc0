"""Rates from labels of which some are wrong: plain intervals against those that are corrected or bounded.

Scores are normal and samples independent; labels are flipped by chance, whatever the score. In the last rows
they are flipped twice as often where the score is above the median, which the correction takes for the same.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np
from scipy.stats import norm

from benchmarks.coverage import Cell, Table, holds, means
from monitorbench.metrics.labelled import LabelErrors, PartlyLabelled, estimated, rates_of
from monitorbench.metrics.labelled_scores import auroc_estimate, errors_from_readings
from monitorbench.metrics.rates import Interval

AUROC, FAR = 0.9, 0.05
KNOWN = [LabelErrors(0.06, 0.06)]
BOUNDED = [*KNOWN, *(LabelErrors(*errors) for errors in product((0.03, 0.09), repeat=2))]
RATES = {
    name: rate
    for name, rate in rates_of(np.array([0.0, 1.0]), 100.0, 1.0).items()
    if name in ("miss_rate", "false_alarm_rate")
}
NAMES = ("plain", "known", "bounded", "estimated")


def tables(seed: int, effort: float) -> Iterator[Table]:
    """Coverage of MR, FAR and AUROC by what is known of the labels' errors."""
    rng, n_runs = np.random.default_rng([seed, 46]), max(20, round(200 * effort))
    rows: list[list[Cell]] = []
    for base, n, by_score in product((0.3, 0.03), (500, 5_000), (False, True)):
        figures = means(_held(rng, base, n, by_score=by_score) for _ in range(n_runs))
        rows.append([f"{base:g}", n, "by score" if by_score else "by chance", *figures])
    columns = " | ".join(
        f"{metric}: {' | '.join(NAMES)} | width, {' | width, '.join(NAMES[1:])}"
        for metric in ("MR", "FAR", "AUROC")
    )
    yield Table(
        "Rates from labels of which 6 % are wrong",
        f"base rate | labels | flipped | {columns}",
        rows,
        f"{n_runs:,} data sets a row, nominal .95; AUROC {AUROC:g}, FAR 5 %, all of them labelled. Plain "
        "takes the labels for right. Known: 6 % of either label; bounded: 3 to 9 % of either; estimated: "
        "from two readings of every fifth sample, a third one deciding.",
    )


def _held(rng: np.random.Generator, base: float, n: int, *, by_score: bool) -> list[float]:
    """Whether intervals of MR, FAR and AUROC hold the truth, plain and corrected, and their widths."""
    apart = np.sqrt(2) * norm.ppf(AUROC)
    is_bad = rng.random(n) < base
    scores = rng.normal(size=n) + is_bad * apart
    often = np.where(scores > np.median(scores), 0.08, 0.04) if by_score else 0.06
    wrong = rng.random((2, n)) < often
    told = (is_bad != wrong[0]).astype(np.float64)
    of = PartlyLabelled(told, np.ones(n), scores, np.arange(n))
    flagged = (scores > norm.isf(FAR)).astype(np.float64)[None]
    twice = np.arange(n) % 5 == 0
    settled, differ = np.where(wrong.all(axis=0), ~is_bad, is_bad), twice & (wrong[0] != wrong[1])
    read, apart_by = (
        tuple(int((rows & (settled == label)).sum()) for label in (True, False)) for rows in (twice, differ)
    )
    estimated_errors = errors_from_readings((read[0], read[1]), (apart_by[0], apart_by[1]), 0)
    figures: list[list[Interval]] = []
    for name, errors in zip(NAMES, ([LabelErrors(0, 0)], KNOWN, BOUNDED, estimated_errors), strict=True):
        confidence = 0.975 if name == "estimated" else 0.95
        rates = estimated(of, flagged, RATES, errors=errors, confidence=confidence)
        figures.append([rate.interval for rate in rates.values()])
        figures[-1].append(auroc_estimate(of, scores, errors, confidence).interval)
    truths = float(norm.cdf(norm.isf(FAR) - apart)), FAR, AUROC
    each: list[float] = []
    for ends, truth in zip(zip(*figures, strict=True), truths, strict=True):
        each += [*holds(ends, truth), *(end.high - end.low for end in ends[1:])]
    return each
