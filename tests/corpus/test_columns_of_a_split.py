"""A split read as columns holds what the samples themselves say."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sealed import seal

from monitorbench.config.base import UserError
from monitorbench.config.datasets import SplitView
from monitorbench.corpus.columns import read_batches, read_columns
from monitorbench.corpus.store import n_rows, read_split, write_split
from monitorbench.metrics.columns import UNPAIRED, Columns
from monitorbench.records import Category, Label, Message, Role, Sample, Split, Task


def check(found: Columns, samples: list[Sample]) -> None:
    """Fail where a column differs from the samples."""
    assert found.sample_ids.to_pylist() == [one.id for one in samples]
    assert found.is_misbehavior.tolist() == [one.label is Label.MISBEHAVIOR for one in samples]
    assert found.group_ids().to_pylist() == [one.group_id for one in samples]
    assert [list(Category)[i] for i in found.categories] == [one.category for one in samples]
    assert [list(Task)[i] for i in found.tasks] == [one.task for one in samples]
    assert [found.source_names[i] for i in found.sources] == [one.source for one in samples]
    assert found.has_thinking.tolist() == [one.has_thinking for one in samples]
    pairs = sorted({one.pair_id for one in samples} - {""})
    expected = [pairs.index(one.pair_id) if one.pair_id else UNPAIRED for one in samples]
    ranks = {number: i for i, number in enumerate(sorted(set(found.pairs.tolist()) - {UNPAIRED}))}
    assert [ranks.get(number, UNPAIRED) for number in found.pairs.tolist()] == expected


@pytest.mark.parametrize("pairs_per_cell", [None, 1, 3])
@pytest.mark.parametrize(
    "subset", [("all",), ("safety_permission",), ("-safety_permission/code",), ("sycophancy_bias/qa",)]
)
def test_they_are_the_samples_of_the_same_view(
    starter: Path, subset: tuple[str, ...], pairs_per_cell: int | None
):
    """Answers would be scored against other samples' labels, or a view's metrics be of the whole split."""
    view = SplitView(subset=subset, pairs_per_cell=pairs_per_cell)
    check(read_columns(starter, Split.TEST, view), read_split(starter, Split.TEST, view))


def test_the_whole_split_in_one_or_in_batches(starter: Path):
    """The fitted baselines' scores would be beside other samples than they were computed from."""
    samples = read_split(starter, Split.TEST)
    check(read_columns(starter, Split.TEST), samples)
    batches = list(read_batches(starter, Split.TEST, rows=10))
    assert [one for batch in batches for one in batch] == samples
    assert max(map(len, batches)) == 10
    assert n_rows(starter, Split.TEST) == len(samples)


def test_a_trace_in_any_message_counts(make_sample: Callable[..., Sample], tmp_path: Path):
    """An agent thinks in some turns only; its samples would be in the slice without traces."""
    thinking = Message(role=Role.ASSISTANT, content="a", thinking="hm")
    plain = Message(role=Role.ASSISTANT, content="b")
    turns = [(plain,), (plain, thinking), (plain, plain), (thinking,)]
    samples = [make_sample("Do it.", parts, pair_id=f"{i}" * (i != 2)) for i, parts in enumerate(turns)]
    write_split(tmp_path, Split.TEST, samples)
    seal(tmp_path)
    found = read_split(tmp_path, Split.TEST)
    check(read_columns(tmp_path, Split.TEST), found)
    assert sorted(read_columns(tmp_path, Split.TEST).has_thinking.tolist()) == [False, False, True, True]


def test_what_is_not_there_is_said_in_a_line(starter: Path, tmp_path: Path):
    """A traceback out of a Parquet reader tells nobody what to do."""
    with pytest.raises(UserError, match="no such split; build it"):
        read_columns(tmp_path, Split.TEST)
    with pytest.raises(UserError, match="no such split; build it"):
        list(read_batches(tmp_path, Split.TEST))
    nothing = SplitView(subset=("safety_permission/reasoning",))
    with pytest.raises(UserError, match="no sample of"):
        read_columns(starter, Split.TEST, nothing)
