"""A team's CSV says what its JSON lines would."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.base import UserError
from monitorbench.records import Sample
from monitorbench.sources.fetch import local
from monitorbench.sources.files import team_jsonl
from monitorbench.sources.read import OnBadRow

NAMES = ("request", "response", "label", "category", "task", "pair_id")
CHAT = [
    {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "name": "rm", "arguments": "{}"}]},
    {"role": "tool", "tool_call_id": "1", "content": "done"},
    {"role": "assistant", "content": "Removed."},
]


def row(response: Any, **more: str) -> dict[str, Any]:
    return {
        "request": "Delete the old logs.",
        "response": response,
        "label": "benign",
        "category": "leaks",
        "task": "qa",
        "pair_id": None,
        **more,
    }


def table(file: Path, rows: list[dict[str, Any]], names: tuple[str, ...] = NAMES) -> Path:
    """A chat is written as JSON, None as nothing."""
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(names)
        for one in rows:
            cells = (one.get(name) for name in names)
            writer.writerow([json.dumps(cell) if isinstance(cell, list) else cell for cell in cells])
    return file


def lines(file: Path, rows: list[dict[str, Any]]) -> Path:
    there = [{name: value for name, value in one.items() if value is not None} for one in rows]
    file.write_text("".join(json.dumps(one) + "\n" for one in there), encoding="utf-8")
    return file


def read(path: Path, on_bad_row: OnBadRow = "error") -> list[Sample]:
    return list(team_jsonl.load(local("jsonl", path, team_jsonl.SUFFIXES, on_bad_row)))


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(
    lambda text: text.strip() and not text.startswith("[{")
)


@given(texts=st.lists(TEXTS, min_size=1, max_size=6, unique=True))
def test_any_text_is_what_it_is_as_json(tmp_path_factory: pytest.TempPathFactory, texts: list[str]):
    """If it failed: quotes, line breaks or brackets of a response would be lost on the way."""
    folder = tmp_path_factory.mktemp("own")
    rows = [row(text) for text in texts]
    assert read(table(folder / "own.csv", rows)) == read(lines(folder / "own.jsonl", rows))


def test_a_chat_and_what_looks_like_one(tmp_path: Path):
    """If it failed: a trajectory would be judged as JSON text, or a JSON answer as a conversation."""
    answer = json.dumps([{"name": "logs", "size": 3}])
    rows = [row(CHAT, pair_id="a"), row(answer), row("[{broken")]
    chat, plain, broken = read(table(tmp_path / "own.csv", rows))
    assert [one.role for one in chat.response] == ["assistant", "tool", "assistant"]
    assert chat.response[0].tool_calls[0].name == "rm"
    assert (plain.response[0].content, broken.response[0].content) == (answer, "[{broken")
    assert read(lines(tmp_path / "own.jsonl", rows)) == [chat, plain, broken]


@pytest.mark.parametrize(
    ("name", "mark", "before"),
    [
        ("own.csv", ";", ""),
        ("own.csv", "|", "# by x, 1.2\n"),
        ("own.csv", "^", "sep=^\n"),
        ("own.tsv", "\t", ""),
    ],
)
def test_a_table_is_read_with_its_own_separator(name: str, mark: str, before: str, tmp_path: Path):
    """If it failed: a file that `import` reads would be refused as having an unknown field."""
    cells = ["request", "response", "label", "category", "task"], ["a", "b, c", "benign", "leaks", "qa"]
    (tmp_path / name).write_text(before + "".join(mark.join(values) + "\n" for values in cells))
    (sample,) = read(tmp_path)
    assert sample.response[0].content == "b, c"


def test_a_folder_may_hold_both(tmp_path: Path):
    """If it failed: half of a team's samples would be missing, or be there twice."""
    table(tmp_path / "a.csv", [row("one")])
    lines(tmp_path / "aa.csv.jsonl", [row("two")])
    assert sorted(one.response[0].content for one in read(tmp_path)) == ["one", "two"]
    lines(tmp_path / "b.jsonl", [row("one", label="misbehavior")])
    with pytest.raises(UserError, match="the same texts and the other label"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("request,response,label,category,task\na,b,benign,leaks\n", r"line 2: not as many values as"),
        ("request,response,label,category,task\na,b,benign,leaks,qa,x\n", r"line 2: not as many values as"),
        (
            "request,response,label,category,task\na,b,maybe,leaks,qa\n",
            r"line 2: field 'label': 'maybe' is no",
        ),
        ("request,response,label,category,task\na,,benign,leaks,qa\n", r"line 2: missing field 'response'"),
        ("request,response,label,category,task\n", r"no usable row; expected .* a CSV below its header"),
    ],
)
def test_a_bad_row_is_named(text: str, said: str, tmp_path: Path):
    """If it failed: a shifted column would become labels."""
    (tmp_path / "own.csv").write_text(text)
    with pytest.raises(UserError, match=said):
        read(tmp_path / "own.csv")


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("request,response,label,category", "columns missing task; rename, add"),
        ("request,response,label,category,task,x", "columns unknown 'x'; rename, add"),
        (
            "prompt,answer,label,category,task",
            "columns missing request, response and unknown 'prompt', 'answer'; rename, add or delete columns "
            "in the file: expected request, response, label, category, task, and",
        ),
        ("request,response,label,label,category,task", "column 'label' is there twice"),
    ],
)
@pytest.mark.parametrize("on_bad_row", ["error", "skip"])
def test_columns_that_are_not_the_schema_s_are_the_file_s_fault(
    header: str, said: str, on_bad_row: OnBadRow, tmp_path: Path
):
    """If it failed: whoever has other headers would be told to pass over rows, until none is left."""
    (tmp_path / "own.csv").write_text(f"{header}\n{header}\n")
    with pytest.raises(UserError, match=rf"own\.csv.*{said}") as refused:
        read(tmp_path / "own.csv", on_bad_row)
    assert "on_bad_row" not in str(refused.value)


def test_without_a_usable_row_it_is_said_what_was_passed_over(tmp_path: Path):
    """If it failed: a CSV whose labels are in other words would be called no CSV."""
    table(tmp_path / "own.csv", [row("one", label="bad"), row("two", label="good")])
    with pytest.raises(UserError, match=r"no usable row \(passed over: field 'label' \(2\)\); expected"):
        read(tmp_path / "own.csv", "skip")
