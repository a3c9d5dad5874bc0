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

AUROC, FAR = 0.9, 0.05
KNOWN = (LabelErrors(0.06, 0.06),)
BOUNDED = tuple(LabelErrors(*errors) for errors in product((0.03, 0.09), repeat=2))


def tables(seed: int, effort: float) -> Iterator[Table]:
    """Coverage of MR and FAR by what is known of the labels' errors."""
    rng, n_runs = np.random.default_rng([seed, 46]), max(20, round(1000 * effort))
    rows: list[list[Cell]] = []
    for base, n, by_score in product((0.3, 0.03), (500, 5_000), (False, True)):
        figures = means(_held(rng, base, n, by_score=by_score) for _ in range(n_runs))
        rows.append([f"{base:g}", n, "by score" if by_score else "by chance", *figures])
    yield Table(
        "Rates from labels of which 6 % are wrong",
        "base rate | labels | flipped | MR: plain | known | bounded | width, known | width, bounded | "
        "FAR: plain | known | bounded | width, known | width, bounded",
        rows,
        f"{n_runs:,} data sets a row, nominal .95; AUROC {AUROC:g}, FAR 5 %, all of them labelled. Known: "
        "6 % of either label; bounded: 3 to 9 % of either. Plain takes the labels for right.",
    )


def _held(rng: np.random.Generator, base: float, n: int, *, by_score: bool) -> list[float]:
    """Whether intervals of MR and FAR hold the truth, plain, corrected and bounded, and their widths."""
    apart = np.sqrt(2) * norm.ppf(AUROC)
    is_bad = rng.random(n) < base
    scores = rng.normal(size=n) + is_bad * apart
    often = np.where(scores > np.median(scores), 0.08, 0.04) if by_score else 0.06
    told = np.where(rng.random(n) < often, ~is_bad, is_bad).astype(np.float64)
    of = PartlyLabelled(told, np.ones(n), scores, np.arange(n))
    flagged = (scores > norm.isf(FAR)).astype(np.float64)[None]
    rates = rates_of(np.array([0.0, 1.0]), 100.0, 1.0)
    each = [estimated(of, flagged, rates, errors=errors) for errors in ((LabelErrors(0, 0),), KNOWN, BOUNDED)]
    figures: list[float] = []
    for rate, truth in (("miss_rate", float(norm.cdf(norm.isf(FAR) - apart))), ("false_alarm_rate", FAR)):
        ends = [estimates[rate].interval for estimates in each]
        figures += [*holds(ends, truth), *(end.high - end.low for end in ends[1:])]
    return figures
