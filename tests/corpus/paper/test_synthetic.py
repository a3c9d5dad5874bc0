"""Nonsense for scale tests: any number of it, always the same, and never mistaken for data."""

from collections import Counter
from itertools import pairwise

import pytest
from drawing import draws
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.corpus.paper import units
from monitorbench.records import Category, Cell, Label, Sample, Task

QUOTAS = {
    Cell(Category.SAFETY_PERMISSION, Task.QA): 3,
    Cell(Category.SAFETY_PERMISSION, Task.CODE): 0,
    Cell(Category.SYCOPHANCY_BIAS, Task.REASONING): 2,
    Cell(Category.SPECIFICATION_GAMING, Task.CODE): 1,
}
ROUND = sum(QUOTAS.values())


def made(start: int, count: int, seed: int = 0) -> list[Sample]:
    return list(units.synthetic_samples(QUOTAS, start, count, seed))


@pytest.fixture(scope="module")
def sixty() -> list[Sample]:
    """The first sixty: ten rounds of the quotas."""
    return made(0, 60)


@draws(15)  # each call makes a vocabulary
@given(st.integers(0, 59), st.integers(0, 59))
def test_a_sample_depends_on_its_number_alone(sixty: list[Sample], one: int, other: int):
    """Units are made side by side in processes: cut elsewhere, the same corpus has to come out."""
    start, end = sorted((one, other))
    assert made(start, end - start) == sixty[start:end]


def test_another_seed_is_another_corpus(sixty: list[Sample]):
    """A seed that changes nothing makes every scale test run on the same lucky draw."""
    assert not {sample.id for sample in made(0, 60, seed=1)} & {sample.id for sample in sixty}


@pytest.mark.parametrize("start", [0, 4, 60])
def test_every_round_fills_the_quotas_exactly(start: int):
    """Topping up a cell that has no quota, or one cell alone, would not be the job that is timed."""
    cells = Counter(sample.cell for sample in made(start, 3 * ROUND))
    assert cells == {cell: 3 * quota for cell, quota in QUOTAS.items() if quota}


def test_it_is_named_for_what_it_is_everywhere(sixty: list[Sample]):
    """A card that passes nonsense for a real source would be a fraud."""
    for sample in sixty:
        assert sample.source == sample.subcategory == "synthetic"
        assert sample.group_id == sample.pair_id
        assert sample.group_id.startswith("synthetic-")


def test_the_samples_differ_and_both_labels_occur(sixty: list[Sample]):
    """Equal samples would fall as near-duplicates, and the timed corpus would be a small one."""
    assert len({sample.id for sample in sixty}) == 60
    assert len({sample.request for sample in sixty}) == 60
    words = [set(sample.response[0].content.split()) for sample in sixty]
    jaccard = [len(a & b) / len(a | b) for a, b in pairwise(words)]
    assert max(jaccard) < 0.1
    assert 15 < Counter(sample.label for sample in sixty)[Label.MISBEHAVIOR] < 45


def test_they_are_about_as_long_as_real_samples(sixty: list[Sample]):
    """A corpus of tiny texts would pass any speed bar."""
    lengths = sorted(len(sample.response[0].content) for sample in sixty)
    assert 300 < lengths[0] <= lengths[-1] < 2000
