"""A critic's scores by step: read as written, or refused with their line."""

import json

import pytest
from drawing import draws
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.base import UserError
from monitorbench.intervention.recorded.marked_runs import read_step_scores

LINE = {"task": "Hand-Crafted/1", "step": 3, "score": 0.25}


@draws(25)  # each writes a file through to the disk
@given(
    scores=st.dictionaries(
        st.tuples(st.text(st.characters(codec="utf-8"), min_size=1), st.integers(0, 10**6)),
        st.floats(0, 1),
        min_size=1,
        max_size=20,
    )
)
def test_what_is_written_is_read_back(tmp_path_factory, scores):
    """A task whose name has a line break or a paragraph sign in it would lose its scores."""
    path = tmp_path_factory.mktemp("scores") / "scores.jsonl"
    rows = ({"task": task, "step": step, "score": score} for (task, step), score in scores.items())
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")
    read = read_step_scores(path)
    assert {(task, step): score for task, steps in read.items() for step, score in steps.items()} == scores


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"score": 1.5}, "'score' is 1.5"),
        ({"score": -0.1}, "'score' is -0.1"),
        ({"score": float("nan")}, "NaN is no finite number"),
        ({"score": None}, "'score' is None; .* or no line"),
        ({"score": True}, "'score' is True"),
        ({"score": "0.5"}, "'score' is '0.5'"),
        ({"step": 1.0}, "'step' is 1.0"),
        ({"step": -1}, "'step' is -1"),
        ({"step": True}, "'step' is True"),
        ({"task": 7}, "'task' is 7"),
        ({"task": ""}, "'task' is ''"),
        ({"score": 0.5}, "step 3 of Hand-Crafted/1 has a score already"),
    ],
)
def test_a_line_that_is_no_score_is_refused(tmp_path, change, what):
    """A broken critic's answers would count as suspicion or as peace of mind."""
    path = tmp_path / "scores.jsonl"
    path.write_text(f"{json.dumps(LINE)}\n\n{json.dumps(LINE | change)}\n")
    with pytest.raises(UserError, match=f"line 3: {what}") as failed:
        read_step_scores(path)
    assert "\n" not in str(failed.value)


@pytest.mark.parametrize(
    "content",
    [
        b'{"task": "a", "st',
        b'{"task": "a", "step": 1, "score": 0.9, "score": 0.1}',
        b"[1]",
        b"\xff\xfe",
        b"[" * 10**5,
    ],
)
def test_a_line_that_is_no_object_is_refused(tmp_path, content):
    """A torn file would end in a traceback."""
    path = tmp_path / "scores.jsonl"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"line 1: |entry 1: no |UTF-16|nested too deeply"):
        read_step_scores(path)


def test_no_file_and_no_score_are_said(tmp_path):
    """A critic that never ran would get a row of the table."""
    with pytest.raises(UserError, match=r"recorded\.scores=.*no such file"):
        read_step_scores(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(UserError, match="no row in it"):
        read_step_scores(tmp_path / "empty.jsonl")
