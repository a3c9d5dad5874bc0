"""Verdicts of runs and of verdict files come back as one table, joined with labels and cells.

The library says of a run what the stages say of it.
"""

import hashlib
import json
import shutil

import polars as pl
import pytest

from monitorbench import auroc, calibrate, compare, rates, read_runs
from monitorbench.judging.evaluate import evaluate
from monitorbench.records import Label
from monitorbench.scoring.score import score_run

FILES = ("verdicts-qwen2_5_coder_0_5b.jsonl", "verdicts-smollm2_135m.jsonl")


@pytest.fixture
def shipped(examples):
    return read_runs([examples / name for name in FILES], data=examples / "dataset.jsonl")


def test_the_shipped_verdicts_are_of_the_shipped_dataset(shipped, examples):
    rows = [json.loads(line) for line in (examples / "dataset.jsonl").read_text().splitlines()]
    assert len(shipped) == 2 * len(rows)
    for monitor in ("qwen2_5_coder_0_5b", "smollm2_135m"):
        found = shipped.where(monitor=monitor)
        assert sorted(found["label"].to_pylist()) == sorted(row["label"] for row in rows)
        calibration = found.where(split="calibration")
        benign = {
            g
            for g, y in zip(
                calibration["group_id"].to_pylist(), calibration["label"].to_pylist(), strict=True
            )
            if y == Label.BENIGN
        }
        assert len(benign) >= 46  # one false alarm among them is allowed at .1 and .05
        assert not benign & set(found.where(split="test")["group_id"].to_pylist())
        threshold = calibrate(calibration["label"], calibration["score"], calibration["group_id"], alpha=0.1)
        test = found.where(split="test")
        assert rates(test["label"], threshold.flag(test["score"])).n == 112


def test_two_monitors_are_in_the_same_order(shipped):
    test = shipped.where(split="test")
    ours, theirs = (test.where(monitor=name) for name in ("smollm2_135m", "qwen2_5_coder_0_5b"))
    assert ours["sample_id"].equals(theirs["sample_id"])
    found = compare(ours["label"], ours["score"], theirs["score"], ours["group_id"]).auroc
    assert found.b == auroc(theirs["label"], theirs["score"], theirs["group_id"]).auroc.value


def test_it_is_a_data_frame_of_either_kind(shipped):
    frame = shipped.to("polars")
    assert isinstance(frame, pl.DataFrame)
    of_pandas = shipped.to("pandas")
    assert list(of_pandas.columns) == frame.columns == shipped.to("pyarrow").column_names
    same = rates(frame["label"], frame["flagged"])
    assert (
        rates(of_pandas["label"], of_pandas["flagged"]) == same == rates(shipped["label"], shipped["flagged"])
    )
    with pytest.raises(ValueError, match="'excel': expected pandas, polars or pyarrow"):
        shipped.to("excel")
    with pytest.raises(ValueError, match="'socre' is no column; expected run, monitor"):
        shipped["socre"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1: .*expected one JSON object a line"),
        ('{"label": "benign"}', "no column says which sample a row is of"),
        ('{"sample_id": "a", "label": "fine", "score": 0.1}', "line 1: label='fine' is no label"),
        ('{"sample_id": "a", "label": "benign", "score": 1.5}', "line 1: score='1.5' is outside the scale"),
        ('{"sample_id": "a", "label": "benign", "score": 0.1}', "sample a is not in the dataset"),
        ("", "no row in it"),
    ],
)
def test_a_bad_verdict_file_is_one_line(tmp_path, examples, line, message):
    file = tmp_path / "verdicts-mine.jsonl"
    file.write_text(line + "\n")
    with pytest.raises(ValueError, match=message) as caught:
        read_runs(file, data=examples / "dataset.jsonl")
    assert "\n" not in str(caught.value)


def test_an_unscored_line_is_never_benign(tmp_path, examples):
    lines = (examples / FILES[1]).read_text().splitlines()
    first = json.loads(lines[0]) | {"label": None, "unscored": "refused", "score": None}
    file = tmp_path / "verdicts-mine.jsonl"
    file.write_text("\n".join([json.dumps(first), *lines[1:]]))
    found = read_runs(file, data=examples / "dataset.jsonl").where(sample_id=first["sample_id"])
    assert found["flagged"].to_pylist() == [None]
    assert found["unscored"].to_pylist() == ["refused"]
    assert rates(found["label"], found["flagged"]).n_unscored == 1


@pytest.mark.parametrize(
    ("runs", "data", "message"),
    [
        ("nowhere", None, "nowhere: not there"),
        (".", None, "no finished evaluation run there"),
        ("v.jsonl", None, "a verdict file; name the dataset it is of"),
        ("v.jsonl", "gone.jsonl", "gone.jsonl does not exist"),
    ],
)
def test_what_is_not_there_is_named(tmp_path, monkeypatch, examples, runs, data, message):
    monkeypatch.chdir(tmp_path)
    shutil.copy(examples / FILES[0], "v.jsonl")
    with pytest.raises(ValueError, match=message):
        read_runs(runs, data=data)


def test_a_run_read_back_has_the_numbers_of_its_metrics(use_engine, says, study, tmp_path):
    def script(ids, decoding, with_adapter):
        draw = hashlib.sha256(f"{ids}".encode()).digest()[0] / 256
        return says("maybe" if draw > 0.9 else "yes" if draw > 0.4 else "no", draw * 0.98 + 0.01)

    use_engine(script)
    run = evaluate(study())
    metrics = json.loads((score_run(study(f"run={run}")) / "metrics.json").read_text())
    of_all = metrics["monitors"]["smollm2_135m"]["direct"]["overall"]
    found = read_runs(tmp_path / "runs")
    assert found.table.equals(read_runs(run).table)
    rated = rates(found["label"], found["flagged"])
    assert rated.n_unscored == of_all["n_unscored"] > 0
    assert [rated.miss_rate.value, list(rated.miss_rate.interval)] == [
        of_all["miss_rate"],
        of_all["miss_rate_ci"],
    ]
    ranked = auroc(found["label"], found["score"], found["group_id"]).auroc
    assert ranked.value == of_all["auroc"]
    assert ranked.interval == pytest.approx(tuple(of_all["auroc_ci"]), abs=0.02)  # other draws


def test_a_run_that_did_not_finish_is_refused(use_engine, says, study):
    use_engine(lambda *_: says("yes"))
    run = evaluate(study())
    manifest = run / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"done"', '"running"'))
    with pytest.raises(ValueError, match="not as a stage wrote it"):
        read_runs(run)
