"""Assignment of groups to splits: whole groups, fixed shares of each cell, decided by hash and seed."""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence

from monitorbench.config.datasets import SplitShares
from monitorbench.records import Cell, Sample, Split

CORPUS_VERSION = 2
"""Version of how samples become splits: shares, choice of pairs, overlap, quotas. Raised whenever the same
samples are placed otherwise; a golden test fails where that is forgotten."""


def assign_splits(samples: Sequence[Sample], shares: SplitShares, seed: int) -> dict[str, Split]:
    """Map every group_id to a split.

    Within a cell the groups are ordered by a hash of (seed, group_id) and cut at the shares, so
    every cell has its share of groups in every split to within one, and the order of `samples`
    does not matter. A group with samples in several cells is placed with the first of them.
    """
    home: dict[str, Cell] = {}
    for sample in samples:
        home[sample.group_id] = min(home.get(sample.group_id, sample.cell), sample.cell)
    groups: defaultdict[Cell, list[str]] = defaultdict(list)
    for group, cell in home.items():
        groups[cell].append(group)
    assigned: dict[str, Split] = {}
    for members in groups.values():
        members.sort(key=lambda group: hashlib.sha256(f"{seed}\0{group}".encode()).digest())
        for split, (start, end) in _cuts(shares, len(members)).items():
            assigned.update(dict.fromkeys(members[start:end], split))
    return assigned


def _cuts(shares: SplitShares, count: int) -> Mapping[Split, tuple[int, int]]:
    cuts: dict[Split, tuple[int, int]] = {}
    upto, start = 0.0, 0
    for split in Split:
        upto += getattr(shares, split.value)
        end = round(upto * count)
        cuts[split] = (start, end)
        start = end
    return cuts
