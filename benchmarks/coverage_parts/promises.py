"""Does FAR <= alpha hold with probability 1 - delta where calibration and use have other shares of cells?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from scipy.special import gammaincc
from scipy.stats import binom, ks_2samp, norm

from coverage_parts.table import Table
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.columns import Columns
from monitorbench.metrics.drift import DRIFTED, drift
from monitorbench.records import Split
from monitorbench.scoring.calibration_split import CalibrationScores, calibration_scores
from monitorbench.scoring.mix import Mix, question_weights
from monitorbench.scoring.thresholds import conformal_risk, neyman_pearson, weighted_tail

ALPHA, DELTA = 0.05, 0.05
CELLS = (
    "safety_permission/qa",
    "safety_permission/code",
    "sycophancy_bias/qa",
    "sycophancy_bias/reasoning",
    "specification_gaming/qa",
    "specification_gaming/code",
    "specification_gaming/reasoning",
)
PER_CELL = 40
PAPER = dict(zip(CELLS, (293, 293, 241, 240, 146, 146, 146), strict=True))
"""Pairs of the paper's test split."""
SPREAD = 8
"""Standard deviations between a score of 0 and one of 1, so that normal scores lie inside."""


def tables(seed: int, effort: float) -> Iterator[Table]:
    """The promise under other mixes, its worst case, and the check for drift."""
    yield _mixes(seed, round(4000 * effort))
    yield _worst(seed, round(250 * effort))
    yield _drift(seed, round(250 * effort))


class _Use(NamedTuple):
    """Where a threshold is used."""

    name: str
    counts: Mapping[str, float]
    n: float


def _mixes(seed: int, n_fits: int) -> Table:
    uses = (
        _Use("as calibration", dict.fromkeys(CELLS, 200.0), 1400),
        _Use("the paper's test split", {cell: float(n) for cell, n in PAPER.items()}, 1505),
        _Use("70 % safety", {c: 0.35 if c.startswith("safety") else 0.06 for c in CELLS}, np.inf),
    )
    rows = [
        _mix_row(use, shift, np.random.default_rng([seed, i, int(shift * 10)]), n_fits)
        for i, use in enumerate(uses)
        for shift in (0.0, 1.0, 2.0)
    ]
    columns = (
        "in use",
        "safety's benign scores",
        "questions",
        "Kish",
        "FAR > 5 % before",
        "now",
        "mean FAR before",
        "now",
        "MR before",
        "now",
        "mean FAR, conformal before",
        "now",
    )
    note = (
        f"Calibration has {PER_CELL} benign questions in each of {len(CELLS)} cells. Benign scores are "
        "normal, safety's higher by so many SD; misbehavior lies 3 SD above the benign ones of its cell. "
        "Before: the rank rule on all questions alike. Now: the same where the shares are alike, else "
        f"weighted. Claimed: FAR <= {ALPHA:g} in all but {DELTA:g} of {n_fits:,} fits; "
        f"conformal risk: mean FAR <= {ALPHA:g}."
    )
    return Table("Promised FAR where calibration and use have other shares of cells", columns, rows, note)


def _mix_row(use: _Use, shift: float, rng: np.random.Generator, n_fits: int) -> list[str | int | float]:
    mix = Mix("test", use.counts, use.n)
    blank = _calibration()
    means = np.array([shift * cell.startswith("safety") for cell in CELLS])
    shares = np.array([use.counts[cell] for cell in CELLS])
    shares /= shares.sum()

    def rate(threshold: float | None, above: float) -> float:
        """The share flagged in use, of samples so many SD above the benign ones."""
        assert threshold is not None
        return float(shares @ norm.sf((threshold - 0.5) * SPREAD - means - above))

    found = []
    for _ in range(n_fits):
        scores = 0.5 + rng.normal(means, size=(PER_CELL, len(CELLS))).T.ravel() / SPREAD
        scored = replace(blank, scores=np.clip(scores, 0, 1)[:, None])
        limits = [
            neyman_pearson(scored, alpha=ALPHA, delta=DELTA).threshold,
            neyman_pearson(scored, alpha=ALPHA, delta=DELTA, mix=mix).threshold,
            conformal_risk(scored, alpha=ALPHA).threshold,
            conformal_risk(scored, alpha=ALPHA, mix=mix).threshold,
        ]
        found.append([rate(one, 0) for one in limits] + [1 - rate(one, 3) for one in limits[:2]])
    far_before, far, mean_before, mean, missed_before, missed = np.array(found).T
    return [
        use.name,
        "as the others'" if not shift else f"+{shift:g} SD",
        len(blank),
        round(question_weights(blank.strata, mix).effective_n),
        float((far_before > ALPHA).mean()),
        float((far > ALPHA).mean()),
        float(far_before.mean()),
        float(far.mean()),
        float(missed_before.mean()),
        float(missed.mean()),
        float(mean_before.mean()),
        float(mean.mean()),
    ]


def _calibration() -> CalibrationScores:
    strata = [cell for cell in CELLS for _ in range(PER_CELL)]
    n = len(strata)
    return calibration_scores(
        "simulated",
        splits=[Split.CALIBRATION] * n,
        scores={"judge": np.zeros(n)},
        is_misbehavior=np.zeros(n, dtype=np.bool_),
        group_ids=[f"{i:04d}" for i in range(n)],  # so sorted, the questions keep their order
        categories=[cell.partition("/")[0] for cell in strata],
        strata=strata,
    )


def _worst(seed: int, n_designs: int) -> Table:
    """The violation probability counted out, at the worst place for the alarms."""
    rows = []
    for delta in (0.1, 0.05, 0.01):
        rng = np.random.default_rng([seed, round(1000 * delta)])
        found = np.array([_worst_case(rng, delta) for _ in range(n_designs)]) / delta
        rows.append(
            [
                f"{delta:g}",
                n_designs,
                *found.max(axis=0),
                *(found > 1).mean(axis=0),
                *np.median(found, axis=0),
            ]
        )
    columns = (
        "delta",
        "designs",
        "worst / delta, two moments",
        "three (ours)",
        "designs above delta, two",
        "three (ours)",
        "median / delta, two",
        "three (ours)",
    )
    note = (
        "Two cells of 15 to 200 questions, their shares in use anything, alpha .02 to .2: the exact "
        "probability that a threshold of FAR alpha passes, the largest over where its false alarms lie (80 "
        "splits between the cells). Two moments: Fay & Feuer (1997) as published."
    )
    return Table("The weighted rule's worst case", columns, rows, note)


def _worst_case(rng: np.random.Generator, delta: float) -> tuple[float, float]:
    n = rng.integers(15, 200, 2)
    shares = rng.dirichlet([1, 1])
    alpha = float(rng.choice([0.02, 0.05, 0.1, 0.2]))
    v = shares / n
    counts = np.stack(np.meshgrid(*(np.arange(k + 1) for k in n), indexing="ij"), axis=-1).reshape(-1, 2)
    sums = counts @ v[:, None] ** np.arange(1, 4)
    of_both = [
        (tail <= delta).reshape(n + 1)
        for tail in (_two_moments(sums, v, alpha), weighted_tail(sums, v, alpha))
    ]
    first = np.linspace(0, min(1, alpha / shares[0]), 80)
    second = (alpha - shares[0] * first) / shares[1]
    inside = second <= 1
    pmf = [
        binom.pmf(np.arange(k + 1), k, np.clip(p[inside], 0, 1)[:, None])
        for k, p in zip(n, (first, second), strict=True)
    ]
    two, three = (
        float(np.einsum("pi,ij,pj->p", pmf[0], passes, pmf[1], optimize=True).max()) for passes in of_both
    )
    return two, three


def _two_moments(sums: FloatArray, v: FloatArray, alpha: float) -> FloatArray:
    first, second = (sums[:, :2] + v.max() ** np.arange(1, 3)).T
    tails: FloatArray = gammaincc(first**2 / second, alpha * first / second)
    return tails


def _drift(seed: int, n_runs: int) -> Table:
    rows = []
    for i, (name, size, shift) in enumerate(
        (
            ("nothing", 1, 0.0),
            ("nothing", 4, 0.0),
            ("nothing but the mix", 4, 0.0),
            ("+0.25 SD", 4, 0.25),
            ("+0.5 SD", 4, 0.5),
        )
    ):
        rng = np.random.default_rng([seed, i])
        in_use = (90, 30) if "mix" in name else (60, 60)
        flagged = np.zeros(3)
        for run in range(n_runs):
            before, after = _benign(rng, (60, 60), size, 0.0), _benign(rng, in_use, size, shift)
            naive = ks_2samp(before.scores, after.scores).pvalue
            found = drift(before, after, permutations=199, seed=run)
            assert found is not None
            flagged += [naive < 0.05, found["p_value"] <= 0.05, found["p_value"] < DRIFTED]
        rows.append([name, size, *(flagged / n_runs).tolist()])
    columns = (
        "drift",
        "samples a question",
        "by sample, p < .05",
        "ours, p <= .05",
        f"warned, p < {DRIFTED:g}",
    )
    note = (
        "120 benign questions on each side in two cells, one 1 SD higher, samples of a question correlated "
        f"by .7; {n_runs} runs. By sample: scipy's two-sample Kolmogorov–Smirnov test of all scores."
    )
    return Table("The check for drifted benign scores", columns, rows, note)


def _benign(rng: np.random.Generator, n: Sequence[int], size: int, shift: float) -> Columns:
    """Benign samples of so many questions a cell."""
    tasks = np.repeat(np.arange(len(n)), n)
    question = rng.normal(size=len(tasks))
    scores = np.sqrt(0.7) * question[:, None] + np.sqrt(0.3) * rng.normal(size=(len(tasks), size))
    total = len(tasks) * size
    none = np.zeros(total, dtype=np.int64)
    nothing = np.full(total, np.nan)
    return Columns(
        sample_ids=pa.array([f"{i}" for i in range(total)]),
        is_misbehavior=none.astype(np.bool_),
        flagged=nothing,
        scores=(scores + shift + tasks[:, None]).ravel(),
        groups=np.repeat(np.arange(len(tasks)), size),
        group_names=pa.array([f"{i}" for i in range(len(tasks))]),
        pairs=none - 1,
        categories=none,
        category_names=("safety_permission",),
        tasks=np.repeat(tasks, size),
        task_names=("qa", "code"),
        sources=none,
        source_names=("simulated",),
        strata=none,
        stratum_names=("",),
        has_thinking=none.astype(np.bool_),
        n_quotes=none,
        n_grounded=none,
    )
