"""The cluster bootstrap: whole groups are drawn with replacement, and an interval is read off the draws.

Samples of one group share a question, so they are no independent evidence; a draw takes or leaves
them together (Davison & Hinkley 1997, section 3.8). Promises: the same seed gives the same draws,
whatever order the samples come in; memory stays bounded however many samples there are.

Two ways: `interval` draws G of G groups, for any statistic of weighted samples. Where a statistic sees of a
group only a row of counts (its samples, its misses, …), groups of equal rows are interchangeable: how often
each *kind* of row is drawn is multinomial over the kinds' shares, which is the same distribution and no
approximation. `kind_draws` draws kinds: a million samples in pairs have some ten, so that a draw
costs ten numbers instead of half a million.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from monitorbench.metrics.rates import Interval

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Groups = Sequence[str] | IntArray
"""[samples]: the names of the samples' groups, or their numbers."""

_BATCH_NUMBERS = 2**21
"""Numbers in a batch of draws: 16 MiB as float64."""

_RARE = 10
"""Largest number of groups of a kind picked one by one: a pick costs a tenth of a binomial number."""


def group_index(groups: Groups) -> IntArray:
    """For each sample the number of its group, by the order of their names or numbers, without gaps.

    Groups given as numbers are at least 0.
    """
    if isinstance(groups, np.ndarray):
        return (np.cumsum(np.bincount(groups) > 0) - 1)[groups]
    number = {name: i for i, name in enumerate(sorted(set(groups)))}
    return np.array([number[name] for name in groups], dtype=np.int64)


def draws(n_groups: int, resamples: int, seed: int, per_draw: int) -> Iterator[IntArray]:
    """Batches [draws, n_groups] of how often each group is in a draw; `resamples` draws in all.

    `per_draw` is how many numbers the caller makes of one draw: it sets the size of a batch.
    """
    rng = np.random.default_rng(seed)
    batch = max(1, _BATCH_NUMBERS // max(per_draw, n_groups, 1))
    for start in range(0, resamples, batch):
        size = min(batch, resamples - start)
        picks = rng.integers(n_groups, size=(size, n_groups)) + n_groups * np.arange(size)[:, None]
        yield np.bincount(picks.ravel(), minlength=size * n_groups).reshape(size, n_groups)


def interval(
    statistic: Callable[[IntArray], FloatArray],
    groups: Groups,
    *,
    resamples: int,
    seed: int,
) -> Interval | None:
    """The 95 % percentile interval of a statistic of weighted samples.

    `statistic` takes weights [draws, samples] (how often each sample is in each draw) and gives one
    number a draw, NaN where it is undefined there; such draws are left out. None with fewer than two
    groups (a single cluster shows no spread) or where fewer than half the draws have a value.
    """
    index = group_index(groups)
    n_groups = int(index.max(initial=-1)) + 1
    if n_groups < 2:
        return None
    batches = draws(n_groups, resamples, seed, per_draw=len(index))
    return percentiles(np.concatenate([statistic(batch[:, index]) for batch in batches]))


def kind_draws(n_groups: IntArray, resamples: int, seed: int, per_draw: int) -> Iterator[FloatArray]:
    """Batches [draws, kinds] of how often each kind is in a draw of as many groups as there are.

    Whole numbers, as float64 for the products they go into. `per_draw` is how many numbers the caller
    makes of one draw: it sets the size of a batch, on which the draws do not depend.

    How many draws fall on groups of rare kinds together is drawn first, then which group each falls on: for
    a kind of few groups that is quicker than a binomial number, and the same distribution.
    """
    shared, picked = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    batch = max(1, _BATCH_NUMBERS // max(per_draw, len(n_groups), 1))
    total = int(n_groups.sum())
    common, rare = np.flatnonzero(n_groups > _RARE), np.flatnonzero(n_groups <= _RARE)
    kind_of_rare_group = np.repeat(rare, n_groups[rare])
    sizes = [*n_groups[common], len(kind_of_rare_group)] if len(rare) else n_groups[common]
    shares = np.asarray(sizes) / total
    for start in range(0, resamples, batch):
        size = min(batch, resamples - start)
        counts = shared.multinomial(total, shares, size=size)
        times = np.zeros((size, len(n_groups)))
        if len(rare):  # else the last count, which takes up all rounding, would be of none
            flat_index = np.repeat(np.arange(size) * len(n_groups), counts[:, -1])
            flat_index += kind_of_rare_group[picked.integers(len(kind_of_rare_group), size=len(flat_index))]
            times += np.bincount(flat_index, minlength=size * len(n_groups)).reshape(size, -1)
        times[:, common] = counts[:, : len(common)]
        yield times


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
