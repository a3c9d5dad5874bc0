"""Words of the transfer matrix: errors over seeds, what a cell would have shown, and claims of equality."""

from collections.abc import Iterator
from itertools import product

import numpy as np
from scipy.special import ndtr
from scipy.stats import norm
from scipy.stats import t as student

from benchmarks.coverage import Cell, Table, given, holds, means
from monitorbench.config.evaluation import Assumed
from monitorbench.metrics.auroc import independent_variance
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.low_far_difference import paired_low_far_difference, paired_low_far_draws
from monitorbench.metrics.replicates import estimate
from monitorbench.metrics.sensitivity import detectable_fall, equivalence_p
from monitorbench.metrics.significance import holm
from monitorbench.studies.power import planned_fall

AUROC, QUESTIONS, CELLS, SHARED = 0.84, 73, 10, 0.6
"""The simulated base's AUROC; pairs in a cell; cells of a matrix; correlation of base and tuned scores."""


def tables(seed: int, effort: float) -> Iterator[Table]:
    """Six tables, four of them from one generator of draws."""
    rng = np.random.default_rng([seed, 1])
    yield _over_seeds(rng, round(4000 * effort))
    yield _detectable(rng, round(4000 * effort))
    yield _equality(rng, round(4000 * effort))
    yield _low_far_p(rng, round(1500 * effort))
    yield _low_far_interval(np.random.default_rng([seed, 7]), round(500 * effort))
    yield _planned(np.random.default_rng([seed, 6]), round(1000 * effort))


def _scores(rng: np.random.Generator, n: int, aurocs: FloatArray, questions: int) -> FloatArray:
    """Scores [n, monitors, questions, 2] in pairs, the benign one's first; `aurocs` [n, monitors].

    Binormal with equal variances; of a question the monitors share `SHARED` of the variance.
    """
    common = rng.normal(size=(n, 1, questions, 2))
    own = rng.normal(size=(n, aurocs.shape[1], questions, 2))
    scores: FloatArray = np.sqrt(SHARED) * common + np.sqrt(1 - SHARED) * own
    scores[..., 1] += np.sqrt(2) * norm.ppf(np.clip(aurocs, 0.01, 0.99))[..., None]
    return scores


def _changes(
    rng: np.random.Generator, n: int, aurocs: FloatArray, questions: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The base's AUROC [n], each tuned one's difference from it [n, monitors] and the questions' influences.

    The scores are continuous and in pairs; influences are [n, monitors, questions].
    """
    scores = _scores(rng, n, aurocs, questions)
    rank = scores.reshape(*scores.shape[:-2], -1).argsort(axis=-1).argsort(axis=-1) + 1
    rank = rank.reshape(scores.shape)
    within = [scores[..., i].argsort(axis=-1).argsort(axis=-1) + 1 for i in (0, 1)]
    of_bad = (rank[..., 1] - within[1]) / questions
    of_good = 1 - (rank[..., 0] - within[0]) / questions
    theta = of_bad.mean(axis=-1)
    influence = (of_bad + of_good - 2 * theta[..., None]) / questions
    return theta[:, 0], theta[:, 1:] - theta[:, :1], influence[:, 1:] - influence[:, :1]


def _variance(influence: FloatArray) -> FloatArray:
    """Variance of the sum of influences [..., questions]; Obuchowski's, in pairs."""
    n = influence.shape[-1]
    variance: FloatArray = n / (n - 1) * (influence**2).sum(axis=-1)
    return variance


def _over_seeds(rng: np.random.Generator, n: int) -> Table:
    """Type I and power of "training on X does Y", by seeds and their spread."""
    rows: list[list[Cell]] = []
    for sd, n_seeds in product((0.0, 0.02, 0.04), (2, 3, 5)):
        shares = []
        for effect in (0.0, 0.05, 0.1):
            truth = np.clip(rng.normal(AUROC + effect, sd, (n, n_seeds)), 0.5, 0.99)
            aurocs = np.column_stack([np.full(n, AUROC), truth])
            _, difference, change = _changes(rng, n, aurocs, QUESTIONS)
            each, of_mean = _variance(change), _variance(change.mean(axis=1))
            alone = 2 * ndtr(-np.abs(difference) / np.sqrt(each))
            rows_of = zip(difference, each, of_mean, strict=True)
            now = np.array([estimate(d, v, m, QUESTIONS).p_value for d, v, m in rows_of])
            ways = (alone[:, 0], alone.min(axis=1) * n_seeds, now)
            shares.append([float((p < 0.05).mean()) for p in ways])
        rows.append([f"{sd:.2f}", n_seeds, *shares[0], shares[1][-1], shares[2][-1]])
    return Table(
        "A training over its seeds",
        "SD of seeds (AUROC) | seeds | no effect: one seed p < .05 (before) | no effect: any seed after Holm "
        "(before) | no effect: over seeds p < .05 (now) | effect .05 found (now) | effect .10 found (now)",
        rows,
        f"{n:,} simulated trainings each, {QUESTIONS} pairs, base AUROC {AUROC}, one test. Before, each seed "
        "was tested by itself, over questions alone; now seeds and questions are both random.",
    )


def _detectable(rng: np.random.Generator, n: int) -> Table:
    """Whether a difference of the size that is said to be seen in 80 % is."""
    rows: list[list[Cell]] = []
    for questions, n_tests in ((30, 4), (73, 4), (73, 60), (200, 4), (200, 60)):
        truth = np.full((n, 2), AUROC)
        bases, _, change = _changes(rng, n, truth, questions)
        promised = [
            detectable_fall(base, error, questions - 1, questions, n_tests, level=0.05)
            for base, error in zip(bases, np.sqrt(_variance(change[:, 0])), strict=True)
        ]
        least = float(np.median([fall for fall in promised if fall is not None]))
        truth[:, 1] -= least
        _, difference, change = _changes(rng, n, truth, questions)
        t = np.abs(difference[:, 0]) / np.sqrt(_variance(change[:, 0]))
        is_found = 2 * student.sf(t, questions - 1) < 0.05 / n_tests
        rows.append([questions, n_tests, f"{least:.3f}", float(is_found.mean())])
    return Table(
        "What a cell without a difference would have shown",
        "pairs | tests of the matrix | said to be found in 80 % (median) | found where the truth is that",
        rows,
        f"{n:,} cells each, base AUROC {AUROC}; the tuned monitor's is lower by the difference that cells "
        "without any named. Found: p below .05 over the number of tests, which Holm's smallest has to keep.",
    )


def _low_far_interval(rng: np.random.Generator, n: int) -> Table:
    """Coverage of the interval of a difference in MR at FAR 5 %, by how few are missed."""
    rows: list[list[Cell]] = []
    for n_bad, aurocs in product((20, 100), ((0.84, 0.84), (0.84, 0.95), (0.998, 0.9998), (0.9998, 0.995))):
        flags = np.repeat([False, True], [200, n_bad])
        groups, shift = np.arange(len(flags)), np.sqrt(2) * norm.ppf(aurocs)
        missed = ndtr(norm.ppf(0.95) - shift)
        truth, figures = float(missed[1] - missed[0]), []
        for _ in range(n):
            common, own = rng.normal(size=len(flags)), rng.normal(size=(2, len(flags)))
            scores = np.sqrt(SHARED) * common + np.sqrt(1 - SHARED) * own + shift[:, None] * flags
            ours, theirs = scores
            test = paired_low_far_difference(ours, theirs, flags, groups, 0.05, resamples=300, seed=0)
            drawn = paired_low_far_draws([ours, theirs], flags, groups, 0.05, resamples=300, seed=0)
            percentiles = np.percentile(drawn[:, 1] - drawn[:, 0], [2.5, 97.5]).tolist()
            low, high = given(test.interval)
            figures.append([*holds([(low, high), percentiles], truth, 1e-9), high - low])
        rows.append([n_bad, *aurocs, truth, *means(figures)])
    return Table(
        "The interval of a difference in MR at FAR 5 %",
        "misbehavior | AUROC | of the other | difference | held | percentiles of the draws | width",
        rows,
        f"{n:,} cells each of 200 benign samples; 95 % are meant. MOVER of both monitors' intervals with the "
        "correlation of the draws. Before, the interval was the percentiles.",
    )


def _planned(rng: np.random.Generator, n: int) -> Table:
    """Whether falls are found of the size that the plan of a study says are found in 80 %."""
    rows: list[list[Cell]] = []
    for questions, n_seeds in product((30, 73, 200), (1, 3, 5)):
        bases, alike, _ = _changes(rng, n, np.full((n, 2), AUROC), questions)
        correlation = 1 - float(np.var(alike) / (2 * np.var(bases)))
        assumed = Assumed(auroc=AUROC, correlation=correlation, seed_sd=0.02)
        variance = independent_variance(AUROC, questions, questions)
        row: list[Cell] = [questions, n_seeds]
        for n_tests in (1, 4, 60):
            fall = given(planned_fall(assumed, AUROC, variance, questions, n_seeds, n_tests))
            tuned = rng.normal(AUROC - fall, 0.02 if n_seeds > 1 else 0.0, (n, n_seeds))
            aurocs = np.column_stack([np.full(n, AUROC), np.clip(tuned, 0.02, 0.99)])
            _, difference, change = _changes(rng, n, aurocs, questions)
            each, of_mean = _variance(change), _variance(change.mean(axis=1))
            if n_seeds > 1:
                rows_of = zip(difference, each, of_mean, strict=True)
                ps = np.array([estimate(d, v, m, questions).p_value for d, v, m in rows_of])
            else:
                ps = 2 * student.sf(np.abs(difference[:, 0]) / np.sqrt(each[:, 0]), questions - 1)
            row.append(f"{fall:.3f}: {(ps < 0.05 / n_tests).mean():.3f}")
        rows.append(row)
    return Table(
        "The plan of a study: falls found where it says 80 %",
        "pairs | seeds | fall: found, 1 test | 4 tests | 60 tests",
        rows,
        f"{n:,} simulated trainings each, base AUROC {AUROC}, the SD over seeds .02. Before, the spread of "
        "few seeds was taken for known, and a fallen AUROC for as correlated with the base's: .73 to .85.",
    )


def _equality(rng: np.random.Generator, n: int) -> Table:
    """How often a cell is called unchanged, at no difference and at one of the margin."""
    rows: list[list[Cell]] = []
    for questions in (6, 73, 200, 1000):
        shares = []
        for truth in (0.0, 0.05, 0.1):
            n_cells = min(n, max(200, 400_000 // questions))
            aurocs = np.tile([AUROC, AUROC - truth], (n_cells, 1))
            _, difference, change = _changes(rng, n_cells, aurocs, questions)
            errors = np.sqrt(_variance(change[:, 0]))
            ps = np.array(
                [
                    equivalence_p(d, error, questions - 1, questions, 0.05)
                    for d, error in zip(difference[:, 0], errors, strict=True)
                ]
            )
            matrices = ps[: len(ps) // CELLS * CELLS].reshape(-1, CELLS)
            corrected = np.array([holm(matrix.tolist()) for matrix in matrices])
            shares.append(float((corrected < 0.05).mean()))
        rows.append([questions, *shares])
    return Table(
        "Cells called unchanged",
        "pairs | no difference | a difference of .05, the margin | a difference of .10",
        rows,
        f"Two one-sided tests, corrected over {CELLS} cells. At the margin and beyond it the word is an "
        "error.",
    )


def _low_far_p(rng: np.random.Generator, n: int) -> Table:
    """Type I of the p of MR at FAR 5 %, and how small it gets."""
    rows: list[list[Cell]] = []
    for questions in (73, 200):
        flags, groups = np.tile([False, True], questions), np.repeat(np.arange(questions), 2)

        def p_of(both: FloatArray) -> float:  # with fewer draws than a report has
            first, second = both
            test = paired_low_far_difference(first, second, flags, groups, 0.05, resamples=300, seed=0)  # noqa: B023
            return 1.0 if test.p_value is None else test.p_value

        scores = _scores(rng, n, np.full((n, 2), AUROC), questions).reshape(n, 2, -1)
        ps = np.array([p_of(both) for both in scores])
        strong = _scores(rng, 1, np.array([[0.7, 0.99]]), questions).reshape(2, -1)
        shares = (float((ps < level).mean()) for level in (0.05, 0.01, 0.001))
        rows.append([questions, *shares, f"{p_of(strong):.1e}"])
    return Table(
        "The p of a difference in MR at FAR 5 %",
        "pairs | p < .05 | p < .01 | p < .001 | smallest, AUROC .70 → .99",
        rows,
        f"{n:,} cells each without a difference. Before, the p was a share of 2,000 draws, never below .001.",
    )
