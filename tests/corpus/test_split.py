"""No question on both sides of a split, and every cell in every split."""

from collections import Counter, defaultdict
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.datasets import SplitShares
from monitorbench.config.study import Study
from monitorbench.corpus.selection import assign_splits
from monitorbench.records import Category, Cell, Sample, Split, Task

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
