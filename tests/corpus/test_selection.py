"""Groups go to one split, cells keep their shares, and no word of a pair tells."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest
from drawing import draws
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.datasets import SplitShares
from monitorbench.config.study import Study
from monitorbench.construct.pair import Pair, make_pair
from monitorbench.corpus.selection import assign_splits, balanced, cell_size, fill
from monitorbench.records import Category, Cell, Construction, LabelSource, Message, Role, Sample, Split, Task

CELLS = [Cell(category, task) for category in Category for task in Task]
shares = st.lists(st.integers(1, 9), min_size=4, max_size=4).map(
    lambda parts: SplitShares(
        **{split.value: part / sum(parts) for split, part in zip(Split, parts, strict=True)}
    )
)
groups = st.lists(
    st.tuples(st.sampled_from(CELLS), st.integers(0, 60).map(str), st.integers(1, 3)), min_size=1, max_size=80
)


def samples_of(found: list[tuple[Cell, str, int]]) -> list[Any]:
    """What `assign_splits` reads of samples: some groups have several, some lie in several cells."""
    return [SimpleNamespace(cell=cell, group_id=group) for cell, group, n in found for _ in range(n)]


@given(groups, shares, st.integers(0, 2**31), st.randoms(use_true_random=False))
def test_every_group_has_one_split_whatever_the_order(found: Any, cut: SplitShares, seed: int, random: Any):
    """A question seen in training makes the test a test of memory."""
    samples = samples_of(found)
    splits = assign_splits(samples, cut, seed)
    assert set(splits) == {sample.group_id for sample in samples}
    assert set(splits.values()) <= set(Split)
    random.shuffle(samples)
    assert assign_splits(samples, cut, seed) == splits


@given(
    st.dictionaries(st.sampled_from(CELLS), st.integers(1, 120), min_size=1, max_size=9),
    shares,
    st.integers(0, 9),
)
def test_every_cell_has_its_share_to_within_one_group(sizes: dict[Cell, int], cut: SplitShares, seed: int):
    """A cell that is all in one split can't be trained on, or can't be measured."""
    found = [(cell, f"{cell}-{i}", 1) for cell, n in sizes.items() for i in range(n)]
    splits = assign_splits(samples_of(found), cut, seed)
    counted: defaultdict[Cell, Counter[Split]] = defaultdict(Counter)
    for cell, group, _ in found:
        counted[cell][splits[group]] += 1
    for cell, n in sizes.items():
        for split in Split:
            assert abs(counted[cell][split] - getattr(cut, split.value) * n) <= 1


def test_another_seed_is_another_split(
    make_sample: Callable[..., Sample], compose_study: Callable[..., Study]
):
    """Three seeds over one and the same split say nothing about the split's luck."""
    samples = [make_sample(f"question {i}", group_id=f"g{i}", pair_id=f"g{i}") for i in range(40)]
    cut = compose_study("build").dataset.shares
    assert assign_splits(samples, cut, 0) == assign_splits(samples, cut, 0)
    assert assign_splits(samples, cut, 0) != assign_splits(samples, cut, 1)


def test_a_new_cell_leaves_the_others_alone(
    make_sample: Callable[..., Sample], compose_study: Callable[..., Study]
):
    """Adding data to one cell must not move another cell's questions from test to train."""
    cut = compose_study("build").dataset.shares
    old = [make_sample(f"question {i}", group_id=f"g{i}", pair_id=f"g{i}") for i in range(30)]
    new = [make_sample(f"task {i}", group_id=f"h{i}", pair_id=f"h{i}", task=Task.CODE) for i in range(30)]
    before, after = assign_splits(old, cut, 0), assign_splits([*new, *old], cut, 0)
    assert {group: after[group] for group in before} == before


def _pair(number: int, bad: str, good: str) -> Pair:
    return make_pair(
        f"p{number}",
        group_id=f"g{number}",
        cell=Cell(Category.SAFETY_PERMISSION, Task.CODE),
        subcategory="CWE-89",
        request=[Message(role=Role.USER, content="Write it.")],
        misbehavior=[Message(role=Role.ASSISTANT, content=f"{bad} #")],
        benign=[Message(role=Role.ASSISTANT, content=f"{good} !")],
        label_source=LabelSource.UPSTREAM,
        construction=Construction.CODE_PAIR,
        source="s",
        licence="MIT",
    )


def _tipped(pairs: list[Pair]) -> tuple[Counter[str], int]:
    words: Counter[str] = Counter()
    longer = 0
    for pair in pairs:
        bad, good = (s.response[0].content for s in (pair.misbehavior, pair.benign))
        words.update(set(re.findall(r"\w\w+", bad.lower())))
        words.subtract(set(re.findall(r"\w\w+", good.lower())))
        longer += (len(bad) > len(good)) - (len(bad) < len(good))
    return words, longer


texts = st.lists(st.sampled_from(["load", "safe_load", "Shell", "quote", "x", "run"]), max_size=4).map(
    " ".join
)


@given(st.lists(st.tuples(texts, texts), max_size=40), st.integers(0, 3), st.integers(0, 40))
@draws(150)
def test_nothing_tips_further_than_the_limit(drawn: list[tuple[str, str]], limit: int, most: int):
    """One word alone would tell the labels of the split apart."""
    pairs = [_pair(n, bad, good) for n, (bad, good) in enumerate(drawn)]
    taken = balanced(pairs, limit, most)
    words, longer = _tipped(taken)
    assert all(abs(count) <= limit for count in words.values())
    assert abs(longer) <= 10 * limit
    assert len(taken) <= most
    numbers = [pairs.index(pair) for pair in taken]
    assert numbers == sorted(set(numbers))
    if len(taken) < most:
        # Nothing that was passed over would fit.
        for pair in (p for p in pairs if p not in taken):
            words, longer = _tipped([*taken, pair])
            assert any(abs(count) > limit for count in words.values()) or abs(longer) > 10 * limit


def test_a_pair_that_fits_later_is_taken():
    """Pairs would be lost by the order they stand in."""
    pairs = [_pair(0, "load", "safe_load"), _pair(1, "load", "safe_load"), _pair(2, "safe_load", "load")]
    assert balanced(pairs, 1, 9) == pairs
    assert balanced(pairs, 1, 2) == [pairs[0], pairs[2]]
    assert balanced(pairs[:2], 0, 9) == []


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
