"""Intervals and tests: AUROCs near perfect separation, rates by question, figures at low FARs."""

from collections.abc import Iterator
from itertools import product

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

from benchmarks.coverage import Cell, Table, given, holds, means
from benchmarks.judged import columns_of
from monitorbench.config.evaluation import Stakes
from monitorbench.metrics.auroc import auroc_interval, clustered_variance, components, paired_auroc_difference
from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.clustered import macro_interval, share_interval
from monitorbench.metrics.columns import BoolArray
from monitorbench.metrics.cost import cost_difference, expected_cost, expected_cost_interval
from monitorbench.metrics.low_far import (
    miss_rate_at_far,
    miss_rate_at_far_interval,
    partial_auroc,
    partial_auroc_with_interval,
    questions_needed,
)
from monitorbench.metrics.rates import Interval, wilson_interval
from monitorbench.metrics.significance import compare, mcnemar

GROUPS = (5, 10, 20, 50, 200)
AUROCS = (0.5, 0.7, 0.9, 0.96, 0.99, 1.0)
CORRELATIONS = (0.0, 0.3, 0.7, 0.95)
SHIFTS = (1.5, 2.5)
"""How far normal scores of misbehavior lie above benign ones: AUROC .86 and .96."""
SIZES = {
    "1 of 100": [1] * 100,
    "4 of 50": [4] * 50,
    "1 to 32 of 42": [32] * 2 + [16] * 4 + [8] * 6 + [4] * 8 + [2] * 10 + [1] * 12,
    "20 of 3, 1 of 40": [20] * 3 + [1] * 40,
    "60 of 1, 1 of 60": [60, *[1] * 60],
}
_TWO = "{:.3f} ({:.3f})"


def tables(seed: int, effort: float) -> Iterator[Table]:
    """Tables of AUROCs, then of rates, then at low false alarm rates; a generator of draws for each."""
    rng = np.random.default_rng([seed, 2])
    yield _one_auroc(rng, round(500 * effort))
    yield _two_aurocs(rng, round(300 * effort))
    rng = np.random.default_rng([seed, 3])
    yield _rate_intervals(rng, round(1000 * effort))
    yield _rate_tests(rng, round(1000 * effort))
    yield _unequal(np.random.default_rng([seed, 5]), round(1000 * effort))
    rng = np.random.default_rng([seed, 4])
    yield _miss_rates(rng, round(250 * effort))
    yield _partial_areas(rng, round(500 * effort))
    rng = np.random.default_rng([seed, 6])
    yield _miss_rates_by_group(rng, round(500 * effort))
    yield _macro_rates(rng, round(1000 * effort))


def _one_auroc(rng: np.random.Generator, n: int) -> Table:
    """Coverage and width of one AUROC's interval."""

    def draw(truth: float, groups: int, per_label: int) -> list[float]:
        flags = np.tile(np.repeat([False, True], per_label), groups)
        index = np.repeat(np.arange(groups), 2 * per_label)
        scores = _auroc_scores(rng, truth, groups, per_label, rng.normal(size=(groups, 1, 1)), 0.3)
        interval = given(auroc_interval(scores, flags, index))
        before = _normal_interval(scores, flags, index)
        return [*holds([interval, before], truth), interval.high - interval.low]

    rows: list[list[Cell]] = []
    for (per_label, name), groups in product(((1, "pairs"), (3, "3 a label, alike")), GROUPS):
        figures = [means(draw(truth, groups, per_label) for _ in range(n)) for truth in AUROCS]
        rows.append([name, groups, *(_TWO.format(*of_truth) for of_truth in figures), means(figures)[-1]])
    return Table(
        "The interval of an AUROC: coverage now (before)",
        f"questions | groups | {' | '.join(f'AUROC {value:g}' for value in AUROCS)} | mean width",
        rows,
        f"{n:,} data sets each, nominal .95. Before: by the variance of whole groups alone, as the "
        "percentiles of the cluster bootstrap tend to; with perfect separation it was [1, 1].",
    )


def _two_aurocs(rng: np.random.Generator, n: int) -> Table:
    """Coverage and width of a paired difference's interval."""
    truths = ((0.7, 0.7), (0.9, 0.9), (0.96, 0.96), (1.0, 1.0), (0.96, 0.8))

    def draw(first: float, second: float, groups: int, share: float) -> list[float]:
        flags, index = np.tile([False, True], groups), np.repeat(np.arange(groups), 2)
        common = rng.normal(size=(groups, 2, 1))
        a, b = (_auroc_scores(rng, truth, groups, 1, common, share) for truth in (first, second))
        interval = given(paired_auroc_difference(a, b, flags, index).interval)
        return [*holds([interval], second - first, within=1e-9), interval.high - interval.low]

    rows: list[list[Cell]] = []
    for groups, share in product(GROUPS, (0.0, 0.5, 0.9)):
        figures = [means(draw(*pair, groups, share) for _ in range(n)) for pair in truths]
        rows.append([groups, f"{share:g}", *(covered for covered, _ in figures), means(figures)[-1]])
    return Table(
        "The interval of a paired difference of AUROCs: coverage",
        f"pairs | shared | {' | '.join(f'{a:g} and {b:g}' for a, b in truths)} | mean width",
        rows,
        f"{n:,} data sets each, nominal .95; shared: the part of both monitors' scores that is the sample's. "
        "Before, two monitors that separated perfectly had [0, 0].",
    )


def _auroc_scores(
    rng: np.random.Generator, auroc: float, groups: int, per_label: int, common: FloatArray, share: float
) -> FloatArray:
    """Draw scores, of a group's benign samples first; `share` of their variance is `common`'s."""
    within = 0.8 if per_label > 1 else 0.0
    own = np.sqrt(within) * rng.normal(size=(groups, 2, 1))
    own = own + np.sqrt(1 - within) * rng.normal(size=(groups, 2, per_label))
    scores: FloatArray = np.sqrt(share) * common + np.sqrt(1 - share) * own
    scores[:, 1] += np.sqrt(2) * norm.ppf(auroc) if auroc < 1 else 100.0
    return scores.ravel()


def _normal_interval(scores: FloatArray, flags: BoolArray, groups: IntArray) -> Interval:
    """Compute the interval that has no width where labels are separated perfectly."""
    parts = components(scores, flags)
    variance = clustered_variance(parts, flags, groups)
    assert variance is not None
    value, half = parts[flags].mean(), norm.ppf(0.975) * np.sqrt(max(0.0, variance))
    return Interval(value - half, value + half)


def _rate_intervals(rng: np.random.Generator, n: int) -> Table:
    """Coverage of a rate's interval."""
    rows: list[list[Cell]] = []
    for groups, size, rate in product((20, 50, 200), (1, 2, 4), (0.05, 0.2)):
        index = np.repeat(np.arange(groups), size)
        covered = [
            means(
                holds([share_interval(wrong, index), wilson_interval(int(wrong.sum()), len(wrong))], rate)
                for wrong in _errors(rng, n, groups, size, rate, share)
            )
            for share in CORRELATIONS
        ]
        rows.append([groups, size, f"{rate:g}", *(_TWO.format(*both) for both in covered)])
    return Table(
        "The interval of a rate: coverage now (Wilson)",
        f"questions | samples each | rate | {' | '.join(f'correlation {c:g}' for c in CORRELATIONS)}",
        rows,
        f"{n:,} data sets each, nominal .95. The correlation is that of the normal variables behind two "
        "answers to one question. With one sample a question the two are the same.",
    )


def _rate_tests(rng: np.random.Generator, n: int) -> Table:
    """Type I and power of the test of two monitors' rates."""

    def is_found(a: BoolArray, b: BoolArray, index: IntArray) -> list[float]:
        is_right = [(~wrong).astype(np.float64) for wrong in (a, b)]
        p = compare(is_right[0], is_right[1], np.ones(len(index), dtype=bool), index).miss_rate.p_value
        return [p is not None and p < 0.05, mcnemar(int((a & ~b).sum()), int((b & ~a).sum())) < 0.05]

    rows: list[list[Cell]] = []
    for groups, size in product((20, 50, 200), (1, 4)):
        index, cells = np.repeat(np.arange(groups), size), []
        for share, second_rate in (*((share, 0.3) for share in CORRELATIONS), (0.3, 0.15)):
            first, second = (_errors(rng, n, groups, size, rate, share) for rate in (0.3, second_rate))
            pairs = zip(first, second, strict=True)
            cells.append(_TWO.format(*means(is_found(a, b, index) for a, b in pairs)))
        rows.append([groups, size, *cells])
    equal = " | ".join(f"equal, {value:g}" for value in CORRELATIONS)
    return Table(
        "The test of two monitors' rates: p < .05 now (McNemar)",
        f"questions | samples each | {equal} | .30 and .15, 0.3",
        rows,
        f"{n:,} data sets each; both err on 30 % of the samples, or 30 and 15 %; then the correlation.",
    )


def _unequal(rng: np.random.Generator, n: int) -> Table:
    """Coverage of rates, costs and their paired differences, by how questions differ in size."""
    stakes = Stakes(base_rate=0.01, cost_miss=100.0, cost_alarm=1.0)
    rates = ((0.2, 0.05), (0.3, 0.05))
    costs = [given(expected_cost(*both, stakes)) for both in rates]

    def draw(flags: BoolArray, groups: IntArray, share: float) -> list[bool]:
        samples = columns_of(flags, np.zeros(len(flags)), groups)
        of_group = np.sqrt(share) * rng.normal(size=int(groups.max()) + 1)[groups]
        wrong = [
            of_group + np.sqrt(1 - share) * rng.normal(size=len(groups))
            < norm.ppf(np.where(flags, missed, alarms))
            for missed, alarms in rates
        ]
        first, second = (samples.answering((flags ^ one) * 1.0, samples.scores) for one in wrong)
        of_rates = compare(first.flagged, second.flagged, flags, groups).miss_rate
        bounds = given(of_rates.interval)
        return [
            *holds([share_interval(wrong[0][flags], groups[flags])], rates[0][0]),
            *holds([expected_cost_interval(first.flagged, flags, groups, stakes)], costs[0]),
            *holds([bounds], rates[1][0] - rates[0][0]),
            *holds([cost_difference(first, second, stakes, confidence=0.95)[1]], costs[0] - costs[1]),
            (bounds.low <= 0 <= bounds.high) != (given(of_rates.p_value) >= 0.05),
        ]

    rows: list[list[Cell]] = []
    for (name, sizes), share in product(SIZES.items(), (0.3, 0.7)):
        of_label = np.repeat(np.arange(len(sizes)), sizes)
        groups, flags = np.tile(of_label, 2), np.arange(2 * len(of_label)) < len(of_label)
        rows.append([name, f"{share:g}", *means(draw(flags, groups, share) for _ in range(n))])
    return Table(
        "Questions that differ in size: coverage",
        "samples of either label by question | correlation | miss rate | expected cost | paired difference "
        "of miss rates | of costs | interval against p",
        rows,
        f"{n:,} data sets each, nominal .95; miss rates .20 and .30, false alarm rates .05, a base rate of "
        "1 %, a miss costs 100. Interval against p: the share of paired differences of miss rates whose "
        "interval holds 0 while p < .05, or the reverse. Before, rates by question were held in .65 to .87 "
        "where one question has half of the samples, percentiles of paired costs in .76, and 17 to 26 % of "
        "intervals contradicted their p.",
    )


def _errors(rng: np.random.Generator, n: int, groups: int, size: int, rate: float, share: float) -> BoolArray:
    """Draw which samples are wrong [n, groups * size]; `share` of what decides is the question's."""
    of_group = np.sqrt(share) * rng.normal(size=(n, groups, 1))
    latent = of_group + np.sqrt(1 - share) * rng.normal(size=(n, groups, size))
    wrong: BoolArray = (latent < norm.ppf(rate)).reshape(n, -1)
    return wrong


def _miss_rates(rng: np.random.Generator, n: int) -> Table:
    """Coverage and bias of MR at a low FAR."""

    def draw(size: int, shift: float, alpha: float, truth: float) -> list[float]:
        drawn = _pair_scores(rng, size, shift)
        interval = given(miss_rate_at_far_interval(*drawn, alpha))
        return [given(miss_rate_at_far(*drawn[:2], alpha)), *holds([interval], truth)]

    rows: list[list[Cell]] = []
    sizes = {0.05: (10, 20, 40, 59, 100, 300), 0.01: (50, 100, 200, 299, 500, 1000)}
    for alpha, size in ((alpha, size) for alpha, of_alpha in sizes.items() for size in of_alpha):
        cells: list[Cell] = []
        for shift in SHIFTS:
            truth = float(1 - norm.sf(norm.isf(alpha) - shift))
            mean, covered = means(draw(size, shift, alpha, truth) for _ in range(n))
            cells += [_TWO.format(mean, truth), covered]
        rows.append([f"{alpha:.0%}", size, "yes" if size >= questions_needed(alpha) else "no", *cells])
    return Table(
        "Miss rate at a low false alarm rate",
        "FAR | benign questions | given | mean (truth) | covers | mean (truth) | covers",
        rows,
        f"{n:,} data sets each, nominal .95; AUROC .86 and .96. Before, it was always given, with "
        "percentiles of the cluster bootstrap, which held .912 at FAR 1 % and 1,000 questions.",
    )


def _grouped(rng: np.random.Generator, groups: IntArray, share: float) -> FloatArray:
    """Draw normal numbers, `share` of whose variance is their group's."""
    common = rng.normal(size=int(groups.max()) + 1)[groups]
    drawn: FloatArray = np.sqrt(share) * common + np.sqrt(1 - share) * rng.normal(size=len(groups))
    return drawn


def _miss_rates_by_group(rng: np.random.Generator, n: int) -> Table:
    """Coverage of MR at a low FAR where a question has several samples of a label."""
    rows: list[list[Cell]] = []
    designs = (("4 of 60", [4] * 60, 0.05), ("20 of 3, 1 of 60", [20] * 3 + [1] * 60, 0.05))
    unequal = [32] * 2 + [16] * 4 + [8] * 6 + [4] * 8 + [2] * 10 + [1] * 40
    for (name, sizes, alpha), share in product(
        (*designs, ("1 to 32 of 70", unequal, 0.05), ("4 of 300", [4] * 300, 0.01)), (0.5, 0.9)
    ):
        of_label = np.repeat(np.arange(len(sizes)), sizes)
        groups, flags = np.tile(of_label, 2), np.arange(2 * len(of_label)) >= len(of_label)
        cells: list[Cell] = []
        for shift in SHIFTS:
            truth = float(1 - norm.sf(norm.isf(alpha) - shift))
            scores = (_grouped(rng, groups, share) + shift * flags for _ in range(n))
            found = [given(miss_rate_at_far_interval(one, flags, groups, alpha)) for one in scores]
            cells += [
                means(zip(holds(found, truth), strict=True))[0],
                means([one.high - one.low] for one in found)[0],
            ]
        rows.append([name, f"{alpha:.0%}", f"{share:g}", *cells])
    return Table(
        "Miss rate at a low false alarm rate, several samples a question",
        "samples of either label by question | FAR | correlation | AUROC .86: covers | width | AUROC .96: "
        "covers | width",
        rows,
        f"{n:,} data sets each, nominal .95. Before, percentiles of the cluster bootstrap held .89 to .97.",
    )


def _macro_rates(rng: np.random.Generator, n: int) -> Table:
    """Coverage of the mean over cells of a rate."""
    apart = {
        "7 of 10": [[1] * 10] * 7,
        "7 of 40": [[1] * 40] * 7,
        "3 of 8, 4 each": [[4] * 8] * 3,
        "7 of 15, unequal": [[16, 8, 4, 4, 2, 2] + [1] * 9] * 7,
        "5, 20 and 200": [[1] * 5, [1] * 20, [1] * 200],
    }
    designs = {}
    for name, of_cells in apart.items():
        of_group = [size for sizes in of_cells for size in sizes]
        cell_of_group = np.repeat(np.arange(len(of_cells)), [len(sizes) for sizes in of_cells])
        designs[name] = np.repeat(np.arange(len(of_group)), of_group), np.repeat(cell_of_group, of_group)
    for size in (20, 60):
        within = np.repeat(np.arange(size), 2)
        designs[f"4 of the same {size}, 2 each"] = np.tile(within, 4), np.repeat(np.arange(4), 2 * size)
    rows: list[list[Cell]] = []
    for (name, (groups, cells)), share in product(designs.items(), (0.0, 0.5)):
        row: list[Cell] = [name, f"{share:g}"]
        for by_cell in ((0.05,), (0.2,), (0.02, 0.5), (0.1, 0.9)):
            rates = np.resize(by_cell, int(cells.max()) + 1)
            draws = (_grouped(rng, groups, share) < norm.ppf(rates[cells]) for _ in range(n))
            found = [given(macro_interval(wrong, cells, groups)) for wrong in draws]
            row.append(
                _TWO.format(np.mean(holds(found, float(rates.mean()))), np.mean([b - a for a, b in found]))
            )
        rows.append(row)
    return Table(
        "Means over cells: coverage (width)",
        "cells, questions in each | correlation | rates .05 | .20 | .02 and .50 | .10 and .90",
        rows,
        f"{n:,} data sets each, nominal .95. Before, percentiles of the cluster bootstrap held .64 to .98, "
        "least where a cell has few questions.",
    )


def _partial_areas(rng: np.random.Generator, n: int) -> Table:
    """Coverage of the partial area's interval."""

    def draw(size: int, shift: float, truth: float) -> list[float]:
        drawn = _pair_scores(rng, size, shift)
        interval = given(partial_auroc_with_interval(*drawn, 0.05)[1])
        return [partial_auroc(*drawn[:2], 0.05) or 0.0, *holds([interval], truth)]

    rows: list[list[Cell]] = []
    for size in (59, 100, 300, 1000):
        cells: list[Cell] = []
        for shift in (0.0, *SHIFTS, 3.5):
            area = quad(lambda far, by=shift: norm.sf(norm.isf(far) - by), 0, 0.05)[0]
            truth = (1 + (area - 0.00125) / (0.05 - 0.00125)) / 2
            mean, covered = means(draw(size, shift, truth) for _ in range(n))
            cells += [_TWO.format(mean, truth), covered]
        rows.append([size, *cells])
    areas = " | ".join(f"AUROC {value}: mean (truth) | covers" for value in (".50", ".86", ".96", ".99"))
    note = f"{n:,} data sets each, nominal .95."
    return Table("Partial AUROC to FAR 5 %", f"pairs | {areas}", rows, note)


def _pair_scores(rng: np.random.Generator, n: int, shift: float) -> tuple[FloatArray, BoolArray, IntArray]:
    """Draw scores of `n` pairs, the benign one first, with their labels and pairs."""
    scores = rng.normal([0.0, shift], size=(n, 2))
    return scores.ravel(), np.tile([False, True], n), np.repeat(np.arange(n), 2)
