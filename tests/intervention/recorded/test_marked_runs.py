"""Marked mistakes and a critic's scores by step: which message is meant, and what is refused or not told."""

import json

import pytest
from drawing import draws
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.base import UserError
from monitorbench.intervention.recorded import marked_runs
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


GENERATED = [
    {"content": "Plan.", "role": "assistant", "name": "Planner"},
    {"content": "It ran.", "role": "user", "name": "Computer_terminal"},
]
HAND = [
    {"content": "Where?", "role": "human"},
    {"content": "Ask the web.", "role": "Orchestrator (-> WebSurfer)"},
    {"content": "", "role": "WebSurfer"},
]


def _log(history, step, agent, question="q1"):
    return {
        "is_correct": False,
        "question": "Where?",
        "question_ID": question,
        "ground_truth": "The secret answer",
        "history": history,
        "mistake_agent": agent,
        "mistake_step": step,
        "mistake_reason": "Because of the secret answer",
    }


@pytest.fixture
def loaded(archived):
    def load(*members):
        named = [(f"Who&When/{place}.json", log) for place, log in members]
        return marked_runs.marked_runs(archived("who_and_when", ("LICENSE", b"MIT"), *named))

    return load


def test_logs_of_both_kinds_are_read_in_order(loaded):
    """The marked step would point at another message, or its agent never match."""
    hand, second, tenth = loaded(
        ("Generated/10", _log(GENERATED, "0", "Planner")),
        ("Hand-Crafted/1", _log(HAND, "1", "Orchestrator")),
        ("Generated/2", _log(GENERATED, "1", "Computer_terminal", "q2")),
    )[::-1]
    assert [run.task for run in (tenth, second, hand)] == ["Generated/2", "Generated/10", "Hand-Crafted/1"]
    assert [step.agent for step in hand.steps] == ["human", "Orchestrator", "WebSurfer"]
    assert hand.steps[hand.mistake_step].agent == hand.mistake_agent == "Orchestrator"
    assert (hand.group, hand.subset, tenth.group) == ("q1", "Hand-Crafted", "q2")


def test_a_critic_is_not_told_the_answer(loaded):
    """A critic would score well because it has read what went wrong."""
    (run,) = loaded(("Generated/1", _log(GENERATED, "0", "Planner")))
    assert "secret" not in json.dumps(run)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"mistake_step": "2"}, "step 2 is marked, of 2"),
        ({"mistake_step": 1}, "'mistake_step': Input should be a valid string"),
        ({"mistake_step": "-1"}, "'mistake_step': String should match"),
        ({"mistake_step": "²"}, "'mistake_step': String should match"),
        ({"history": "text"}, "'history': Input should be a valid list"),
        (
            {"history": [{"name": "Planner", "content": None}]},
            "'history.0.content': Input should",
        ),
        ({"history": ["text"]}, "'history.0': Input should be a valid dictionary"),
        ({"mistake_agent": None}, "'mistake_agent': Input should be a valid string"),
        ({"question_ID": " "}, "'question_ID': String should match"),
    ],
)
def test_a_log_that_can_not_be_used_is_one_clear_line(loaded, change, what):
    """Gold would be missing, or point past the run's end."""
    with pytest.raises(UserError, match=rf"Who&When/Generated/7\.json.*{what}"):
        loaded(("Generated/7", _log(GENERATED, "0", "Planner") | change))


def test_an_archive_without_logs_is_refused(loaded):
    """A table over no runs would be printed."""
    with pytest.raises(UserError, match="holds no log"):
        loaded()
