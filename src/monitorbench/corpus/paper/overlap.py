"""Near-duplicates: which texts say nearly the same as another, by the Jaccard similarity of their shingles.

A shingle is eight consecutive bytes of the normalised text (case folded, white space collapsed). MinHash
signatures (rensa's R-MinHash) in LSH bands propose pairs; the exact Jaccard similarity of the shingle sets
decides. So nothing is removed that is not at least `threshold` similar to a text that stays, and the only
error left is a missed pair: at the threshold itself one in a thousand by the choice of bands, fewer above.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rensa import RMinHash

from monitorbench.config.sources import NearDuplicates

_SHINGLE_BYTES = 8
_PAD = b" " * _SHINGLE_BYTES
_MISSED_AT_THRESHOLD = 1e-3
_BATCH = 2048
# A similarity estimated from the signature may be off by this many standard errors before it is believed.
_STANDARD_ERRORS = 4.0


class Signatures(NamedTuple):
    """MinHash signatures [n, permutations] and LSH band keys [n, bands] of n texts."""

    minhashes: NDArray[np.uint32]
    keys: NDArray[np.uint64]


def rows_per_band(settings: NearDuplicates) -> int:
    """The most rows a band may have so that a pair at the threshold is missed once in a thousand.

    With r rows a band of n permutations, a pair of similarity s shares no band with probability
    (1 - s^r)^(n // r) (Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.4).
    """
    fitting = [
        rows
        for rows in range(1, settings.permutations + 1)
        if (1 - settings.threshold**rows) ** (settings.permutations // rows) <= _MISSED_AT_THRESHOLD
    ]
    return max(fitting, default=1)


def shingles(text: str) -> NDArray[np.uint64]:
    """The distinct shingles of one text, sorted; a text shorter than a shingle has one."""
    return np.unique(_flat([text])[0])


def jaccard(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> float:
    """Jaccard similarity of two sets of shingles, in [0, 1]."""
    shared = len(np.intersect1d(one, other, assume_unique=True))
    return shared / (len(one) + len(other) - shared)


def signatures(texts: Sequence[str], settings: NearDuplicates) -> Signatures:
    """Sign texts, in batches; equal texts have equal signatures on every machine."""
    rows = rows_per_band(settings)
    bands = settings.permutations // rows
    minhashes = np.empty((len(texts), settings.permutations), np.uint32)
    for start in range(0, len(texts), _BATCH):
        batch = texts[start : start + _BATCH]
        hashes, offsets = _flat(batch)
        matrix = RMinHash.digest_matrix_from_flat_token_hashes(
            hashes, offsets, settings.permutations, settings.seed
        )
        minhashes[start : start + len(batch)] = matrix.to_rows()
    keys = np.empty((len(texts), bands), np.uint64)
    for band in range(bands):
        key = np.full(len(texts), band + 1, np.uint64)
        for column in range(band * rows, (band + 1) * rows):
            key = _mixed(key ^ minhashes[:, column])
        keys[:, band] = key
    return Signatures(minhashes, keys)


class Index:
    """Texts to compare others with: the benchmark's requests, or its responses."""

    def __init__(self, texts: Sequence[str], settings: NearDuplicates) -> None:
        """Sign `texts`; equal ones count once."""
        self._texts = list(dict.fromkeys(texts))
        self._settings = settings
        signed = signatures(self._texts, settings)
        self._order = [np.argsort(column, kind="stable") for column in signed.keys.T]
        self._sorted = [column[order] for column, order in zip(signed.keys.T, self._order, strict=True)]
        self._shingles: dict[int, NDArray[np.uint64]] = {}

    def overlaps(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Which of `texts` are at least `threshold` similar to a text of the index; [n]."""
        signed = signatures(texts, self._settings)
        overlapping = np.zeros(len(texts), bool)
        candidates: defaultdict[int, set[int]] = defaultdict(set)
        for column, order, ordered in zip(signed.keys.T, self._order, self._sorted, strict=True):
            starts, ends = np.searchsorted(ordered, column), np.searchsorted(ordered, column, "right")
            for row in np.flatnonzero(ends > starts):
                candidates[int(row)].update(order[starts[row] : ends[row]].tolist())
        for row, numbers in candidates.items():
            mine = shingles(texts[row])
            overlapping[row] = any(
                jaccard(mine, self._of(number)) >= self._settings.threshold for number in sorted(numbers)
            )
        return overlapping

    def _of(self, index: int) -> NDArray[np.uint64]:
        if index not in self._shingles:
            self._shingles[index] = shingles(self._texts[index])
        return self._shingles[index]


def first_of_each(texts: Sequence[str], signed: Signatures, settings: NearDuplicates) -> NDArray[np.bool_]:
    """Which texts to keep so that no two kept ones are near-duplicates; [n].

    Goes through the texts in their order: one is dropped if it is at least `threshold` similar to one
    that was kept before it, never because of one that was dropped itself.
    """
    is_first = np.ones(len(texts), bool)
    shared = in_company(signed.keys)
    buckets: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    sets: dict[int, NDArray[np.uint64]] = {}
    slack = _STANDARD_ERRORS * math.sqrt(
        settings.threshold * (1 - settings.threshold) / settings.permutations
    )
    for row in np.flatnonzero(shared.any(axis=1)).tolist():
        bands = np.flatnonzero(shared[row]).tolist()
        mine = [(band, int(signed.keys[row, band])) for band in bands]
        numbers = sorted({number for key in mine for number in buckets.get(key, ())})
        if numbers and _is_near_duplicate(
            row, numbers, texts, signed.minhashes, sets, settings.threshold, slack
        ):
            is_first[row] = False
            sets.pop(row, None)
            continue
        for key in mine:
            buckets[key].append(row)
    return is_first


def _is_near_duplicate(
    row: int,
    others: Sequence[int],
    texts: Sequence[str],
    minhashes: NDArray[np.uint32],
    sets: dict[int, NDArray[np.uint64]],
    threshold: float,
    slack: float,
) -> bool:
    """Whether a text is a near-duplicate of one of the others, the likeliest compared first."""
    estimates = (minhashes[others] == minhashes[row]).mean(axis=1)
    for position in np.argsort(-estimates, kind="stable"):
        if estimates[position] < threshold - slack:
            return False
        candidate = others[position]
        if texts[row] == texts[candidate]:
            return True
        for index in (row, candidate):
            if index not in sets:
                sets[index] = shingles(texts[index])
        if jaccard(sets[row], sets[candidate]) >= threshold:
            return True
    return False


def in_company(keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which band keys occur more than once in their band; [n, bands].

    A text none of whose keys does has no near-duplicate, and `first_of_each` keeps it.
    """
    shared = np.zeros(keys.shape, bool)
    for band in range(keys.shape[1]):
        _, inverse, counts = np.unique(keys[:, band], return_inverse=True, return_counts=True)
        shared[:, band] = counts[inverse] > 1
    return shared


def normalised(text: str) -> bytes:
    """Text that shingles are taken from: case folded, white space collapsed, in UTF-8."""
    data = " ".join(text.casefold().split()).encode("utf-8", "replace")
    return data if len(data) >= _SHINGLE_BYTES else (data + _PAD)[:_SHINGLE_BYTES]


def _flat(texts: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """All shingles of all texts in one row, and where each text's begin; no loop over shingles."""
    parts = [normalised(text) for text in texts]
    lengths = np.fromiter((len(encoded) for encoded in parts), np.int64, len(parts))
    ends = np.cumsum(lengths)
    data = b"".join(parts)
    count = len(data) - _SHINGLE_BYTES + 1
    windows = np.ndarray((count,), dtype="<u8", buffer=data, strides=(1,))
    inside = np.ones(count, bool)
    # The last seven windows that begin in a text reach into the next one.
    for back in range(1, _SHINGLE_BYTES):
        crossing = ends[:-1] - back
        inside[crossing] = False
    offsets = np.zeros(len(parts) + 1, np.uint64)
    offsets[1:] = np.cumsum(lengths - (_SHINGLE_BYTES - 1))
    return _mixed(windows[inside]), offsets


def _mixed(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Spread 64-bit values evenly: the finaliser of MurmurHash3 (Appleby, public domain)."""
    mixed = values.astype(np.uint64, copy=True)
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xFF51AFD7ED558CCD)
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xC4CEB9FE1A85EC53)
    mixed ^= mixed >> np.uint64(33)
    return mixed
