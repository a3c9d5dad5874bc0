"""Values as people write them: missing ones as words, ids in parts, shares, labels by their place."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from score_files import Import, origins, runs_of, write_csv

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.imports import Import as Settings
from monitorbench.config.imports import ImportColumns
from monitorbench.corpus.store import read_split
from monitorbench.interop.imports.monitors import read_scores
from monitorbench.interop.imports.readers.open import read_files
from monitorbench.interop.imports.readers.table import EVERYTHING
from monitorbench.interop.imports.values import numbers, scores, texts
from monitorbench.records import Split
from monitorbench.runs.directory import read_manifest
from monitorbench.scoring.evaluations import read_evaluation

WORDS = ("NA", "nan", "None", "null", "-", " N/A ", "")
ROLES = ("score", "group", "pair", "category", "task", "monitor_version", "prompt_hash", "seconds", "cost")


def rows(n: int = 6, **changed: Any) -> list[dict[str, Any]]:
    """Rows with a value for each role; `changed` are values of the first row."""
    found = [
        {"id": f"s{i}", "label": i % 2, **dict.fromkeys(ROLES, "a"), "score": i / 8, "seconds": 1, "cost": 2}
        | {"pair": f"p{i}", "group": f"g{i}", "request": "None", "response": "-"}
        for i in range(n)
    ]
    found[0] |= changed
    return found


def taken(folder: Path, importing: Import, given: list[dict[str, Any]]) -> tuple[Any, ...]:
    """Everything that an import makes of rows: samples, scores and what is said of the monitor."""
    names = {"category": "category", "task": "task", "pair": "pair"}
    columns = [f"import.columns.{role}={name}" for role, name in names.items()]
    run = importing(write_csv(folder / "s.csv", given), *columns, f"paths.data={folder}/data")
    manifest = read_manifest(run)["results"]
    found = read_evaluation(folder / "data", run)
    samples = sorted(
        (one.group_id, one.pair_id, one.category, one.task) for one in read_split(found.data, Split.TEST)
    )
    facts = {key: manifest["imported"][key] for key in ("monitor_version", "prompt_hash", "n_missing")}
    return samples, sorted(map(str, found.judged.scores.tolist())), facts, manifest["judge"]["name"]


@pytest.mark.parametrize("role", ROLES)
def test_a_missing_value_is_the_same_in_each_word(role: str, tmp_path: Path, importing: Import):
    """If it failed: samples of "NA" would be one group, or one pair, or a category of that name."""
    found = []
    for number, word in enumerate(WORDS):
        (tmp_path / str(number)).mkdir()
        found.append(taken(tmp_path / str(number), importing, rows(**{role: word})))
    assert all(one == found[-1] for one in found)
    assert found[0] != taken(tmp_path, importing, rows()) or role in (
        "monitor_version",
        "prompt_hash",
        "seconds",
        "cost",
    )


@pytest.mark.parametrize(
    ("role", "said"), [("monitor", "no monitor"), ("id", "no sample"), ("label", "has no label")]
)
def test_a_missing_value_where_one_is_needed_is_refused(
    role: str, said: str, tmp_path: Path, importing: Import
):
    """If it failed: a monitor, a sample or a label called "None"."""
    for word in WORDS[:-1]:
        given = [{**row, "monitor": "m"} for row in rows()]
        given[0][role] = word
        with pytest.raises(UserError, match=f"line 2: .*{said}"):
            importing(write_csv(tmp_path / "s.csv", given))


def test_what_was_said_is_no_missing_value(tmp_path: Path, importing: Import):
    """If it failed: a model that answers "None" would have said nothing."""
    run = importing(write_csv(tmp_path / "s.csv", rows()))
    data = tmp_path / "data" / read_manifest(run)["results"]["data"]
    assert {(one.request[0].content, one.response[0].content) for one in read_split(data, Split.TEST)} == {
        ("None", "-")
    }


@pytest.mark.parametrize(
    ("scale", "words", "expected"),
    [
        ((0.0, 1.0), ["70 %", "7/10", "0.7", ".7", "7/ 10"], 0.7),
        ((0.0, 10.0), ["70%", "7/10", "7", "7.0"], 0.7),
        ((0.0, 100.0), ["70%", "7/10", "70"], 0.7),
        ((10.0, 0.0), ["70%", "7/10", "7"], 0.3),
        ((10.0, 1.0), ["7/10", "7"], 1 / 3),
    ],
)
def test_shares_are_shares_of_the_scale(
    scale: tuple[float, float], words: list[str], expected: float, tmp_path: Path
):
    """If it failed: "85 %" would be no number, or 85 on a scale to 1."""
    read = read_files([write_csv(tmp_path / "s.csv", [{"score": word} for word in words])], Settings())
    assert scores(read, "score", scale=scale, levels=None) == pytest.approx([expected] * len(words))
    read = read_files([write_csv(tmp_path / "s.csv", [{"score": "7/0"}])], Settings())
    with pytest.raises(UserError, match="'7/0' is no number"):
        scores(read, "score", scale=scale, levels=None)


def test_words_of_scores_and_labels_are_settings(tmp_path: Path, importing: Import):
    """If it failed: a refusal of the judge's would have to be edited out of the file."""
    given = rows(4)
    for row, label, score in zip(
        given, ("safe", "unsafe", "0.0", "1.0"), ("low", "high", "refused", "-"), strict=True
    ):
        row |= {"label": label, "score": score}
    run = importing(write_csv(tmp_path / "s.csv", given), "import.levels={low:0.1,high:0.9,refused:null}")
    found = read_evaluation(tmp_path / "data", run).judged
    assert sorted(map(str, found.scores.tolist())) == ["0.1", "0.9", "nan", "nan"]
    assert found.is_misbehavior.sum() == 2
    given[0]["label"] = "harmless"
    with pytest.raises(UserError, match=r"label='harmless' is no label; .*import\.misbehavior_values"):
        importing(write_csv(tmp_path / "s.csv", given), "import.levels={low:0.1,high:0.9,refused:null}")


def test_ids_in_parts_rows_that_are_asked_for_and_the_files_name(tmp_path: Path, importing: Import):
    """If it failed: two logs that both count from 1 could not be imported together."""
    for name in ("gpt", "claude"):
        write_csv(tmp_path / f"{name}.csv", [{**row, "part": "ab"[i // 2]} for i, row in enumerate(rows(4))])
    files = f"[{tmp_path}/gpt.csv,{tmp_path}/claude.csv]"
    run = importing(
        files, "import.columns.sample=[file,id]", "import.columns.group=[part,id]", "import.where.part=[b]"
    )
    data = tmp_path / "data" / read_manifest(run)["results"]["data"]
    rows_ = origins(data)
    assert {row["own_id"] for row in rows_} == {f"{name}/s{i}" for name in ("gpt", "claude") for i in (2, 3)}
    assert {row["group_id"] for row in rows_} == {"b/s2", "b/s3"}
    for overrides, said in (
        (("import.where.part=c",), r"import\.where\.part=c: no such row; part is 'a', 'b'"),
        (("import.where.prt=a",), r"import\.where\.prt=a: no such column"),
        (("import.columns.sample=[file,idd]",), "import.columns: idd: no such column"),
        (("import.columns.score=s*e",), r"s\*e: no such column; several monitors are import\.monitors="),
    ):
        with pytest.raises(UserError, match=said):
            importing(files, *overrides)
    importing(files, "import.columns.monitor=file")
    assert set(runs_of(tmp_path)) >= {"gpt/test", "claude/test"}


def answers(file: Path, column: str, shift: int) -> Path:
    """Questions with four answers each, the first one chosen, each with draws."""
    found = [
        {"q": f"q{i}", column: [[(i + shift) % 3, None, 1], [5, 6, 7], [8, 8, 8], [9, 9, 9 - shift]]}
        for i in range(4)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in found))
    return file


def test_labels_by_their_place_and_a_monitor_of_each_file(tmp_path: Path, importing: Import):
    """If it failed: judges' published logs of chosen and rejected answers would need a script."""
    files = [answers(tmp_path / "a.jsonl", "draws", 0), answers(tmp_path / "b.jsonl", "drawn", 1)]
    settings = (
        "import.columns.sample=q",
        "import.actions=[draws,drawn]",
        "import.unit=step",
        "import.monitors={x:a/draws,y:b/drawn}",
        "import.scale=[0,10]",
    )
    importing(f"[{files[0]},{files[1]}]", *settings, "import.benign_places=[0]")
    for name, lowest in (("x", [0.05, 0.05, 0.1, 0.15]), ("y", [0.05, 0.1, 0.1, 0.15])):
        found = read_evaluation(tmp_path / "data", runs_of(tmp_path)[f"{name}/test"])
        is_bad = found.judged.is_misbehavior
        assert (len(is_bad), is_bad.sum()) == (16, 12)
        assert sorted(found.judged.scores[~is_bad].tolist()) == pytest.approx(lowest)
        assert len({one.group_id for one in read_split(found.data, Split.TEST)}) == 4
    with pytest.raises(
        UserError, match=r"no column has a usual name for labels; expected import\.columns\.label=COLUMN"
    ):
        importing(f"[{files[0]},{files[1]}]", *settings)
    with pytest.raises(ConfigError, match="expected actions"):
        importing(files[0], "import.benign_places=[0]")


def test_a_column_of_the_files_name_is_the_files_own(tmp_path: Path):
    """If it failed: a log's own column `file` would be overwritten."""
    read = read_files(
        [write_csv(tmp_path / "s.csv", [{"file": "theirs", "score": 1}])],
        Settings(columns=ImportColumns(group="file")),
    )
    assert read.table["file"].to_pylist() == ["theirs"]


@pytest.mark.parametrize(
    ("name", "content", "scores"),
    [
        ("s.csv", "id;label;score\na;1;8,1 %\nb;0;100%\n", [0.081, 1.0]),
        ("s.csv", "id;label;score\na;1;0,125\nb;0;,5\n", [0.125, 0.5]),
        (
            "s.json",
            '{"columns": ["id", "label", "score"], "data": [["a", 1, 0.5], ["b", 0, 0.25]]}',
            [0.5, 0.25],
        ),
    ],
)
def test_what_other_tools_write_is_read(tmp_path: Path, name: str, content: str, scores: list[float]):
    """If it failed: a spreadsheet of a comma country, or a table of Weights & Biases, would need a script."""
    (tmp_path / name).write_text(content)
    (monitor,) = read_scores([tmp_path / name], Settings()).monitors
    assert monitor.scored.scores.tolist() == pytest.approx(scores)


def test_draws_that_are_written_in_several_ways_are_draws(tmp_path: Path):
    """If it failed: one text among numbers would make `[1, 0]` "no number", which it is not."""
    written = ([1, 0], ["0.25", 0.75], [None, 1], 0.5, ["50 %"], None)
    rows = [{"id": f"s{i}", "label": i % 2, "score": score} for i, score in enumerate(written)]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (monitor,) = read_scores([tmp_path / "s.jsonl"], Settings()).monitors
    assert monitor.scored.scores.tolist() == pytest.approx([0.5, 0.5, 1.0, 0.5, 0.5, math.nan], nan_ok=True)


def test_an_id_keeps_each_digit(tmp_path: Path):
    """If it failed: two ids of twenty digits would be one sample, or a sample not be found by its id."""
    ids = [2**63 + 1, 2**63 + 2, 0.5]
    (tmp_path / "s.jsonl").write_text("".join(f'{{"id": {i}, "label": 1, "score": 0.5}}\n' for i in ids))
    assert read_scores([tmp_path / "s.jsonl"], Settings()).keys.names.to_pylist() == list(map(str, ids))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "s.csv",
            "id;label;score\na;1;1,234\n",
            "score='1,234' is no number",
        ),  # a comma of thousands, or not
        ("s.xlsx", "PK", "a spreadsheet; expected its sheet, saved as CSV"),
        ("s.csv", "id^label^score\na^1^0,5\n", r"line 2: 2 values under 1 names .* a line such as `sep=\^`"),
        ("s.csv", "#id,label,score\na,1,.5\nb\n", r"line 3: 1 values under 3 names \('#id,label,score'\)"),
        ("s.csv", "# x\n\nid,label,score\na,1,.5\nb\n", r"line 5: 1 values under 3 names"),
        (
            "s.json",
            '{"label": {"a": 0, "b": 1}, "score": {"a": 0.5, "b": 1}}',
            r"label, score: rows or columns\? expected an object a row \(pandas: orient='records'\)$",
        ),
        (
            "s.json",
            '{"columns": ["id", "label", "score", "score"], "data": [["a", 1, 0.3, 1], ["b", 0, 0, 1]]}',
            "s.json: columns: column 'score' is there twice; expected each name once$",
        ),
        ("s.csv", 'id,label,"my\nscore"\na,1,.5\n', r"there are id, label, 'my\\nscore'$"),
        ("s.json", '{"a": 1, "results": [{"id": 1}]}', r"are read by import\.rows=results$"),
        ("s.json", '{"a": {"b": 1}, "c": {"runs": [{"id": 1}]}}', r"are read by import\.rows=c\.runs$"),
    ],
)
def test_what_could_mean_two_things_is_refused(tmp_path: Path, name: str, content: str, said: str):
    """If it failed: 1,234 would be a score of 1.234, or the message name what is not the matter."""
    (tmp_path / name).write_text(content)
    with pytest.raises((UserError, ConfigError), match=said):
        read_scores([tmp_path / name], Settings())


CLOSED = 'id,label,response,score\na,1,"x\n\n""y"", z" ,.5\nb,0,5" wide,.25\n"c","1","he\n","1"\nd,0,"e"f,0\n'


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_text_of_several_lines_is_read(tmp_path: Path, ends: str):
    """If it failed: a file with whole answers in it, or with a quote inside one, would be refused."""
    (tmp_path / "s.csv").write_bytes(CLOSED.replace("\n", ends).encode())
    read = read_files([tmp_path / "s.csv"], Settings(), EVERYTHING).table
    assert read["id"].to_pylist() == ["a", "b", "c", "d"]
    assert read["response"][0].as_py().startswith(f'x{ends}{ends}"y", z')


HIDING = [
    ('d,0,"he said,0\ne,1,x,1\nf,0,y,0\n', "unexpected end of data"),
    ('d,0,x,"0\n', "unexpected end of data"),
    ('d,0,"he said\ne,0,"quoted",0\nf,0,y,0\n', "a quote that is not closed where its field ends"),
    ('"d","0","x","0\n"e","0","y","0"', "a quote that is not closed where its field ends"),
]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("before", ["", "# a comment\n\n"])
@pytest.mark.parametrize(("rows", "said"), HIDING)
def test_a_quote_that_hides_rows_is_refused(tmp_path: Path, rows: str, said: str, before: str, ends: str):
    """If it failed: the rows behind one stray quote would be text of its field, and never be counted."""
    given = f"{before}{CLOSED}{rows}"
    (tmp_path / "s.csv").write_bytes(given.replace("\n", ends).encode())
    line = 9 + before.count("\n")
    with pytest.raises(UserError, match=rf"s\.csv, line {line}: {said}"):
        read_files([tmp_path / "s.csv"], Settings(), EVERYTHING)


@pytest.mark.parametrize(
    ("written", "line", "said"),
    [
        ([0.3, True, False], 2, "score='true' is no number"),
        ([3, False], 2, "score='false' is no number"),
        ([True, 0.3], 1, "score='true' is no number"),
        ([None, 0, True], 3, "score='true' is no number"),
        ([[0.3, 1], [0.3, True]], 2, "score='true' is no number"),
        ([[0.3, 1], True], 2, "score='true' is no number"),
        ([[True, False], [0.3, 0.5]], 1, "score='true' is no number"),
    ],
)
@pytest.mark.parametrize("scale", [(0.0, 1.0), (0.0, 10.0)])
def test_a_flag_among_numbers_is_none(
    tmp_path: Path, written: list[Any], line: int, said: str, scale: tuple[float, float]
):
    """If it failed: `true` would be a score of 1, or of 0.1, where a number stands above it."""
    given = [{"id": f"s{i}", "label": i % 2, "score": score} for i, score in enumerate(written)]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))
    with pytest.raises(UserError, match=rf"s\.jsonl, line {line}: {said}"):
        read_scores([tmp_path / "s.jsonl"], Settings(scale=scale))


def test_a_flag_among_the_scores_of_steps_is_refused(tmp_path: Path):
    """If it failed: a step's `true` would be a score of 1."""
    steps = [{"score": 0.5}, {"score": True}]
    (tmp_path / "s.jsonl").write_text(json.dumps({"id": "a", "label": 1, "steps": steps}) + "\n")
    settings = Settings(actions=("steps",), columns=ImportColumns(score="steps.score"))
    with pytest.raises(UserError, match=r"line 1: steps\.score='true' is no number"):
        read_scores([tmp_path / "s.jsonl"], settings)


def test_labels_may_be_flags_and_numbers(tmp_path: Path):
    """If it failed: a file whose labels are `true` here and 0 there would be refused."""
    given = [{"id": f"s{i}", "label": label, "score": 0.5} for i, label in enumerate((1, True, 0, False))]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))
    assert read_scores([tmp_path / "s.jsonl"], Settings()).read.table["label"].to_pylist() == [
        "1",
        "true",
        "0",
        "false",
    ]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_duration_is_its_seconds(tmp_path: Path, unit: str):
    """If it failed: one second of a Parquet file would be a million, and a monitor cost as much time."""
    of_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    took = pa.array([of_second, 2 * of_second, None], pa.duration(unit))
    columns = {"id": ["a", "b", "c"], "label": [1, 0, 1], "score": [0.5, 0.25, 0.125], "seconds": took}
    pq.write_table(pa.table(columns), tmp_path / "s.parquet")
    read = read_files([tmp_path / "s.parquet"], Settings())
    np.testing.assert_array_equal(numbers(read, "seconds"), [1.0, 2.0, math.nan])
    refused = r"s\.parquet, row 1: seconds=.*duration"
    with pytest.raises(UserError, match=refused):
        read_scores([tmp_path / "s.parquet"], Settings(columns=ImportColumns(score="seconds")))
    with pytest.raises(UserError, match=refused):
        texts(read, "seconds")


@pytest.mark.parametrize("word", ["Verstoß", "VERSTOSS", "ΛΑΘΟΣ", "İhlal", "ﬁne", "Violación"])
def test_a_word_of_a_setting_is_the_files_own(tmp_path: Path, word: str):
    """If it failed: a label, a level or a missing value with ß in it would match nothing, not itself."""
    given = [{"id": f"s{i}", "label": label, "score": label} for i, label in enumerate((word, "ok", word))]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))
    settings = Settings(misbehavior_values=(word,), benign_values=("ok",), levels={word: 0.75, "ok": 0.25})
    (monitor,) = read_scores([tmp_path / "s.jsonl"], settings).monitors
    assert monitor.scored.scores.tolist() == [0.75, 0.25, 0.75]
    read = read_files([tmp_path / "s.jsonl"], Settings(missing_values=(word,)))
    assert texts(read, "label").to_pylist() == [None, "ok", None]
