"""The cluster bootstrap for statistics of counts, fast where many groups are alike.

`bootstrap.py` draws G of G groups with replacement. Where a statistic sees of a group only a row of
counts (its samples, its misses, …), groups of equal rows are interchangeable: how often each *kind*
of row is drawn is multinomial over the kinds' shares, which is the same distribution and no
approximation. A million samples in pairs have some ten kinds, so a draw costs ten numbers instead of
half a million. Promises: the same seed gives the same draws, whatever order the samples come in.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.rates import Interval

_BATCH_NUMBERS = 2**21
"""Numbers in a batch of draws: 16 MiB as float64."""


class Kinds(NamedTuple):
    """The distinct rows among the groups' rows, in lexicographic order."""

    rows: IntArray
    """[kinds, columns]"""
    n_groups: IntArray
    """[kinds]: how many groups have that row."""
    of_group: IntArray
    """[groups]: which kind each group is of."""


def group_sums(columns: IntArray, groups: IntArray) -> IntArray:
    """Sums [groups present, columns] of `columns` [samples, columns] over the samples of each group."""
    names, index = np.unique(groups, return_inverse=True)
    sums = [np.bincount(index, weights=column, minlength=len(names)) for column in columns.T]
    return np.stack(sums, axis=1).astype(np.int64)


def kinds(rows: IntArray) -> Kinds:
    """The kinds of group in `rows` [groups, columns]; at least one group."""
    code = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:  # renumbered at each column, so that the code can't overflow
        shifted = column - column.min()
        _, code = np.unique(code * (shifted.max() + 1) + shifted, return_inverse=True)
    _, first, of_group, count = np.unique(code, return_index=True, return_inverse=True, return_counts=True)
    return Kinds(rows[first], count, of_group)


def draws(n_groups: IntArray, resamples: int, seed: int, per_draw: int) -> Iterator[FloatArray]:
    """Batches [draws, kinds] of how often each kind is in a draw of as many groups as there are.

    Whole numbers, as float64 for the products they go into. `per_draw` is how many numbers the caller
    makes of one draw: it sets the size of a batch.
    """
    rng = np.random.default_rng(seed)
    batch = max(1, _BATCH_NUMBERS // max(per_draw, len(n_groups), 1))
    total = int(n_groups.sum())
    for start in range(0, resamples, batch):
        size = min(batch, resamples - start)
        yield rng.multinomial(total, n_groups / total, size=size).astype(np.float64)


def interval(
    statistic: Callable[[FloatArray], FloatArray],
    columns: IntArray,
    groups: IntArray,
    *,
    resamples: int,
    seed: int,
    confidence: float = 0.95,
) -> Interval | None:
    """The percentile interval of a statistic of the columns' totals over draws of whole groups.

    `columns` is [samples, columns], `groups` [samples] the numbers of their groups. `statistic` takes
    totals [draws, columns] and gives one number a draw, NaN where it is undefined there. None with
    fewer than two groups, or where fewer than half the draws have a value.
    """
    rows = group_sums(columns, groups)
    if len(rows) < 2:
        return None
    found = kinds(rows)
    batches = draws(found.n_groups, resamples, seed, per_draw=len(found.n_groups))
    return percentiles(np.concatenate([statistic(batch @ found.rows) for batch in batches]), confidence)


def percentiles(values: FloatArray, confidence: float = 0.95) -> Interval | None:
    """The central interval of the draws' values; None where fewer than half of them have one."""
    defined = values[~np.isnan(values)]
    if 2 * len(defined) < len(values) or not len(defined):
        return None
    tail = (1 - confidence) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    return Interval(float(low), float(high))


def ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    """`part / whole`, both [draws], NaN where `whole` is 0."""
    values = np.full(len(whole), np.nan)
    np.divide(part, whole, out=values, where=whole > 0)
    return values
