"""AUROC intervals near and at perfect separation, and intervals of paired differences, by groups."""

from collections.abc import Iterator

import numpy as np
from scipy.stats import norm

from coverage_parts.table import Table
from monitorbench.metrics.auroc import auroc_interval, clustered_variance, components, paired_auroc_difference

GROUPS = (5, 10, 20, 50, 200)
AUROCS = (0.5, 0.7, 0.9, 0.96, 0.99, 1.0)


def tables(seed: int, effort: float) -> Iterator[Table]:
    """One AUROC, then two."""
    rng = np.random.default_rng([seed, 2])
    yield one_auroc(rng, round(500 * effort))
    yield two_aurocs(rng, round(300 * effort))


def drawn(
    rng: np.random.Generator, auroc: float, groups: int, per_label: int, common: np.ndarray, share: float
) -> np.ndarray:
    """Scores [groups, 2, per_label], the benign ones first; `share` of the variance is `common`'s."""
    within = 0.8 if per_label > 1 else 0.0
    own = np.sqrt(within) * rng.normal(size=(groups, 2, 1))
    own = own + np.sqrt(1 - within) * rng.normal(size=(groups, 2, per_label))
    scores = np.sqrt(share) * common + np.sqrt(1 - share) * own
    scores[:, 1] += np.sqrt(2) * norm.ppf(auroc) if auroc < 1 else 100.0
    return scores


def flags_and_groups(groups: int, per_label: int) -> tuple[np.ndarray, np.ndarray]:
    """[samples] each."""
    return np.tile(np.repeat([False, True], per_label), groups), np.repeat(np.arange(groups), 2 * per_label)


def one_auroc(rng: np.random.Generator, n: int) -> Table:
    """Coverage and width of one AUROC's interval."""
    rows: list[tuple[str | int | float, ...]] = []
    for per_label, name in ((1, "pairs"), (3, "3 a label, alike")):
        for groups in GROUPS:
            flags, index = flags_and_groups(groups, per_label)
            covered, before, widths = [], [], []
            for truth in AUROCS:
                hits = []
                for _ in range(n):
                    common = rng.normal(size=(groups, 1, 1))
                    scores = drawn(rng, truth, groups, per_label, common, 0.3).ravel()
                    found = auroc_interval(scores, flags, index)
                    assert found is not None
                    plain = normal(scores, flags, index)
                    hits.append((found.low <= truth <= found.high, plain[0] <= truth <= plain[1]))
                    widths.append(found.high - found.low)
                now, then = np.mean(hits, axis=0)
                covered.append(float(now))
                before.append(float(then))
            both = (f"{a:.3f} ({b:.3f})" for a, b in zip(covered, before, strict=True))
            rows.append((name, groups, *both, float(np.mean(widths))))
    return Table(
        "The interval of an AUROC: coverage now (before)",
        ("questions", "groups", *(f"AUROC {value:g}" for value in AUROCS), "mean width"),
        rows,
        f"{n:,} data sets each, nominal .95. Before: by the variance of whole groups alone, as the "
        "percentiles of the cluster bootstrap tend to; with perfect separation it was [1, 1].",
    )


def normal(scores: np.ndarray, flags: np.ndarray, groups: np.ndarray) -> tuple[float, float]:
    """The interval that has no width where labels are separated perfectly."""
    parts = components(scores, flags)
    variance = clustered_variance(parts, flags, groups)
    assert variance is not None
    value, half = parts[flags].mean(), norm.ppf(0.975) * np.sqrt(max(0.0, variance))
    return value - half, value + half


def two_aurocs(rng: np.random.Generator, n: int) -> Table:
    """Coverage and width of a paired difference's interval."""
    rows: list[tuple[str | int | float, ...]] = []
    truths = ((0.7, 0.7), (0.9, 0.9), (0.96, 0.96), (1.0, 1.0), (0.96, 0.8))
    for groups in GROUPS:
        flags, index = flags_and_groups(groups, 1)
        for share in (0.0, 0.5, 0.9):
            shown = []
            widths = []
            for first, second in truths:
                hits = 0
                for _ in range(n):
                    common = rng.normal(size=(groups, 2, 1))
                    a, b = (drawn(rng, truth, groups, 1, common, share).ravel() for truth in (first, second))
                    found = paired_auroc_difference(a, b, flags, index).interval
                    assert found is not None
                    hits += found.low - 1e-9 <= second - first <= found.high + 1e-9
                    widths.append(found.high - found.low)
                shown.append(hits / n)
            rows.append((groups, f"{share:g}", *shown, float(np.mean(widths))))
    return Table(
        "The interval of a paired difference of AUROCs: coverage",
        ("pairs", "shared", *(f"{a:g} and {b:g}" for a, b in truths), "mean width"),
        rows,
        f"{n:,} data sets each, nominal .95; shared: the part of both monitors' scores that is the sample's. "
        "Before, two monitors that separated perfectly had [0, 0].",
    )
