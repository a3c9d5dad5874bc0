"""Samples that fill a cell: exactly its quota, or as many as there are, by a fixed order.

Nothing here pads. What a quota asks for and the candidates can't give is returned as a number.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple


def cell_size(available: Mapping[str, int], max_shares: Mapping[str, float], quota: int) -> int:
    """The largest size up to `quota` at which every source keeps to its share of the cell.

    A cell of size n may hold floor(share * n) samples of a source. The caps are checked on the size the
    cell really gets, not on its quota, so a short cell is no excuse for one source to fill it.
    """
    for size in range(min(quota, sum(available.values())), 0, -1):
        if sum(min(count, _cap(max_shares[source], size)) for source, count in available.items()) >= size:
            return size
    return 0


def fill(sources: Sequence[str], max_shares: Mapping[str, float], quota: int) -> list[int]:
    """Indices of the candidates to take, given each candidate's source in the order of preference.

    Takes `cell_size` of them, the first ones whose source is not at its cap; the indices are ascending.
    """
    size = cell_size(Counter(sources), max_shares, quota)
    n_by_source: Counter[str] = Counter()
    chosen: list[int] = []
    for index, source in enumerate(sources):
        if len(chosen) == size:
            break
        if n_by_source[source] < _cap(max_shares[source], size):
            n_by_source[source] += 1
            chosen.append(index)
    return chosen


class Shortfall(NamedTuple):
    """Number asked for and number available; stated in the manifest, never padded."""

    asked: int
    have: int


def _cap(share: float, size: int) -> int:
    # The tolerance keeps .7 * 10 = 6.999… from losing a sample.
    return int(share * size + 1e-9)
