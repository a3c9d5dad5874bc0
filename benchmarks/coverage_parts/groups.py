"""Rates and their tests where samples of a question hang together."""

from collections.abc import Iterator

import numpy as np
from scipy.stats import norm

from coverage_parts.table import Table
from monitorbench.metrics.clustered import share_interval
from monitorbench.metrics.rates import wilson_interval
from monitorbench.metrics.significance import mcnemar, rate_difference_p

CORRELATIONS = (0.0, 0.3, 0.7, 0.95)


def tables(seed: int, effort: float) -> Iterator[Table]:
    """Intervals of one rate, then tests of two."""
    rng = np.random.default_rng([seed, 3])
    yield intervals(rng, round(1000 * effort))
    yield tests(rng, round(1000 * effort))


def errors(rng: np.random.Generator, n: int, groups: int, size: int, rate: float, share: float) -> np.ndarray:
    """Whether each sample is wrong [n, groups, size]; `share` of what decides is its question's."""
    of_group = np.sqrt(share) * rng.normal(size=(n, groups, 1))
    return of_group + np.sqrt(1 - share) * rng.normal(size=(n, groups, size)) < norm.ppf(rate)


def intervals(rng: np.random.Generator, n: int) -> Table:
    """Coverage of a rate's interval."""
    rows: list[tuple[str | int | float, ...]] = []
    for groups in (20, 50, 200):
        for size in (1, 2, 4):
            for rate in (0.05, 0.2):
                shown = []
                for share in CORRELATIONS:
                    covered = np.zeros(2)
                    index = np.repeat(np.arange(groups), size)
                    for one in errors(rng, n, groups, size, rate, share).reshape(n, -1):
                        bounds = share_interval(one, index), wilson_interval(int(one.sum()), len(one))
                        covered += [b is not None and b.low <= rate <= b.high for b in bounds]
                    shown.append("{:.3f} ({:.3f})".format(*covered / n))
                rows.append((groups, size, f"{rate:g}", *shown))
    return Table(
        "The interval of a rate: coverage now (Wilson)",
        ("questions", "samples each", "rate", *(f"correlation {value:g}" for value in CORRELATIONS)),
        rows,
        f"{n:,} data sets each, nominal .95. The correlation is that of the normal variables behind two "
        "answers to one question. With one sample a question the two are the same.",
    )


def tests(rng: np.random.Generator, n: int) -> Table:
    """Type I and power of the test of two monitors' rates."""
    rows: list[tuple[str | int | float, ...]] = []
    for groups in (20, 50, 200):
        for size in (1, 4):
            shown = []
            for share in CORRELATIONS:
                shown.append("{:.3f} ({:.3f})".format(*found_in(rng, n, groups, size, share, 0.3)))
            power = "{:.3f} ({:.3f})".format(*found_in(rng, n, groups, size, 0.3, 0.15))
            rows.append((groups, size, *shown, power))
    return Table(
        "The test of two monitors' rates: p < .05 now (McNemar)",
        ("questions", "samples each", *(f"equal, {value:g}" for value in CORRELATIONS), ".30 and .15, 0.3"),
        rows,
        f"{n:,} data sets each; both err on 30 % of the samples, or 30 and 15 %; then the correlation.",
    )


def found_in(
    rng: np.random.Generator, n: int, groups: int, size: int, share: float, second_rate: float
) -> np.ndarray:
    """Shares of p < .05: by group, and by McNemar's over samples."""
    first = errors(rng, n, groups, size, 0.3, share).reshape(n, -1)
    second = errors(rng, n, groups, size, second_rate, share).reshape(n, -1)
    index, flags = np.repeat(np.arange(groups), size), np.ones(groups * size, dtype=bool)
    found = np.zeros(2)
    for a, b in zip(first, second, strict=True):
        p = rate_difference_p(1.0 - a, 1.0 - b, flags, index, of=True)
        found += [p is not None and p < 0.05, mcnemar(int((a & ~b).sum()), int((b & ~a).sum())) < 0.05]
    return found / n
