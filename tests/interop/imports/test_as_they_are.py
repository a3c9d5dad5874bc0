"""Files as people have them: separators, arrays, folders, logs with samples that broke, draws that tie."""

import itertools
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from drawing import draws
from hypothesis import given
from hypothesis import strategies as st
from score_files import Import, by_line, origins, scores_of

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.imports import Import as Settings
from monitorbench.config.imports import ImportColumns
from monitorbench.interop.imports.readers.open import read_files
from monitorbench.interop.imports.scores import combined
from monitorbench.interop.inspect import read as read_log
from monitorbench.runs.directory import read_manifest
from monitorbench.sources.files.inspect_archive import Logged

ROWS: list[dict[str, Any]] = [
    {"id": f"s{i}", "label": ("benign", "misbehavior")[i % 2], "score": i / 8} for i in range(8)
]


def separated(mark: str) -> Callable[[list[dict[str, Any]]], str]:
    return lambda rows: "".join(
        mark.join(map(str, values)) + "\n" for values in (rows[0], *(row.values() for row in rows))
    )


@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("s.json", json.dumps),
        ("s.json", lambda rows: "\ufeff \n" + json.dumps(rows, indent=2)),
        ("s.json", by_line),
        ("s.json", lambda rows: json.dumps({row.pop("id"): row for row in map(dict, rows)})),
        ("s.json", lambda rows: json.dumps({k: {str(i): r[k] for i, r in enumerate(rows)} for k in rows[0]})),
        (
            "s.json",
            lambda rows: json.dumps({k: {f"{i}7": r[k] for i, r in enumerate(rows)} for k in rows[0]}),
        ),
        ("s.json", lambda rows: json.dumps({k: {r["id"]: r[k] for r in rows} for k in ("label", "score")})),
        ("s.json", lambda rows: json.dumps({k: [r[k] for r in rows] for k in rows[0]})),
        (
            "s.json",
            lambda rows: json.dumps(
                {
                    "columns": ["label", "score"],
                    "index": [r["id"] for r in rows],
                    "data": [[r["label"], r["score"]] for r in rows],
                }
            ),
        ),
        ("s.jsonl", json.dumps),
        ("s.ndjson", by_line),
        ("s.csv", separated(",")),
        ("s.csv", separated(";")),
        ("s.csv", separated("\t")),
        ("s.csv", separated("|")),
        ("s.csv", lambda rows: "sep=^\r\n" + separated("^")(rows)),
        ("s.csv", lambda rows: '\ufeff\n"sep=;"\n' + separated(";")(rows)),
        ("s.csv", lambda rows: "# by x, 1.2\n#\n\n" + separated(",")(rows)),
        ("s.csv", lambda rows: "# a;b;c;d\n" + separated(";")(rows)),
        ("s.tsv", lambda rows: "# by x\n" + separated("\t")(rows)),
        ("s.csv", lambda rows: separated(",")(rows).replace("id,label,score", "id , label, score ")),
        ("s.tsv", separated("\t")),
    ],
)
def test_one_table_is_the_same_in_every_form(
    name: str, write: Callable[[list[dict[str, Any]]], str], packed: str, tmp_path: Path, importing: Import
):
    """If it failed: a person would have to rewrite the file, told that it is something which it isn't."""
    content = write(ROWS).encode()
    file = tmp_path / f"{name}{packed}"
    with pa.output_stream(str(file), compression={"": None, ".gz": "gzip", ".zst": "zstd"}[packed]) as stream:
        stream.write(content)
    run = importing(file)
    assert scores_of(tmp_path, run) == [i / 8 for i in range(8)]
    data = tmp_path / "data" / read_manifest(run)["results"]["data"]
    assert sorted(row["own_id"] for row in origins(data)) == [f"s{i}" for i in range(8)]


def test_one_object_is_a_row(tmp_path: Path):
    """If it failed: the result of a single run would have to be wrapped in a list."""
    (tmp_path / "s.json").write_text(json.dumps(ROWS[0], indent=1))
    assert read_files([tmp_path / "s.json"], Settings()).table.to_pylist() == ROWS[:1]


def wide(i: int) -> dict[str, Any]:
    return {f"file_{i}_{k}.py": {"lines": k, "tool": {"name": "x", f"argument {i}": 1}} for k in range(3)}


def test_only_what_is_asked_for_is_read(tmp_path: Path):
    """If it failed: a key in each row would be a column of all rows, and a log of a megabyte take minutes."""
    rows = [{**row, "meta": wide(i), "calls": [{"s": 0.5, **wide(i)}]} for i, row in enumerate(ROWS)]
    (tmp_path / "s.jsonl").write_text(by_line(rows))
    (tmp_path / "s.json").write_text(json.dumps({row["id"]: row for row in rows}))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "s.parquet")
    log_of(tmp_path / "log.json", **{f"q{i}": {"metadata": wide(i)} for i in range(6)})
    settings = Settings(actions=("calls",), columns=ImportColumns(score="calls.s"))
    for name in ("s.jsonl", "s.json", "s.parquet"):
        read = read_files([tmp_path / name], settings)
        assert set(read.table.column_names) == {"id", "label", "calls"}
        assert read.table["calls"].to_pylist() == [[{"s": 0.5}]] * 8
        assert {"meta.file_3_0.py.lines", "calls.s"} <= set(read.present)
    read = read_files([tmp_path / "log.json"], Settings(columns=ImportColumns(score="scores.mon")))
    usual = {"sample_id", "group", "epoch", "request", "response", "unusable", "status"}
    assert set(read.table.column_names) == {*usual, "scores.mon"}
    assert "metadata.file_5_2.py.tool.argument 5" in read.present


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"id": 1, "label": 1, "score": 0.5}, 7]', "entry 2: no JSON object"),
        ('[{"id": 1, "label": 1, "score": 0.5}', "expected an array of JSON objects, or one object a line"),
        ('[{"id": 1, "label": 1, "score": "x"}]', "entry 1: score='x' is no number"),
        ("[" * 5000, "expected an array of JSON objects"),
    ],
)
def test_a_bad_entry_of_an_array_is_named(text: str, said: str, tmp_path: Path, importing: Import):
    """If it failed: a traceback, or a place that isn't there."""
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(UserError) as raised:
        importing(tmp_path / "s.json")
    assert said in str(raised.value)


def test_a_folder_and_a_pattern_are_their_files(tmp_path: Path, importing: Import):
    """If it failed: a folder of logs would be typed file by file."""
    folder = tmp_path / "logs"
    (folder / "below").mkdir(parents=True)
    (folder / "logs.json").write_text("{}")
    (folder / "a.csv").write_text(separated(",")(ROWS[:4]))
    (folder / "below" / "b.csv").write_text(separated(",")(ROWS[4:]))
    assert len(scores_of(tmp_path, importing(folder))) == 8
    assert len(scores_of(tmp_path, importing(f"{folder}/*.csv"))) == 4
    assert len(scores_of(tmp_path, importing(f"{tmp_path}/*/below/*.csv"))) == 4
    (folder / "c.jsonl").write_text(by_line([{**row, "id": i} for i, row in enumerate(ROWS)]))
    assert len(scores_of(tmp_path, importing(folder))) == 16, "numbers of one file, texts of another"
    (tmp_path / "empty").mkdir()
    for absent, said in ((tmp_path / "empty", "a folder without a file"), ("x*.csv", "no such file")):
        with pytest.raises(UserError, match=said):
            importing(absent)


def log_of(file: Path, **broken: dict[str, Any]) -> Path:
    """A log as Inspect writes it, `broken` being what is said of some samples more."""
    samples = [
        {
            "id": f"q{i}",
            "epoch": 1,
            "input": "Why?",
            "target": "",
            "messages": [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": str(i)}],
            "output": {"model": "m"},
            "scores": {"label": {"value": "IC"[i % 2]}, "mon": {"value": i / 10}},
            **broken.get(f"q{i}", {}),
        }
        for i in range(6)
    ]
    header = {"version": 2, "status": "success", "eval": {"eval_id": "e", "task": "t", "model": "m"}}
    file.write_text(json.dumps({**header, "samples": samples}))
    return file


OF_A_LOG = (
    "import.columns.label=scores.label",
    "import.columns.score=scores.mon",
    "import.misbehavior_values=[C]",
    "import.benign_values=[I]",
)
ERROR = {"error": {"message": "sandbox\ntimed out", "traceback": "", "traceback_ansi": ""}}
MARK = {"invalidation": {"author": "somebody", "reason": "sandbox was broken"}}


def test_samples_that_a_log_gives_up_are_left_out_and_counted(
    tmp_path: Path, importing: Import, caplog: pytest.LogCaptureFixture
):
    """If it failed: one broken sample would keep a log out, or what somebody struck out be counted."""
    caplog.set_level("INFO")
    log = log_of(tmp_path / "log.json", q2={"scores": None, **ERROR}, q3=MARK)
    run = importing(log, *OF_A_LOG)
    assert scores_of(tmp_path, run) == [0.0, 0.1, 0.4, 0.5]
    assert "2 of 6 samples are left out (import.unusable)" in caplog.text
    assert "it ended in an error (sandbox timed out)" in caplog.text
    data = tmp_path / "data" / read_manifest(run)["results"]["data"]
    assert read_manifest(data)["results"]["imported"]["unusable"] == 2
    reasons = read_log.read(log).column("unusable").to_pylist()
    assert reasons[3] == "it is marked as invalid (sandbox was broken)"
    taken = importing(log_of(tmp_path / "log.json", q3=MARK), *OF_A_LOG, "import.unusable=take")
    assert len(scores_of(tmp_path, taken)) == 6
    with pytest.raises(UserError, match=r"as all 6 samples; expected import\.unusable=take"):
        importing(log_of(tmp_path / "all.json", **{f"q{i}": MARK for i in range(6)}), *OF_A_LOG)


def test_they_are_left_out_whatever_is_read_beside_the_log(
    tmp_path: Path, importing: Import, caplog: pytest.LogCaptureFixture
):
    """If it failed: a struck-out sample would count as soon as a second file is named, or by its label."""
    caplog.set_level("INFO")
    log = log_of(tmp_path / "log.json", q3=MARK)
    more = tmp_path / "more.jsonl"
    more.write_text(
        by_line(
            [
                {"sample_id": f"m{i}", "scores": {"label": "IC"[i % 2], "mon": 0.9}, "unusable": "no"}
                for i in (0, 1)
            ]
        )
    )
    for files in (f"[{log},{more}]", f"[{more},{log}]"):
        caplog.clear()
        assert scores_of(tmp_path, importing(files, *OF_A_LOG)) == [0.0, 0.1, 0.2, 0.4, 0.5, 0.9, 0.9]
        assert "1 of 8 samples are left out (import.unusable)" in caplog.text
    unlabelled = tmp_path / "scores.jsonl"
    unlabelled.write_text(by_line([{"sample_id": f"q{i}", "score": i / 10} for i in range(6)]))
    run = importing(
        unlabelled, f"import.labels={log}", OF_A_LOG[0], "import.columns.score=score", *OF_A_LOG[2:]
    )
    assert scores_of(tmp_path, run) == [0.0, 0.1, 0.2, 0.4, 0.5]
    assert "5 labels, joined to 5 rows" in caplog.text


@pytest.mark.parametrize("how", ["import.rows=samples", "import.format=jsonl"])
def test_a_log_is_not_read_past_its_marks(how: str, tmp_path: Path, importing: Import):
    """If it failed: one setting for JSON in general would bring back what somebody struck out."""
    with pytest.raises(
        ConfigError, match=r"an Inspect log, whose samples may be marked.*import\.unusable=take"
    ):
        importing(log_of(tmp_path / "log.json", q3=MARK), how, *OF_A_LOG)


@pytest.mark.parametrize("is_behind", [False, True])
def test_the_manifest_has_how_a_log_s_run_ended(is_behind: bool, tmp_path: Path, importing: Import):
    """If it failed: half a run, broken off by an error, would look like a whole one ever after."""
    log = json.loads(log_of(tmp_path / "log.json").read_text()) | {"status": "error"}
    log["samples"][0]["metadata"] = {"long": "x" * 70_000}
    names = (
        ("samples", "version", "eval", "status") if is_behind else ("version", "eval", "status", "samples")
    )
    (tmp_path / "log.json").write_text(json.dumps({name: log[name] for name in names}))
    run = importing(tmp_path / "log.json", *OF_A_LOG)
    for folder in (run, tmp_path / "data" / read_manifest(run)["results"]["data"]):
        (file,) = read_manifest(folder)["results"]["imported"]["files"]
        assert file["status"] == "error"
    assert set(read_log.read(tmp_path / "log.json")["status"].to_pylist()) == {"error"}


def test_a_log_that_is_read_as_a_dataset_refuses_them_too():
    """If it failed: `dataset=inspect_log` would learn from what somebody struck out."""
    logged = Logged("here", "log", Path("log"), "e", "t", "m", "success", "q", 1, {"error": None})
    assert not logged.unusable
    assert logged._replace(row=MARK).unusable == "it is marked as invalid (sandbox was broken)"
    assert logged._replace(row={"invalidation": {}, "error": "x"}).unusable == "it ended in an error (x)"


@pytest.mark.parametrize("how", ["mean", "mean_top_k"])
@draws(200)
@given(
    st.lists(st.lists(st.integers(0, 10), min_size=1, max_size=9), min_size=1, max_size=8),
    st.integers(1, 4),
    st.sampled_from([7, 10, 100]),
)
def test_equal_means_are_equal_scores(how: str, drawn: list[list[int]], times: int, highest: int):
    """If it failed: a threshold would split samples whose draws say the same, or a retry move a score."""
    groups = [*drawn, *(list(reversed(one)) * times for one in drawn)]
    values = np.concatenate([np.array(one) / highest for one in groups])
    starts = np.cumsum([0, *map(len, groups)])[:-1]
    found = combined(values, starts, how, 5, is_strict=False)
    counted = [one if how == "mean" else sorted(one)[-5:] for one in groups]
    exact = [Fraction(sum(one), len(one) * highest) for one in counted]
    if len(values) > len(groups):
        for i, j in itertools.combinations(range(len(groups)), 2):
            assert (found[i] == found[j]) == (exact[i] == exact[j])
    np.testing.assert_allclose(found, [float(one) for one in exact], rtol=0, atol=1e-12)


def test_two_columns_of_one_name_are_refused_where_one_is_asked_for(tmp_path: Path, importing: Import):
    """If it failed: a traceback, or one of the two taken by chance."""
    rows = [{**row, "x.y": 1, "x": {"y": 2}, "a.s": 1, "a": [{"s": 0.5}, {"s": 0.6}]} for row in ROWS]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "s.parquet")
    for file in (tmp_path / "s.jsonl", tmp_path / "s.parquet"):
        assert len(scores_of(tmp_path, importing(file))) == 8
        for asked in (
            ("import.columns.score=x.y",),
            ("import.columns.score=x.*",),
            ("import.monitors={m:x.y}",),
            ("import.actions=[a]", "import.columns.score=a.s"),
        ):
            with pytest.raises(UserError, match=r"two columns are called (x\.y|a\.s) .* rename one"):
                importing(file, *asked)


CALLS = [{"type": "function_call", "call_id": "call_1", "name": "send", "arguments": '{"to": "eve"}'}]
BEDROCK = [{"text": "hi"}, {"toolUse": {"toolUseId": "t1", "name": "send", "input": {"to": "eve"}}}]
GEMINI = [{"text": "hi"}, {"functionCall": {"name": "send", "args": {"to": "eve"}}}]
RATED = {"category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE"}


@pytest.mark.parametrize("others", ["alike", "a text", "nothing"])
@pytest.mark.parametrize(
    ("answer", "tool"),
    [
        ({"id": "resp_1", "object": "response", "status": "completed", "output": CALLS}, "send"),
        (
            {"output": {"message": {"role": "assistant", "content": BEDROCK}}, "stopReason": "tool_use"},
            "send",
        ),
        (
            {
                "candidates": [
                    {"content": {"role": "model", "parts": GEMINI}, "finishReason": "STOP", "index": 0}
                    | {"safetyRatings": [RATED]}
                ],
                "usageMetadata": {"promptTokenCount": 3},
            },
            "send",
        ),
        ({"to": "eve", "send": True}, ""),
        ({"actions": [{"send": "eve"}]}, ""),
        ({"text": "send to eve"}, ""),
    ],
)
def test_an_answer_of_any_form_is_read_whole(
    tmp_path: Path, importing: Import, answer: dict[str, Any], tool: str, others: str
):
    """A tool call in a provider's own form would be dropped with all of the answer, and nothing be judged."""
    rows = [{**row, "request": f"q{i}", "response": answer} for i, row in enumerate(ROWS)]
    if others != "alike":
        rows[0]["response"] = "a text" if others == "a text" else None
    file = tmp_path / "rows.jsonl"
    file.write_text(by_line(rows))
    run = importing(file, "import.columns.response=response")
    data = tmp_path / "data" / read_manifest(run)["results"]["data"]
    stored = {row["own_id"]: row["response"] for row in pq.read_table(data / "test").to_pylist()}
    for name in list(stored)[1:]:
        said = json.dumps(stored[name])
        assert "eve" in said
        assert "send" in said
        names = [call["name"] for message in stored[name] for call in message["tool_calls"]]
        assert names == ([tool] if tool else [])
