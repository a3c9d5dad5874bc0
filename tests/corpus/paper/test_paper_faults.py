"""What `dataset=paper_local` can't honestly have, and a full disk: one line, and nothing by halves."""

import errno
import json
import os
import random
import resource
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_mirror import (
    CODE,
    QA,
    Mirrored,
    built,
    diasafety_rows,
    jailbreakbench_archive,
    overrides,
    shards,
    write_mirror,
)
from studies import study

from monitorbench.config.base import UserError
from monitorbench.corpus import store
from monitorbench.corpus.paper import candidates, units
from monitorbench.corpus.paper.units import Unit
from monitorbench.corpus.store import ShardWriter, read_split, to_table, write_split
from monitorbench.records import Label, Message, Role, Sample, Split
from monitorbench.runs.directory import read_manifest


def test_a_bad_row_of_a_source_in_parts_is_counted_once(tmp_path: Path):
    """The manifest would state several times as many bad rows as there are."""
    mirror = write_mirror(tmp_path / "mirror")
    (mirror / "mbpp.jsonl").write_text('{"task_id": 1}\n')
    changes = {
        "dataset__sources__mbpp": "{benchmark: true, max_share: 1.0}",
        "source__mbpp__files": '[{path: mbpp.jsonl, mirror: mbpp.jsonl, sha256: ""}]',
    }
    composed = study(*overrides(mirror, tmp_path / "data", **changes), primary="build")
    counted: Counter[str] = Counter()
    inputs = units.paper_inputs(composed)
    for unit in units.units(inputs):
        if unit.source == "mbpp":
            assert sum(len(piece.samples) for piece in units.construct(inputs, unit, counted)) == 0
    assert counted.total() == 1


# --- what can't be had ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({}, ["specification_gaming.qa.without_thinking=3", "only 0 pairs"]),
        (
            {"benchmark": {CODE: (7, 0)}, "corpus": {CODE: 1000}},
            ["safety_permission.code=1000", "samples"],
        ),
    ],
    ids=["benchmark", "corpus"],
)
def test_a_short_cell_is_one_line(
    small: Mirrored, same_candidates: Path, changes: dict[str, Any], parts: list[str]
):
    """Asked for the paper's numbers, nobody should find out from a plot that a cell is empty."""
    with pytest.raises(UserError) as caught:
        built(small.mirror, same_candidates, dataset__allow_short="false", **changes)
    message = str(caught.value)
    assert "\n" not in message
    for part in (*parts, "only", "dataset.allow_short=true"):
        assert part in message
    for manifest in same_candidates.glob("*/manifest.json"):
        assert json.loads(manifest.read_text())["status"] != "done"


@pytest.mark.usefixtures("threads")
def test_a_refused_corpus_does_not_stay_on_the_disk(small: Mirrored, same_candidates: Path):
    """Anyone who reads the folder's Parquet files has the short corpus that was just refused."""
    with pytest.raises(UserError):
        built(
            small.mirror,
            same_candidates,
            benchmark={CODE: (7, 0)},
            corpus={CODE: 1000},
            dataset__allow_short="false",
        )
    assert not list(same_candidates.glob("*/train/*.parquet"))


@pytest.mark.usefixtures("threads")
def test_a_short_development_split_is_stated(small: Mirrored, same_candidates: Path):
    """A threshold calibrated on three pairs where forty were asked for is a guess."""
    directory = built(
        small.mirror,
        same_candidates,
        dataset__development_pairs="500",
        dataset__splits="[test,validation,calibration]",
    )
    assert {"validation", "calibration"} <= set(read_manifest(directory)["results"]["shortfall"])


@pytest.mark.usefixtures("threads")
def test_equal_content_with_opposite_labels_never_gets_in(tmp_path: Path):
    """The same response to the same request as both labels is a mistake in the data no monitor can win."""
    mirror = write_mirror(tmp_path / "mirror")
    clash = diasafety_rows()[50]
    row = {"index": 50, "goal": clash["context"], "response": clash["response"]}
    archive = jailbreakbench_archive({**row, "jailbroken": clash["label"] == "Safe"})
    (mirror / "jailbreakbench.tar.gz").write_bytes(archive)
    whole = "{benchmark: false, max_share: 1.0}"
    shares = {f"dataset__sources__{name}": whole for name in ("diasafety", "jailbreakbench")}
    nulls = {"dataset__sources__sven": "null", "dataset__sources__gsm8k": "null"}
    try:
        directory = built(mirror, tmp_path / "data", benchmark={}, corpus={QA: 1000}, **nulls, **shares)
    except UserError as error:
        if "opposite labels" not in str(error):
            raise
        return
    labels: dict[tuple[Any, ...], set[Label]] = {}
    for sample in read_split(directory, Split.TRAIN):
        labels.setdefault((sample.request, sample.response), set()).add(sample.label)
    assert [content for content, found in labels.items() if len(found) > 1] == []


# --- a full disk ---------------------------------------------------------------------------------------


def _full(*_arguments: Any, **_settings: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _half_then_full(_table: Any, where: Any, **_settings: Any) -> None:
    Path(where).write_bytes(b"PAR1 half of it")
    _full()


def test_a_full_disk_leaves_no_half_shard(
    make_sample: Callable[..., Sample], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Half a shard would be read as a whole one, or stop the stage after this."""
    old = write_split(tmp_path, Split.TEST, [make_sample()])
    before = shards(tmp_path)
    monkeypatch.setattr(store.pq, "write_table", _half_then_full)
    samples = [make_sample(pair_id="another")]
    writer = ShardWriter(tmp_path / "train", "cell", 1)
    for write in (
        lambda: write_split(tmp_path, Split.TEST, samples),
        lambda: write_split(tmp_path, Split.VALIDATION, samples),
        lambda: writer.write(to_table(samples)),
    ):
        with pytest.raises(UserError) as caught:
            write()
        assert "\n" not in str(caught.value)
        assert ".parquet" in str(caught.value)
        assert os.strerror(errno.ENOSPC) in str(caught.value)
    assert shards(tmp_path) == before
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [
        tmp_path / "test" / "part-00000.parquet"
    ]
    monkeypatch.undo()
    assert write_split(tmp_path, Split.TEST, [make_sample()]) == old


def test_a_disk_that_takes_no_more_is_one_line(make_sample: Callable[..., Sample], tmp_path: Path):
    """What Arrow itself raises when a write fails, not what a test thinks it raises."""
    noise = random.Random(0).randbytes(400_000).hex()
    samples = [make_sample(response=[Message(role=Role.ASSISTANT, content=noise)])]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(UserError) as caught:
            write_split(tmp_path, Split.TEST, samples)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "\n" not in str(caught.value)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_full_disk_while_candidates_are_constructed_is_one_line(
    small: Mirrored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The candidates are the most that is written; a traceback there says nothing of the disk to clear."""
    inputs = units.paper_inputs(study(*overrides(small.mirror, tmp_path / "data"), primary="build"))
    monkeypatch.setattr(candidates, "to_table", _full)
    with pytest.raises(UserError) as caught:
        candidates._write(inputs, candidates.Candidates(Unit("sven"), tmp_path / "data" / "sven-0"))
    assert "\n" not in str(caught.value)
    assert os.strerror(errno.ENOSPC) in str(caught.value)
    assert list((tmp_path / "data").iterdir()) == []
