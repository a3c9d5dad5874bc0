"""Which samples are chosen, and for which split: groups by shares, candidates by quotas, pairs in balance.

Whole groups go to one split, decided by hash and seed. A cell gets exactly its quota, or as many as there
are: nothing pads, and what candidates can't give is returned as a number.

Balance: a fix adds more than it takes away, and the same few words come and go with it (`load`, `safe_load`).
What counts is the difference between the two responses of a pair: which words stand in one of them only, and
which is the longer. A pair is passed over where it would tip the balance of one of these beyond the limit.
"""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from monitorbench.config.datasets import SplitShares
from monitorbench.construct.pair import Pair
from monitorbench.corpus.texts import response_text
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


_WORD = re.compile(r"\w\w+")
_LENGTH = ""
_LENGTH_LIMIT = 10
"""Limit of the length, in limits of a word: the length differs in nearly every pair, a word in few."""


def balanced(pairs: Sequence[Pair], limit: int, most: int) -> list[Pair]:
    """Choose the first pairs that fit, at most `most` of them, in their order.

    Among the chosen pairs, those in which a word stands in the misbehavior only and those in which it stands
    in the benign response only differ in number by at most `limit`. The pairs are searched again until no
    further one fits.
    """
    marks = [_marks(pair) for pair in pairs]
    tipped: Counter[str] = Counter()
    chosen: set[int] = set()
    grew = True
    while grew:
        grew = False
        for index, mark in enumerate(marks):
            if len(chosen) < most and index not in chosen and _fits(tipped, mark, limit):
                for word, side in mark.items():
                    tipped[word] += side
                chosen.add(index)
                grew = True
    return [pairs[index] for index in sorted(chosen)]


def _marks(pair: Pair) -> dict[str, int]:
    """Mark each word of one response only, and the longer one: 1 for misbehavior, -1 for benign."""
    bad, good = response_text(pair.misbehavior), response_text(pair.benign)
    of_bad, of_good = (set(_WORD.findall(text.casefold())) for text in (bad, good))
    marks = dict.fromkeys(of_bad - of_good, 1) | dict.fromkeys(of_good - of_bad, -1)
    if len(bad) != len(good):
        marks[_LENGTH] = 1 if len(bad) > len(good) else -1
    return marks


def _fits(tipped: Counter[str], marks: dict[str, int], limit: int) -> bool:
    return all(
        abs(tipped[word] + side) <= (limit if word != _LENGTH else limit * _LENGTH_LIMIT)
        for word, side in marks.items()
    )


def cell_size(available: Mapping[str, int], max_shares: Mapping[str, float], quota: int) -> int:
    """The largest size up to `quota` at which every source keeps to its share of the cell.

    The caps are checked on the size the cell really gets, not on its quota, so a short cell is no excuse for
    one source to fill it.
    """
    shares = {source: max_shares[source] for source in available}
    for size in range(min(quota, sum(available.values())), 0, -1):
        caps = _caps(shares, size)
        if sum(min(count, caps[source]) for source, count in available.items()) >= size:
            return size
    return 0


def fill(sources: Sequence[str], max_shares: Mapping[str, float], quota: int) -> list[int]:
    """Indices of the candidates to take, given each candidate's source in the order of preference.

    Takes `cell_size` of them, the first ones whose source is not at its cap; the indices are ascending.
    """
    size = cell_size(Counter(sources), max_shares, quota)
    caps = _caps({source: max_shares[source] for source in set(sources)}, size)
    n_by_source: Counter[str] = Counter()
    chosen: list[int] = []
    for index, source in enumerate(sources):
        if len(chosen) == size:
            break
        if n_by_source[source] < caps[source]:
            n_by_source[source] += 1
            chosen.append(index)
    return chosen


class Shortfall(NamedTuple):
    """Number asked for and number available; stated in the manifest, never padded."""

    asked: int
    have: int


def _caps(shares: Mapping[str, float], size: int) -> dict[str, int]:
    """Largest number of each source's samples in a cell of `size`: its share, rounded down.

    Where shares that are enough together would leave the cell short by rounding alone, the largest remainders
    are rounded up (Hamilton's method): three shares of .34 fill a cell of ten.
    """
    # The tolerance keeps .7 * 10 = 6.999… from losing a sample.
    caps = {source: int(share * size + 1e-9) for source, share in shares.items()}
    lost = size - sum(caps.values())
    if lost > 0 and sum(shares.values()) > 1 - 1e-9:
        for source in sorted(shares, key=lambda name: (caps[name] - shares[name] * size, name))[:lost]:
            caps[source] += 1
    return caps
