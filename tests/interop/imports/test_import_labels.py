"""`import.labels`: a log without labels beside the file that has them."""

import json
import logging
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from score_files import Import, origins, transcripts, write_csv

from monitorbench.config.base import ConfigError, UserError
from monitorbench.runs.directory import read_manifest
from monitorbench.runs.files import file_sha256
from monitorbench.runs.keyed_log import VERDICTS, read_verdicts


def write_log(file: Path, rows: list[dict[str, Any]], **more: Any) -> Path:
    """A log as a service writes it: an id and a score, no label."""
    lines = [{"sample_id": row["transcript"], "score": row["suspicion"] / 10, **more} for row in rows]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def write_labels(file: Path, rows: list[dict[str, Any]], **more: Any) -> Path:
    return write_csv(file, [{"sample_id": row["transcript"], "label": row["attack"], **more} for row in rows])


def test_labels_come_from_the_second_file(tmp_path: Path, importing: Import):
    """If it failed: a log of decisions could not be held against what people found later."""
    rows = transcripts(80)
    log = write_log(tmp_path / "log.jsonl", rows, group="of the log", category=None)
    labels = write_labels(tmp_path / "labels.csv", rows[::-1], group="of the labels", category="leaks")
    run = importing(log, f"import.labels={labels}", "import.columns.category=category")
    verdicts = {one.sample_id: one for one in read_verdicts(run / VERDICTS)}
    manifest = read_manifest(run)["results"]
    imported = origins(tmp_path / "data" / manifest["data"])
    own = {one["own_id"]: verdicts[one["id"]] for one in imported}
    assert {name: one.score for name, one in own.items()} == {
        row["transcript"]: pytest.approx(row["suspicion"] / 10) for row in rows
    }
    assert {one["group_id"] for one in imported} == {"of the log"}
    table = pq.read_table(next((tmp_path / "data" / manifest["data"] / "test").glob("*.parquet")))
    assert set(table["category"].to_pylist()) == {"leaks"}
    is_bad = dict(zip(table["id"].to_pylist(), table["label"].to_pylist(), strict=True))
    assert {one["own_id"]: is_bad[one["id"]] == "misbehavior" for one in imported} == {
        row["transcript"]: bool(row["attack"]) for row in rows
    }
    assert [one["sha256"] for one in manifest["imported"]["files"]] == [file_sha256(log), file_sha256(labels)]


def test_what_has_no_label_is_left_out_and_counted(
    tmp_path: Path, importing: Import, caplog: pytest.LogCaptureFixture
):
    """If it failed: unlabelled traffic would count as benign, or be dropped in silence."""
    rows = transcripts(60)
    log = write_log(tmp_path / "log.jsonl", rows)
    known = [dict(row) for row in rows[:40]]
    known[0]["attack"] = None  # a row without a label says nothing either
    labels = write_labels(tmp_path / "labels.csv", known)
    with caplog.at_level(logging.INFO):
        run = importing(log, f"import.labels={labels}")
    scores = sorted(one.score or 0.0 for one in read_verdicts(run / VERDICTS))
    assert scores == pytest.approx(sorted(row["suspicion"] / 10 for row in rows[1:40]))
    assert "21 rows have no label there and are left out" in caplog.text
    assert "not used" not in caplog.text


def test_a_label_of_no_row_is_counted_and_named(
    tmp_path: Path, importing: Import, caplog: pytest.LogCaptureFixture
):
    """If it failed: the label of a mistyped id would be lost, and its row left out, without a word of it."""
    rows = transcripts(40)
    log = write_log(tmp_path / "log.jsonl", rows)
    mistyped = [row | {"transcript": f"typo{i}"} for i, row in enumerate(rows[:7])]
    labels = write_labels(tmp_path / "labels.csv", [*rows, *mistyped])
    with caplog.at_level(logging.INFO):
        importing(log, f"import.labels={labels}")
    assert "labels.csv: 47 labels, joined to 40 rows" in caplog.text
    assert "since no row has their id: 7 (typo0, typo1, typo2, typo3, typo4, …)" in caplog.text


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ("twice", UserError, r"labels.csv, line 5: sample_id='t0000' is there before; expected one row"),
        ("no id", UserError, r"labels.csv, line 3: sample_id='': no sample"),
        ("no column", UserError, r"labels.csv: import.columns.label: no such column; .*there are sample_id"),
        ("word", UserError, r"labels.csv, line 2: label='maybe' is no label"),
        ("both", ConfigError, r"has a column 'label' too; expected it in one of them"),
        ("other ids", UserError, r"no label of any sample of .*log.jsonl; expected the same ids"),
        ("no file", UserError, r"no such file"),
    ],
)
def test_labels_that_can_not_be_taken_are_refused(
    change: str, error: type[Exception], said: str, tmp_path: Path, importing: Import
):
    """If it failed: figures would stand on labels that contradict themselves, or on none."""
    rows = transcripts(3)
    log = write_log(tmp_path / "log.jsonl", rows, **({"label": "benign"} if change == "both" else {}))
    given: list[dict[str, Any]] = [{"sample_id": row["transcript"], "label": row["attack"]} for row in rows]
    if change == "twice":
        given.append(given[0])
    elif change == "no id":
        given[1]["sample_id"] = None
    elif change == "word":
        given[0]["label"] = "maybe"
    elif change == "other ids":
        given = [row | {"sample_id": f"x-{row['sample_id']}"} for row in given]
    elif change == "no column":
        given = [{"sample_id": row["sample_id"], "verdict": row["label"]} for row in given]
    labels = tmp_path / "labels.csv"
    if change != "no file":
        write_csv(labels, given)
    with pytest.raises(error, match=said):
        importing(log, f"import.labels={labels}")
    assert not (tmp_path / "data").exists(), "nothing is half-written"


def test_a_log_without_labels_says_where_they_may_come_from(tmp_path: Path, importing: Import):
    """If it failed: nobody would find the setting."""
    with pytest.raises(UserError, match=r"import.labels=FILE"):
        importing(write_log(tmp_path / "log.jsonl", transcripts(3)))


@pytest.mark.parametrize(
    ("steps", "refused"),
    [
        (["benign", None, "benign"], "line 6: step_label='': the step has no label"),
        (["benign", "benign", "benign"], ""),
        ([None, "misbehavior", None], ""),
    ],
)
def test_a_step_without_a_label_is_never_benign(
    tmp_path: Path, importing: Import, steps: list[str | None], refused: str
):
    """The step that nobody looked at may be the one that matters."""
    told = [["misbehavior", "benign", "benign"], ["benign"] * 3, steps]
    order = (told[0], steps) if refused else told
    rows = [
        {"id": f"t{i}", "step": step, "score": 0.1 * i, "step_label": label}
        for i, labels in enumerate(order)
        for step, label in enumerate(labels)
    ]
    file = write_csv(tmp_path / "steps.csv", rows)
    if not refused:
        assert importing(file)
        return
    with pytest.raises(UserError, match=refused):
        importing(file)


@pytest.mark.parametrize(("third", "draws"), [(None, 1), (None, 2), ("misbehavior", 1), ("benign", 1)])
def test_a_pair_is_one_of_each_label(tmp_path: Path, importing: Import, third: str | None, draws: int):
    """Pairs of one label, or of three samples, would be counted as pairs; draws of one sample are one."""
    labels = ["misbehavior", "benign", *([third] if third else [])]
    rows = [
        {"id": f"{i}-{label}-{n}", "draw": draw, "score": 0.4, "label": label, "pair_id": f"p{i}"}
        for i in range(20)
        for n, label in enumerate(labels)
        for draw in range(draws)
    ]
    file = write_csv(tmp_path / "pairs.csv", rows)
    if third is None:
        assert importing(file, "import.draws=all")
        return
    with pytest.raises(UserError, match=rf"line 4: pair_id='p0': its pair has a {third} sample already"):
        importing(file)
