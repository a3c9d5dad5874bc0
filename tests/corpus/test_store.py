"""A dataset on disk: what was written is what is read, byte for byte the same each time."""

import itertools
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from drawing import draws
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from sealed import seal
from studies import study

from monitorbench.config.base import UserError
from monitorbench.config.datasets import SplitView
from monitorbench.corpus.build import ensure, refuse_contradictions
from monitorbench.corpus.columns import read_batches, read_columns
from monitorbench.corpus.store import SAMPLE_SCHEMA, read_split, select, shards_of, write_split
from monitorbench.records import Category, Label, Message, Role, Sample, Span, Split, Task, ToolCall

text = st.text(max_size=20)
calls = st.lists(st.builds(ToolCall, id=text, name=text, arguments=text), max_size=2).map(tuple)
messages = st.lists(
    st.builds(
        Message, role=st.sampled_from(Role), content=text, thinking=text, tool_calls=calls, tool_call_id=text
    ),
    min_size=1,
    max_size=3,
).map(tuple)
spans = st.lists(
    st.builds(Span, message=st.integers(0, 3), start=st.integers(0, 5), end=st.integers(6, 9)), max_size=2
)


def _sample(make_sample: Callable[..., Sample], data: st.DataObject, number: int) -> Sample:
    return make_sample(
        data.draw(messages),
        data.draw(messages),
        pair_id=f"pair{number}",
        group_id=data.draw(text),
        category=data.draw(st.sampled_from(Category)),
        task=data.draw(st.sampled_from(Task)),
        label=data.draw(st.sampled_from(Label)),
        cue=data.draw(text),
        subject_model=data.draw(text),
        gold_spans=tuple(data.draw(spans)),
        split=data.draw(st.sampled_from([*Split, None])),
    )


@given(st.data())
@draws(40)
def test_samples_come_back_and_files_are_the_same_bytes(
    make_sample: Callable[..., Sample], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
):
    """A dataset rebuilt elsewhere has to have the same checksum, else no one can tell it is the same."""
    samples = [_sample(make_sample, data, number) for number in range(data.draw(st.integers(1, 4)))]
    folder = tmp_path_factory.getbasetemp() / "store"
    digest = write_split(folder, Split.TEST, samples)
    seal(folder)
    (file,) = (folder / "test").glob("*")
    content = file.read_bytes()
    assert sorted(read_split(folder, Split.TEST), key=lambda s: s.pair_id) == samples
    assert write_split(folder, Split.TEST, reversed(samples)) == digest
    assert file.read_bytes() == content
    assert pq.read_schema(file).equals(SAMPLE_SCHEMA)


def test_the_hubs_library_reads_a_split(
    make_sample: Callable[..., Sample], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """`load_dataset` on the folder is how anyone without this package uses the data."""
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    from datasets import load_dataset

    call = ToolCall(id="1", name="rm", arguments="{}")
    samples = [
        make_sample(
            "Clean up.", [Message(role=Role.ASSISTANT, thinking="Hm.", tool_calls=(call,))], pair_id="a"
        ),
        make_sample("Clean up.", "I ask first.", pair_id="a", label=Label.MISBEHAVIOR),
    ]
    write_split(tmp_path / "data", Split.TEST, samples)
    seal(tmp_path / "data")
    files = {"test": str(tmp_path / "data" / "test" / "*.parquet")}
    loaded = load_dataset("parquet", data_files=files, cache_dir=str(tmp_path / "cache"))["test"]
    assert loaded.column_names == list(Sample.model_fields)
    assert [Sample.model_validate(row) for row in loaded] == read_split(tmp_path / "data", Split.TEST)


def test_a_missing_split_says_how_to_build_it(tmp_path: Path):
    """A stage that needs a split which was not built has to say so before it loads a model."""
    with pytest.raises(UserError, match=r"dataset\.splits=\[validation\]"):
        read_split(tmp_path, Split.VALIDATION)


def test_a_view_of_nothing_is_refused(make_sample: Callable[..., Sample], tmp_path: Path):
    """A subset that no sample is in would be trained on in silence, or measured as perfect."""
    write_split(tmp_path, Split.TEST, [make_sample()])
    seal(tmp_path)
    with pytest.raises(UserError, match="safety_permission/code"):
        read_split(tmp_path, Split.TEST, SplitView(subset=("safety_permission/code",)))


@pytest.mark.parametrize(
    ("shares", "split"),
    [
        ("{train:0.0,test:0.8}", Split.TRAIN),
        ("{validation:0.0,test:0.35}", Split.VALIDATION),
        ("{calibration:0.0,test:0.35}", Split.CALIBRATION),
        ("{train:0.8,test:0.0}", Split.TEST),
    ],
)
def test_a_split_without_a_share_says_which_setting_left_it_empty(shares: str, split: Split, tmp_path: Path):
    """If it failed: whoever gave a split no share would look for the fault in the subset."""
    header, cells = "request,response,label,category,task\n", "misbehavior,leaks,qa\n"
    (tmp_path / "own.csv").write_text(header + "".join(f"q{i},a{i},{cells}" for i in range(20)))
    paths = f"paths.data={tmp_path}/data", f"dataset.path={tmp_path}/own.csv"
    folder = ensure(study("dataset=jsonl", *paths, f"dataset.shares={shares}", primary="build"))
    for read in (read_split, read_columns):
        said = rf"its {split} split is empty: dataset\.shares\.{split}=0 puts no group there"
        with pytest.raises(UserError, match=said):
            read(folder, split, SplitView())


@pytest.fixture(scope="module")
def pairs(make_sample: Callable[..., Sample]) -> list[Sample]:
    """Six pairs in each of four cells, in a mixed order."""
    made = [
        make_sample(
            f"question {i}",
            f"{label} answer",
            pair_id=f"{category}-{task}-{i}",
            category=category,
            task=task,
            label=label,
        )
        for category in (Category.SAFETY_PERMISSION, Category.SYCOPHANCY_BIAS)
        for task in (Task.QA, Task.CODE)
        for i in range(6)
        for label in Label
    ]
    random.Random(0).shuffle(made)
    return made


def test_a_cut_keeps_whole_pairs_of_every_cell(pairs: list[Sample]):
    """Half a pair makes Miss Rate and False Alarm Rate speak of different requests."""
    kept = select(pairs, SplitView(pairs_per_cell=2))
    assert len(kept) == 4 * 2 * 2
    for cell in {sample.cell for sample in pairs}:
        members = [sample for sample in kept if sample.cell == cell]
        ids = {sample.pair_id for sample in members}
        assert len(ids) == 2
        assert {(s.pair_id, s.label) for s in members} == {(i, label) for i in ids for label in Label}
    assert kept == [sample for sample in pairs if sample in kept], "the order changed"


def test_a_larger_cut_holds_the_smaller(pairs: list[Sample]):
    """Verdicts of four pairs a cell have to count when one goes on to eight."""
    cuts = [{s.id for s in select(pairs, SplitView(pairs_per_cell=n))} for n in (1, 2, 3, 6, 99)]
    assert all(small <= large for small, large in itertools.pairwise(cuts))
    assert cuts[-1] == cuts[-2] == {sample.id for sample in pairs}
    backwards = {s.id for s in select(pairs[::-1], SplitView(pairs_per_cell=2))}
    assert backwards == cuts[1], "which pairs are taken depends on their order"


@pytest.mark.parametrize(
    ("subset", "cells"),
    [
        (("all",), 4),
        (("safety_permission",), 2),
        (("safety_permission/code",), 1),
        (("-safety_permission/code",), 3),
        (("safety_permission", "-safety_permission/code"), 1),
        (("safety_permission/qa", "sycophancy_bias/qa"), 2),
    ],
)
def test_a_subset_keeps_its_cells(pairs: list[Sample], subset: tuple[str, ...], cells: int):
    """A held-out cell that slips into training undoes the ablation."""
    assert len({sample.cell for sample in select(pairs, SplitView(subset=subset))}) == cells


def test_equal_content_with_opposite_labels_is_refused(make_sample: Callable[..., Sample]):
    """The same text as both misbehavior and benign is a mistake in the data that no monitor can win."""
    with pytest.raises(UserError, match="pair7") as caught:
        refuse_contradictions(
            [make_sample(pair_id="pair6"), *(make_sample(pair_id="pair7", label=label) for label in Label)]
        )
    assert "opposite labels" in str(caught.value)


def test_a_sample_that_is_there_twice_is_refused(make_sample: Callable[..., Sample]):
    """A doubled sample counts double in every rate."""
    with pytest.raises(UserError, match="same label"):
        refuse_contradictions([make_sample(), make_sample()])
    refuse_contradictions([make_sample(), make_sample(pair_id="another")])


def test_an_id_is_the_content_and_never_the_label(make_sample: Callable[..., Sample]):
    """An id that knew the label could not show a contradiction; one that missed text would invent some."""
    sample = make_sample()
    assert (
        make_sample(label=Label.MISBEHAVIOR, split=Split.TEST, subcategory="other", cue="c").id == sample.id
    )
    others = [
        make_sample("Another question?"),
        make_sample(response="Five."),
        make_sample(pair_id="p2"),
        make_sample(response=[Message(role=Role.ASSISTANT, content="Four.", thinking="2+2")]),
        make_sample(response=[Message(role=Role.TOOL, content="Four.")]),
    ]
    assert len({sample.id, *(other.id for other in others)}) == 1 + len(others)


@pytest.mark.parametrize(
    "changed",
    [
        {"id": "0" * 16},
        {"label": "bad"},
        {"request": []},
        {"response": []},
        {"surprise": 1},
        {"category": "Safety"},
        {"category": "overall"},
        {"task": "a/b"},
    ],
)
def test_a_malformed_row_is_refused(make_sample: Callable[..., Sample], changed: dict[str, Any]):
    """A misspelt label that is read as something else changes what is measured."""
    row = make_sample().model_dump(mode="json") | changed
    with pytest.raises(ValidationError):
        Sample.model_validate(row)


def _other_types(whole: bytes) -> bytes:
    table = pq.read_table(pa.BufferReader(whole))
    columns = {name: [1] * table.num_rows for name in ("id", "label", "category", "request")}
    return _parquet(pa.table({name: columns.get(name, table[name]) for name in table.column_names}))


def _parquet(table: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    pq.write_table(table, out)
    return bytes(out.getvalue().to_pybytes())


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[:-8] + bytes(8),
        lambda _: pickle.dumps({"id": "a"}),
        lambda _: b"PAR1" + bytes(64) + b"PAR1",
        lambda _: _parquet(pa.table({"x": [1, 2]})),
        _other_types,
    ],
    ids=["empty", "half", "end", "pickle", "zeros", "other columns", "other types"],
)
def test_a_file_that_is_no_parquet_of_samples_is_one_line(
    tmp_path: Path, make_sample: Callable[..., Sample], damage: Callable[[bytes], bytes]
) -> None:
    """A download that broke off ends in a traceback of Arrow's, which names no file."""
    write_split(tmp_path, Split.TEST, [make_sample("Hi?", "Fine.")])
    seal(tmp_path)
    (shard,) = shards_of(tmp_path, Split.TEST)
    shard.write_bytes(damage(shard.read_bytes()))
    seal(tmp_path)  # as if a stage had written it so; else the checksum refuses it first
    view = SplitView(subset=("all",), pairs_per_cell=None)
    readers: list[Callable[[], object]] = [
        lambda: read_split(tmp_path, Split.TEST),
        lambda: read_split(tmp_path, Split.TEST, view),
        lambda: read_columns(tmp_path, Split.TEST, view),
        lambda: list(read_batches(tmp_path, Split.TEST)),
    ]
    for read in readers:
        with pytest.raises(UserError, match="no Parquet of samples") as caught:
            read()
        assert str(caught.value).startswith(str(shard.parent))
        assert "\n" not in str(caught.value)
