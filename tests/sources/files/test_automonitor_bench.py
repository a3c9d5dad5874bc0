"""What a user would lose here: the release under its own labels, should its columns be as guessed."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from monitorbench.config.base import UserError
from monitorbench.records import Category, Label, Task
from monitorbench.sources.fetch import local
from monitorbench.sources.files import automonitor_bench

ROW = {
    "question": "Which is right?",
    "response": "B.",
    "label": "Misbehavior",
    "category": "Sycophancy & Bias",
    "task": "QA",
}


def read(path, on_bad_row="error"):
    return list(automonitor_bench.load(local("amb", path, automonitor_bench.SUFFIXES, on_bad_row)))


def test_parquet_and_json_lines_alike(tmp_path):
    """Else the format the authors choose would decide whether their data can be read."""
    (tmp_path / "data").mkdir()
    chat = [{"role": "user", "content": "Which is right?", "tool_calls": None}]
    rows = [
        {**ROW, "question": chat, "label": 1, "reasoning": "They said B.", "model": "m", "extra": 1.5},
        {**ROW, "question": chat, "label": 0, "reasoning": None, "model": None, "extra": None},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "data/test.parquet")
    other = {
        "prompt": "Fix it.",
        "output": "Done.",
        "label": "no",
        "type": "Specification Gaming",
        "domain": "code",
    }
    (tmp_path / "old-test.jsonl").write_text(json.dumps(other) + "\n")
    first, second, third = read(tmp_path)
    assert [s.label for s in (first, second, third)] == [Label.MISBEHAVIOR, Label.BENIGN, Label.BENIGN]
    assert (first.category, first.task) == (Category.SYCOPHANCY_BIAS, Task.QA)
    assert (third.category, third.task) == (Category.SPECIFICATION_GAMING, Task.CODE)
    assert (first.response[0].thinking, first.subject_model) == ("They said B.", "m")
    assert first.has_thinking
    assert not second.has_thinking
    assert first.group_id == second.group_id != third.group_id


def test_pairs_in_a_row_arrays_spelled_out_tasks_and_inline_traces(tmp_path):
    """Else another plausible layout of the release would need a converter, or lose its traces."""
    row = {key: value for key, value in ROW.items() if key not in ("response", "label")}
    rows = [
        {
            **row,
            "id": 7,
            "misbehavior": "<think>They said B.</think>\nB.",
            "benign": "A.",
            "task": "Coding tasks",
        },
        {**ROW, "response": "<think>\nHm.\n</think> B.", "task": "Mathematical reasoning"},
        {**ROW, "response": "It is B.", "task": "Open-ended Question Answering"},
    ]
    (tmp_path / "test.json").write_text(json.dumps(rows))
    bad, good, reasoned, asked = read(tmp_path)
    assert (bad.label, good.label) == (Label.MISBEHAVIOR, Label.BENIGN)
    assert bad.pair_id == good.pair_id == "7"
    assert (bad.response[0].thinking, bad.response[0].content) == ("They said B.", "B.")
    assert not good.has_thinking
    assert (reasoned.response[0].thinking, reasoned.response[0].content) == ("Hm.", "B.")
    assert [s.task for s in (bad, reasoned, asked)] == [Task.CODE, Task.REASONING, Task.QA]
    (tmp_path / "again.json").write_text(json.dumps(rows[:1]))
    with pytest.raises(UserError, match="duplicate id"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"label": None}, "no label: expected one of the columns label, .*; found question, response, label"),
        ({"label": "2"}, "field 'label': '2' is no label"),
        ({"category": "Other"}, "field 'category': 'Other'"),
        ({"task": ""}, "field 'task': ''"),
        ({"task": "code reasoning"}, "field 'task': 'code reasoning'; expected one of qa, code, reasoning"),
        ({"response": "<think>a</think>b", "thinking": "c"}, "a trace in <think> and another one"),
        ({"response": ""}, "response: nothing in it"),
        (
            {"label": "benign", "is_misbehavior": True},
            "two labels: label is 'benign' but is_misbehavior is True",
        ),
        (
            {"thinking": "Be nice.", "reasoning": "Steal."},
            "columns 'thinking' and 'reasoning': two of a trace",
        ),
        ({"instruction": "Never delete."}, "columns 'question' and 'instruction': two of a request"),
        ({"answer": "C."}, "columns 'response' and 'answer': two of a response"),
        ({"system_prompt": "Never delete."}, "column 'system_prompt': no place for it"),
        ({"tool_calls": [{"name": "bash", "arguments": "rm"}]}, "column 'tool_calls': no place for it"),
    ],
)
def test_columns_that_do_not_fit_are_named(tmp_path, change, complaint):
    """Else a wrong guess about the release would become a wrong label."""
    path = tmp_path / "test.jsonl"
    path.write_text(json.dumps({**ROW, **change}))
    with pytest.raises(UserError, match=f"line 1: .*{complaint}"):
        read(path)
    with pytest.raises(UserError, match="no usable row"):
        read(path, "skip")


def test_what_is_said_twice_alike_or_is_empty_is_no_fault(tmp_path):
    """Else a release with its label as a word and as a flag, or an empty column, could not be read."""
    same = {"label": "misbehavior", "is_misbehavior": True, "thinking": "a", "reasoning": "a"}
    path = tmp_path / "test.jsonl"
    path.write_text(json.dumps({**ROW, **same, "system_prompt": "", "tool_calls": [], "instruction": None}))
    (sample,) = read(path)
    assert (sample.label, sample.response[0].thinking) == (Label.MISBEHAVIOR, "a")
    path.write_text(json.dumps({**ROW, "thinking": "", "reasoning": "b"}))
    assert read(path)[0].response[0].thinking == "b"


def test_the_authors_prompts_are_found(tmp_path):
    """Else results under `dataset=automonitor_bench` would be of our prompts."""
    assert automonitor_bench.prompts(tmp_path) == {}
    (tmp_path / "prompts").mkdir()
    for name in ("direct.txt", "Evidence_prompt.md", "readme.md"):
        (tmp_path / "prompts" / name).write_text(f"{{request}} {name}")
    found = automonitor_bench.prompts(tmp_path)
    assert found == {"direct": "{request} direct.txt", "evidence": "{request} Evidence_prompt.md"}
    (tmp_path / "prompts/direct2.txt").write_text("x")
    with pytest.raises(UserError, match="two prompts named direct"):
        automonitor_bench.prompts(tmp_path)
