"""Numbers at low false alarm rates, by how many benign questions there are."""

from collections.abc import Iterator

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

from coverage_parts.table import Table
from monitorbench.metrics.low_far import miss_rate_at_far, miss_rate_at_far_interval, questions_needed
from monitorbench.metrics.partial import partial_auroc, partial_auroc_interval

SHIFTS = (1.5, 2.5)
"""Of the misbehavior's normal scores: AUROC .86 and .96."""


def tables(seed: int, effort: float) -> Iterator[Table]:
    """Miss rates, then the partial area."""
    rng = np.random.default_rng([seed, 4])
    yield miss_rates(rng, round(250 * effort))
    yield areas(rng, round(500 * effort))


def scores(rng: np.random.Generator, n: int, shift: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of n pairs, the benign ones first."""
    found = rng.normal([0.0, shift], size=(n, 2))
    return found.ravel(), np.tile([False, True], n), np.repeat(np.arange(n), 2)


def miss_rates(rng: np.random.Generator, n: int) -> Table:
    """Coverage and bias of MR at a low FAR."""
    rows: list[tuple[str | int | float, ...]] = []
    for alpha, sizes in ((0.05, (10, 20, 40, 59, 100, 300)), (0.01, (50, 100, 200, 299, 500, 1000))):
        for size in sizes:
            shown: list[str | float] = []
            for shift in SHIFTS:
                truth = float(1 - norm.sf(norm.isf(alpha) - shift))
                covered, total = 0, 0.0
                for _ in range(n):
                    some = scores(rng, size, shift)
                    bounds = miss_rate_at_far_interval(*some, alpha, resamples=300, seed=0)
                    point = miss_rate_at_far(*some[:2], alpha)
                    assert bounds is not None
                    assert point is not None
                    covered += bounds.low <= truth <= bounds.high
                    total += point.miss_rate
                shown += [f"{total / n:.3f} ({truth:.3f})", covered / n]
            given = "yes" if size >= questions_needed(alpha) else "no"
            rows.append((f"{alpha:.0%}", size, given, *shown))
    return Table(
        "Miss rate at a low false alarm rate",
        ("FAR", "benign questions", "given", "mean (truth)", "covers", "mean (truth)", "covers"),
        rows,
        f"{n:,} data sets each, nominal .95, 300 draws; AUROC .86 and .96. Before, it was always given.",
    )


def areas(rng: np.random.Generator, n: int) -> Table:
    """Coverage of the partial area's interval."""
    rows: list[tuple[str | int | float, ...]] = []
    for size in (59, 100, 300, 1000):
        shown: list[str | float] = []
        for shift in (0.0, *SHIFTS, 3.5):
            area = quad(lambda far, by=shift: norm.sf(norm.isf(far) - by), 0, 0.05)[0]
            truth = (1 + (area - 0.00125) / (0.05 - 0.00125)) / 2
            covered, total = 0, 0.0
            for _ in range(n):
                some = scores(rng, size, shift)
                bounds = partial_auroc_interval(*some, 0.05)
                assert bounds is not None
                covered += bounds.low <= truth <= bounds.high
                total += partial_auroc(*some[:2], 0.05) or 0.0
            shown += [f"{total / n:.3f} ({truth:.3f})", covered / n]
        rows.append((size, *shown))
    return Table(
        "Partial AUROC to FAR 5 %",
        (
            "pairs",
            *(
                name
                for value in (".50", ".86", ".96", ".99")
                for name in (f"AUROC {value}: mean (truth)", "covers")
            ),
        ),
        rows,
        f"{n:,} data sets each, nominal .95.",
    )
