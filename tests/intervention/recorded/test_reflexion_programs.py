"""Reflexion's programming runs: verdicts as recorded, matched by task, nothing executed."""

import json
import logging

import pytest

from monitorbench.config.base import UserError
from monitorbench.intervention.outcomes import BASELINE
from monitorbench.intervention.recorded import reflexion_programs

ROOT = "programming_runs/root"


def _row(task, is_solved, *reflections, field="name", **change):
    more = {"reflections": list(reflections)} if reflections else {}
    return (
        {field: task, "prompt": "def f():\n", "solution": "return 1", "is_solved": is_solved} | more | change
    )


def _jsonl(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.fixture
def loaded(archived, recorded):
    """The outcomes of a baseline and a treated run, given as rows or as bytes."""

    def load(untreated, given, **changes):
        members = [
            (f"{ROOT}/{run}/log.jsonl", rows if isinstance(rows, bytes) else _jsonl(*rows))
            for run, rows in (("simple_mbpp_py2", untreated), ("reflexion_mbpp_py", given))
        ]
        members += [(f"{ROOT}/reflexion_mbpp_py/notes.txt", b"no log"), ("LICENSE", b"MIT")]
        return reflexion_programs.load(recorded("reflexion_mbpp", **changes), archived("reflexion", *members))

    return load


def test_runs_are_matched_by_task_whatever_their_order(loaded):
    """Recoveries and disruptions would be of two different tasks."""
    baseline = [_row("a", True), _row("b", False), _row("c", False)]
    treated = [_row("c", True, "It forgot zero.", "Again."), _row("a", False, "Wrong."), _row("b", False)]
    found = [
        (one.task, one.condition, one.success, one.interventions, one.steps)
        for one in loaded(baseline, treated)
    ]
    assert found == [
        ("a", BASELINE, True, 0, 1),
        ("a", "reflexion", False, 1, 2),
        ("b", BASELINE, False, 0, 1),
        ("b", "reflexion", False, 0, 1),
        ("c", BASELINE, False, 0, 1),
        ("c", "reflexion", True, 2, 3),
    ]
    assert {(one.seed, one.agent, one.tokens, one.reason) for one in loaded(baseline, treated)} == {
        (0, "gpt-4", 0, "")
    }


def test_tasks_of_one_arm_only_are_left_out_and_counted(loaded, caplog):
    """An unfinished run's missing tasks would be taken for failures, or vanish unsaid."""
    with caplog.at_level(logging.WARNING):
        found = loaded(
            [_row("a", True), _row("b", True)], [_row("b", True), _row("c", True), _row("d", True)]
        )
    assert {one.task for one in found} == {"b"}
    assert "3 tasks were recorded in one arm only" in caplog.text


def test_humanevals_rows_name_their_task_otherwise(loaded):
    """HumanEval could not be read at all."""
    rows = [_row("HumanEval/0", True, field="task_id", entry_point="f")]
    assert {one.task for one in loaded(rows, rows)} == {"HumanEval/0"}


def test_recorded_code_is_never_run(loaded, tmp_path):
    """A log from a stranger would run on the reader's machine."""
    left = tmp_path / "left-behind"
    code = f"open({str(left)!r}, 'w').close()"
    rows = [_row("a", False, code, solution=code, prompt=code, test=code, entry_point=code)]
    assert not any(one.success for one in loaded(rows, rows))
    assert not left.exists()


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (_row("b", "true"), "'is_solved' is neither true nor false"),
        (_row("b", 1), "'is_solved' is neither true nor false"),
        (_row("b", None), "'is_solved' is neither true nor false"),
        (_row("", True), "'name' is no text, or empty"),
        (_row("a", True), "task a is there twice"),
        (_row("b", True, reflections="one"), "'reflections' is no list"),
        (["b", True], "not an object"),
    ],
)
def test_a_row_that_is_no_verdict_is_one_clear_line(loaded, bad, what):
    """A verdict would be guessed: the string "false" counts as true."""
    with pytest.raises(UserError, match=rf"reflexion: .*log\.jsonl line 2: .*{what}") as failed:
        loaded([_row("a", True)], _jsonl(_row("a", True), bad))
    assert "\n" not in str(failed.value)


@pytest.mark.parametrize(
    "line", [b'{"name": "b", "is_solved": tr', b'{"is_solved": true, "is_solved": false}', b"\xff"]
)
def test_a_broken_line_is_one_clear_line(loaded, line):
    """Half a log would pass for the whole, or one of two verdicts be picked."""
    with pytest.raises(UserError, match=r"log\.jsonl line 2: "):
        loaded([_row("a", True)], _jsonl(_row("a", True)) + line)


def test_a_run_that_is_not_there_names_those_that_are(loaded):
    """A typing error would have to be looked up in the archive."""
    rows = [_row("a", True)]
    with pytest.raises(UserError, match=r"'simple_mbpp'; set .* one of reflexion_mbpp_py, simple_mbpp_py2$"):
        loaded(rows, rows, baseline="simple_mbpp")


def test_arms_without_a_common_task_are_refused(loaded):
    """A decision would rest on no pair at all."""
    with pytest.raises(UserError, match="share no task"):
        loaded([_row("a", True)], [_row("b", True)])


def test_a_member_that_is_there_twice_is_refused(archived, recorded):
    """The later of two logs would silently replace the first."""
    member = (f"{ROOT}/simple_mbpp_py2/log.jsonl", _jsonl(_row("a", True)))
    with pytest.raises(UserError, match="is in the archive twice"):
        reflexion_programs.load(recorded("reflexion_mbpp"), archived("reflexion", member, member))
