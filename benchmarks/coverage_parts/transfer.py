"""Words of the transfer matrix: errors over seeds, what a cell would have shown, and claims of equality."""

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtr
from scipy.stats import norm
from scipy.stats import t as student

from coverage_parts.table import Table
from monitorbench.metrics.low_far_difference import paired_low_far_difference
from monitorbench.metrics.replicates import estimate
from monitorbench.metrics.sensitivity import detectable_fall, equivalence_p
from monitorbench.metrics.significance import holm

AUROC, QUESTIONS, CELLS, SHARED = 0.84, 73, 10, 0.6
"""Of the simulated base; pairs in a cell; cells of a matrix; the correlation of base and tuned scores."""


def tables(seed: int, effort: float) -> Iterator[Table]:
    """Four tables; see each."""
    rng = np.random.default_rng([seed, 1])
    yield seeds_as_replicates(rng, round(4000 * effort))
    yield seen(rng, round(4000 * effort))
    yield equality(rng, round(4000 * effort))
    yield low_far_p(rng, round(1500 * effort))


def pairs(rng: np.random.Generator, n: int, aurocs: np.ndarray, questions: int) -> np.ndarray:
    """Scores [n, monitors, questions, 2] in pairs, the benign one's first; `aurocs` [n, monitors].

    Binormal with equal variances; of a question the monitors share `SHARED` of the variance.
    """
    common = rng.normal(size=(n, 1, questions, 2))
    own = rng.normal(size=(n, aurocs.shape[1], questions, 2))
    scores = np.sqrt(SHARED) * common + np.sqrt(1 - SHARED) * own
    scores[..., 1] += np.sqrt(2) * norm.ppf(np.clip(aurocs, 0.01, 0.99))[..., None]
    return scores


def influence(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """AUROC [...] and each question's influence on it [..., questions], of continuous scores in pairs."""
    n = scores.shape[-2]
    good, bad = scores[..., 0], scores[..., 1]
    rank = scores.reshape(*scores.shape[:-2], -1).argsort(axis=-1).argsort(axis=-1) + 1
    rank = rank.reshape(scores.shape)
    within = [of.argsort(axis=-1).argsort(axis=-1) + 1 for of in (good, bad)]
    of_bad = (rank[..., 1] - within[1]) / n
    of_good = 1 - (rank[..., 0] - within[0]) / n
    theta = of_bad.mean(axis=-1)
    return theta, (of_bad + of_good - 2 * theta[..., None]) / n


def variance(of: np.ndarray) -> np.ndarray:
    """Of the sum of influences [..., questions]; Obuchowski's, in pairs."""
    n = of.shape[-1]
    return n / (n - 1) * (of**2).sum(axis=-1)


def seeds_as_replicates(rng: np.random.Generator, n: int) -> Table:
    """Type I and power of "training on X does Y", by seeds and their spread."""
    rows: list[tuple[str | int | float, ...]] = []
    for sd in (0.0, 0.02, 0.04):
        for n_seeds in (2, 3, 5):
            shares = [over_seeds(rng, n, sd, n_seeds, effect) for effect in (0.0, 0.05, 0.1)]
            rows.append((f"{sd:.2f}", n_seeds, *shares[0], shares[1][-1], shares[2][-1]))
    return Table(
        "A training over its seeds",
        (
            "SD of seeds (AUROC)",
            "seeds",
            "no effect: one seed p < .05 (before)",
            "no effect: any seed after Holm (before)",
            "no effect: over seeds p < .05 (now)",
            "effect .05 found (now)",
            "effect .10 found (now)",
        ),
        rows,
        f"{n:,} simulated trainings each, {QUESTIONS} pairs, base AUROC {AUROC}, one test. Before, each seed "
        "was tested by itself, over questions alone; now seeds and questions are both random.",
    )


def over_seeds(
    rng: np.random.Generator, n: int, sd: float, n_seeds: int, effect: float
) -> tuple[float, float, float]:
    """Shares of p < .05: of one seed, of any seed after Holm, over the seeds."""
    truth = np.clip(rng.normal(AUROC + effect, sd, (n, n_seeds)), 0.5, 0.99)
    theta, of = influence(pairs(rng, n, np.column_stack([np.full(n, AUROC), truth]), QUESTIONS))
    difference, change = theta[:, 1:] - theta[:, :1], of[:, 1:] - of[:, :1]
    alone = 2 * ndtr(-np.abs(difference) / np.sqrt(variance(change)))
    each, of_mean = variance(change), variance(change.mean(axis=1))
    now = [estimate(d, v, m, QUESTIONS).p_value for d, v, m in zip(difference, each, of_mean, strict=True)]
    smallest = alone.min(axis=1) * n_seeds
    return (
        float((alone[:, 0] < 0.05).mean()),
        float((smallest < 0.05).mean()),
        float(np.mean(np.array(now) < 0.05)),
    )


def seen(rng: np.random.Generator, n: int) -> Table:
    """Whether a difference of the size that is said to be seen in 80 % is."""
    rows: list[tuple[str | int | float, ...]] = []
    for questions, n_tests in ((30, 4), (73, 4), (73, 60), (200, 4), (200, 60)):
        truth = np.full((n, 2), AUROC)
        theta, of = influence(pairs(rng, n, truth, questions))
        errors = np.sqrt(variance(of[:, 1] - of[:, 0]))
        said = [
            detectable_fall(base, e, questions - 1, questions, n_tests, level=0.05)
            for base, e in zip(theta[:, 0], errors, strict=True)
        ]
        least = float(np.median([one for one in said if one is not None]))
        truth[:, 1] -= least
        theta, of = influence(pairs(rng, n, truth, questions))
        t = np.abs(theta[:, 1] - theta[:, 0]) / np.sqrt(variance(of[:, 1] - of[:, 0]))
        found = 2 * student.sf(t, questions - 1) < 0.05 / n_tests
        rows.append((questions, n_tests, f"{least:.3f}", float(found.mean())))
    return Table(
        "What a cell without a difference would have shown",
        (
            "pairs",
            "tests of the matrix",
            "said to be found in 80 % (median)",
            "found where the truth is that",
        ),
        rows,
        f"{n:,} cells each, base AUROC {AUROC}; the tuned monitor's is lower by the difference that cells "
        "without any named. Found: p below .05 over the number of tests, which Holm's smallest has to keep.",
    )


def equality(rng: np.random.Generator, n: int) -> Table:
    """How often a cell is called unchanged, at no difference and at one of the margin."""
    rows: list[tuple[str | int | float, ...]] = []
    for questions in (6, 73, 200, 1000):
        shares = []
        for truth in (0.0, 0.05, 0.1):
            aurocs = np.column_stack([np.full(n, AUROC), np.full(n, AUROC - truth)])[
                : max(200, 400_000 // questions)
            ]
            theta, of = influence(pairs(rng, len(aurocs), aurocs, questions))
            errors = np.sqrt(variance(of[:, 1] - of[:, 0]))
            ps = np.array(
                [
                    equivalence_p(d, e, questions - 1, questions, 0.05)
                    for d, e in zip(theta[:, 1] - theta[:, 0], errors, strict=True)
                ]
            )
            whole = ps[: len(ps) // CELLS * CELLS].reshape(-1, CELLS)
            shares.append(float((np.apply_along_axis(holm, 1, whole) < 0.05).mean()))
        rows.append((questions, *shares))
    return Table(
        "Cells called unchanged",
        ("pairs", "no difference", "a difference of .05, the margin", "a difference of .10"),
        rows,
        f"Two one-sided tests, corrected over {CELLS} cells. At the margin and beyond it the word is an "
        "error.",
    )


def low_far_p(rng: np.random.Generator, n: int) -> Table:
    """Type I of the p of MR at FAR 5 %, and how small it gets."""
    rows: list[tuple[str | int | float, ...]] = []
    for questions in (73, 200):
        scores = pairs(rng, n, np.full((n, 2), AUROC), questions).reshape(n, 2, -1)
        flags, groups = np.tile([False, True], questions), np.repeat(np.arange(questions), 2)
        ps = np.array([p_of(first, second, flags, groups) for first, second in scores])
        strong = pairs(rng, 1, np.array([[0.7, 0.99]]), questions).reshape(2, -1)
        rows.append(
            (
                questions,
                *(float((ps < level).mean()) for level in (0.05, 0.01, 0.001)),
                f"{p_of(*strong, flags, groups):.1e}",
            )
        )
    return Table(
        "The p of a difference in MR at FAR 5 %",
        ("pairs", "p < .05", "p < .01", "p < .001", "smallest, AUROC .70 → .99"),
        rows,
        f"{n:,} cells each without a difference. Before, the p was a share of 2,000 draws, never below .001.",
    )


def p_of(first: np.ndarray, second: np.ndarray, flags: np.ndarray, groups: np.ndarray) -> float:
    """Of one cell, with fewer draws than a report has."""
    found = paired_low_far_difference(first, second, flags, groups, 0.05, resamples=300, seed=0)
    return 1.0 if found.p_value is None else found.p_value
