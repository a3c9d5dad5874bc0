"""How much of each source a cell takes: as much as honestly goes, and never a sample more."""

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.corpus.selection import cell_size, fill

SOURCES = ("a", "b", "c", "d")
cents = st.dictionaries(st.sampled_from(SOURCES), st.integers(1, 100), min_size=4, max_size=4)
candidates = st.lists(st.sampled_from(SOURCES), max_size=70)
quotas = st.integers(0, 60)


def shares_of(parts: dict[str, int]) -> dict[str, float]:
    return {source: part / 100 for source, part in parts.items()}


def caps_of(size: int, parts: dict[str, int]) -> dict[str, int]:
    """Each source's share, exactly, rounded as seats are: what is lost goes to the largest remainders."""
    exact = {source: Fraction(part, 100) * size for source, part in parts.items()}
    caps = {source: int(share) for source, share in exact.items()}
    lost = size - sum(caps.values()) if sum(parts.values()) >= 100 else 0
    for source in sorted(parts, key=lambda source: (caps[source] - exact[source], source))[: max(0, lost)]:
        caps[source] += 1
    return caps


def fits(size: int, available: Counter[str], parts: dict[str, int]) -> bool:
    """Whether `size` samples can be had with no source above its cap."""
    caps = caps_of(size, {source: parts[source] for source in available})
    return sum(min(n, caps[source]) for source, n in available.items()) >= size


@given(candidates, cents, quotas)
def test_the_size_is_the_largest_that_keeps_the_shares(found: list[str], parts: dict[str, int], quota: int):
    """A smaller cell throws data away; a larger one lets one source speak for all."""
    available = Counter(found)
    expected = max(size for size in range(min(quota, len(found)) + 1) if fits(size, available, parts))
    assert cell_size(available, shares_of(parts), quota) == expected


@given(candidates, cents, quotas)
def test_a_filled_cell_keeps_quota_and_shares_of_what_it_really_got(
    found: list[str], parts: dict[str, int], quota: int
):
    """In a short cell a share of the quota would be no share: one source could be all of it."""
    chosen = fill(found, shares_of(parts), quota)
    assert len(chosen) == cell_size(Counter(found), shares_of(parts), quota) <= quota
    assert chosen == sorted(set(chosen))  # nothing twice: no padding
    assert all(0 <= index < len(found) for index in chosen)
    caps = caps_of(len(chosen), {source: parts[source] for source in set(found)})
    for source, n in Counter(found[index] for index in chosen).items():
        assert n <= caps[source] < Fraction(parts[source], 100) * len(chosen) + 1


@given(candidates, cents, quotas)
def test_the_first_candidates_are_taken(found: list[str], parts: dict[str, int], quota: int):
    """Which samples are in the corpus would otherwise depend on more than the seed's order."""
    shares = shares_of(parts)
    chosen = fill(found, shares, quota)
    assert fill(tuple(found), dict(reversed(shares.items())), quota) == chosen
    taken = Counter(found[index] for index in chosen)
    for index, source in enumerate(found[: chosen[-1]] if chosen else ()):
        if index not in chosen:
            # Passed over only because its source was full: by its own earlier candidates.
            assert [i for i in chosen if found[i] == source and i > index] == []
            caps = caps_of(len(chosen), {source: parts[source] for source in set(found)})
            assert taken[source] == caps[source]


@pytest.mark.parametrize(
    ("available", "shares", "quota", "size"),
    [
        ({"a": 100, "b": 100}, {"a": 1.0, "b": 1.0}, 150, 150),
        ({"a": 100}, {"a": 1.0}, 150, 100),
        ({"a": 100}, {"a": 0.5}, 150, 0),  # a source alone is never half of anything
        ({"a": 100, "b": 10}, {"a": 0.9, "b": 1.0}, 1000, 100),
        ({"a": 100, "b": 3}, {"a": 0.7, "b": 1.0}, 10, 10),  # .7 * 10 in binary is below 7
        ({"a": 100, "b": 3}, {"a": 0.7, "b": 1.0}, 11, 10),
        ({}, {}, 5, 0),
        ({"a": 9, "b": 9, "c": 9}, {"a": 0.31, "b": 0.37, "c": 0.34}, 10, 10),  # rounded down they are 9
        ({"a": 9, "b": 9, "c": 9}, {"a": 0.34, "b": 0.34, "c": 0.34}, 2, 2),  # rounded down, none is left
        ({"a": 9, "b": 9, "c": 9}, {"a": 0.33, "b": 0.33, "c": 0.33}, 9, 0),  # never enough together
        ({"a": 5}, {"a": 1.0}, 0, 0),
    ],
)
def test_known_cells(available: dict[str, int], shares: dict[str, float], quota: int, size: int):
    """Worked by hand: what the stated shares mean."""
    assert cell_size(available, shares, quota) == size
