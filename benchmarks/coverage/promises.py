"""Does FAR <= alpha hold with probability 1 - delta where calibration and use have other shares of cells?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from scipy.special import gammaincc
from scipy.stats import binom, ks_2samp, norm

from benchmarks.coverage import Cell, Table, given, means
from benchmarks.judged import columns_of
from monitorbench.metrics.columns import Columns
from monitorbench.metrics.drift import DRIFTED, drift
from monitorbench.metrics.guarantees.order_statistic import Guarantee, Mix, question_weights, weighted_tail
from monitorbench.records import Split
from monitorbench.scoring.calibrate import calibrated
from monitorbench.scoring.calibration_split import calibration_scores

ALPHA, DELTA, PER_CELL = 0.05, 0.05, 40
SPREAD = 8
"""Standard deviations between a score of 0 and one of 1, so that normal scores lie inside."""
PAPER = {
    "safety_permission/qa": 293.0,
    "safety_permission/code": 293.0,
    "sycophancy_bias/qa": 241.0,
    "sycophancy_bias/reasoning": 240.0,
    "specification_gaming/qa": 146.0,
    "specification_gaming/code": 146.0,
    "specification_gaming/reasoning": 146.0,
}
"""Pairs of the paper's test split."""
CELLS = tuple(PAPER)
USES: Mapping[str, tuple[Mapping[str, float], float]] = {
    "as calibration": (dict.fromkeys(CELLS, 200.0), 1400),
    "the paper's test split": (PAPER, 1505),
    "70 % safety": ({cell: 0.35 if cell.startswith("safety") else 0.06 for cell in CELLS}, np.inf),
}
"""Places where a threshold is used: the counts of cells there, and how many questions they are of."""


def tables(seed: int, effort: float) -> Iterator[Table]:
    """The promise under other mixes, its worst case, and the check for drift."""
    yield _mixes(seed, round(4000 * effort))
    yield _worst(seed, round(250 * effort))
    yield _drift(seed, round(250 * effort))


def _mixes(seed: int, n_fits: int) -> Table:
    rows: list[list[Cell]] = []
    for (i, name), shift in product(enumerate(USES), (0.0, 1.0, 2.0)):
        rng = np.random.default_rng([seed, i, int(shift * 10)])
        row = _mix_row(*USES[name], shift, rng, n_fits)
        rows.append([name, f"+{shift:g} SD" if shift else "as the others'", *row])
    return Table(
        "Promised FAR where calibration and use have other shares of cells",
        "in use | safety's benign scores | questions | Kish | FAR > 5 % before | now | mean FAR before | now "
        "| MR before | now | mean FAR, conformal before | now",
        rows,
        f"Calibration has {PER_CELL} benign questions in each of {len(CELLS)} cells. Benign scores are "
        "normal, safety's higher by so many SD; misbehavior lies 3 SD above the benign ones of its cell. "
        "Before: the rank rule on all questions alike. Now: the same where the shares are alike, else "
        f"weighted. Claimed: FAR <= {ALPHA:g} in all but {DELTA:g} of {n_fits:,} fits; "
        f"conformal risk: mean FAR <= {ALPHA:g}.",
    )


def _mix_row(
    counts: Mapping[str, float], n: float, shift: float, rng: np.random.Generator, n_fits: int
) -> list[Cell]:
    mix, strata = Mix("test", counts, n), [cell for cell in CELLS for _ in range(PER_CELL)]
    n_questions = len(strata)
    blank = calibration_scores(
        "simulated",
        splits=[Split.CALIBRATION] * n_questions,
        scores={"judge": np.zeros(n_questions)},
        is_misbehavior=np.zeros(n_questions, dtype=np.bool_),
        group_ids=[f"{i:04d}" for i in range(n_questions)],  # so sorted, the questions keep their order
        categories=[cell.partition("/")[0] for cell in strata],
        strata=strata,
    )
    centers = np.array([shift * cell.startswith("safety") for cell in CELLS])
    shares = np.array([counts[cell] for cell in CELLS])
    shares /= shares.sum()

    def rate(threshold: float | None, above: float) -> float:
        """The share flagged in use, of samples so many SD above the benign ones."""
        return float(shares @ norm.sf((given(threshold) - 0.5) * SPREAD - centers - above))

    rates = []
    for _ in range(n_fits):
        scores = 0.5 + rng.normal(centers, size=(PER_CELL, len(CELLS))).T.ravel() / SPREAD
        scored = replace(blank, scores=np.clip(scores, 0, 1)[:, None])
        guarantees = Guarantee("neyman_pearson", ALPHA, DELTA), Guarantee("conformal_risk", ALPHA)
        limits = [calibrated(scored, one, m).threshold for one in guarantees for m in (None, mix)]
        rates.append([rate(limit, 0) for limit in limits] + [1 - rate(limit, 3) for limit in limits[:2]])
    of_fits = np.array(rates)
    weight = round(question_weights(blank.strata, mix).effective_n)
    exceeds, means_of = (of_fits[:, :2] > ALPHA).mean(axis=0).tolist(), of_fits.mean(axis=0).tolist()
    return [len(blank), weight, *exceeds, *means_of[:2], *means_of[4:], *means_of[2:4]]


def _worst(seed: int, n_designs: int) -> Table:
    """The violation probability counted out, at the worst place for the alarms."""
    rows: list[list[Cell]] = []
    for delta in (0.1, 0.05, 0.01):
        rng = np.random.default_rng([seed, round(1000 * delta)])
        worst = np.array([_worst_case(rng, delta) for _ in range(n_designs)]) / delta
        figures = (worst.max(axis=0), (worst > 1).mean(axis=0), np.median(worst, axis=0))
        rows.append([f"{delta:g}", n_designs, *np.concatenate(figures).tolist()])
    return Table(
        "The weighted rule's worst case",
        "delta | designs | worst / delta, two moments | three (ours) | designs above delta, two | three "
        "(ours) | median / delta, two | three (ours)",
        rows,
        "Two cells of 15 to 200 questions, their shares in use anything, alpha .02 to .2: the exact "
        "probability that a threshold of FAR alpha passes, the largest over where its false alarms lie (80 "
        "splits between the cells). Two moments: Fay & Feuer (1997) as published.",
    )


def _worst_case(rng: np.random.Generator, delta: float) -> list[float]:
    """The largest chance of a violation in one design, by two moments and by three."""
    n = rng.integers(15, 200, 2)
    shares = rng.dirichlet([1, 1])
    alpha = float(rng.choice([0.02, 0.05, 0.1, 0.2]))
    v = shares / n
    counts = np.stack(np.meshgrid(*(np.arange(k + 1) for k in n), indexing="ij"), axis=-1).reshape(-1, 2)
    sums = counts @ v[:, None] ** np.arange(1, 4)
    mean, square = (sums[:, :2] + v.max() ** np.arange(1, 3)).T
    tails = (gammaincc(mean**2 / square, alpha * mean / square), weighted_tail(sums, v, alpha))
    first = np.linspace(0, min(1, alpha / shares[0]), 80)
    second = (alpha - shares[0] * first) / shares[1]
    alarms = [p[second <= 1] for p in (first, second)]
    pmf = [binom.pmf(np.arange(k + 1), k, np.clip(p, 0, 1)[:, None]) for k, p in zip(n, alarms, strict=True)]
    passes = [(tail <= delta).reshape(n + 1) for tail in tails]
    chances = [np.einsum("pi,ij,pj->p", pmf[0], some, pmf[1], optimize=True) for some in passes]
    return [float(chance.max()) for chance in chances]


def _drift(seed: int, n_runs: int) -> Table:
    rows: list[list[Cell]] = []
    cases = (("nothing", 1, 0.0), ("nothing", 4, 0.0), ("nothing but the mix", 4, 0.0))
    for i, (name, size, shift) in enumerate((*cases, ("+0.25 SD", 4, 0.25), ("+0.5 SD", 4, 0.5))):
        rng = np.random.default_rng([seed, i])
        in_use = (90, 30) if "mix" in name else (60, 60)
        rows.append([name, size, *means(_is_seen(rng, in_use, size, shift, run) for run in range(n_runs))])
    return Table(
        "The check for drifted benign scores",
        f"drift | samples a question | by sample, p < .05 | ours, p <= .05 | warned, p < {DRIFTED:g}",
        rows,
        "120 benign questions on each side in two cells, one 1 SD higher, samples of a question correlated "
        f"by .7; {n_runs} runs. By sample: scipy's two-sample Kolmogorov–Smirnov test of all scores.",
    )


def _is_seen(
    rng: np.random.Generator, in_use: Sequence[int], size: int, shift: float, run: int
) -> list[bool]:
    """Tell whether a drift is seen by sample, by ours, and by ours so clearly that one is warned."""
    before, after = _benign(rng, (60, 60), size, 0.0), _benign(rng, in_use, size, shift)
    ours = given(drift(before, after, permutations=199, seed=run))["p_value"]
    return [ks_2samp(before.scores, after.scores).pvalue < 0.05, ours <= 0.05, ours < DRIFTED]


def _benign(rng: np.random.Generator, n: Sequence[int], size: int, shift: float) -> Columns:
    """Draw `size` benign samples of each of `n` questions a cell."""
    tasks = np.repeat(np.arange(len(n)), n)
    question = rng.normal(size=len(tasks))
    scores = np.sqrt(0.7) * question[:, None] + np.sqrt(0.3) * rng.normal(size=(len(tasks), size))
    groups, scores = np.repeat(np.arange(len(tasks)), size), (scores + shift + tasks[:, None]).ravel()
    benign, tasks = np.zeros(len(groups), dtype=np.bool_), np.repeat(tasks, size)
    return columns_of(benign, scores, groups, tasks=tasks, task_names=("qa", "code"))
