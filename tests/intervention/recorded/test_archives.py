"""Reflexion's and FireAct's recorded runs: what counts as a pair, and what is refused."""

import gzip
import json
import logging

import pytest

from monitorbench.config.base import UserError
from monitorbench.intervention.outcomes import BASELINE
from monitorbench.intervention.recorded import archives

FIRST = {"env_0": True, "env_1": False, "env_2": False}


def _trial(solved):
    return [
        {"name": game, "memory": ["Look closer."], "is_success": success} for game, success in solved.items()
    ]


@pytest.fixture
def loaded(archived, recorded):
    """The outcomes after `trial` retries of arms that are given trial by trial."""

    def load(baseline, treated, trial):
        members = [
            (f"alfworld_runs/root/{arm}/env_results_trial_{number}.json", content)
            for arm, trials in (("base_run_logs", baseline), ("reflexion_run_logs", treated))
            for number, content in enumerate(
                each if isinstance(each, list | bytes) else _trial(each) for each in trials
            )
        ]
        members.append(("alfworld_runs/root/base_run_logs/world.log", b"no results"))
        return archives.load_trials(
            recorded("reflexion_alfworld", trial=trial), archived("reflexion", *members)
        )

    return load


def test_attempts_end_with_the_trial_that_solved_the_game(loaded):
    """An arm's cost would be counted on beyond its success, or its retries not be seen as interventions."""
    found = loaded(
        [FIRST, FIRST | {"env_1": True}, FIRST | {"env_1": True}],
        [FIRST, FIRST, FIRST | {"env_2": True}],
        trial=2,
    )
    rows = {(one.task, one.condition): (one.success, one.interventions, one.steps) for one in found}
    assert rows == {
        ("env_0", BASELINE): (True, 0, 1),
        ("env_0", "reflexion"): (True, 0, 1),
        ("env_1", BASELINE): (True, 0, 2),
        ("env_1", "reflexion"): (False, 2, 3),
        ("env_2", BASELINE): (False, 0, 3),
        ("env_2", "reflexion"): (True, 2, 3),
    }


def test_arms_are_compared_after_the_same_number_of_retries(loaded):
    """More retries in one arm would pass for the effect of reflections."""
    treated = [FIRST, FIRST, FIRST | {"env_1": True}]
    after_one = loaded([FIRST, FIRST], treated, trial=1)
    assert not any(one.success for one in after_one if one.task == "env_1")
    with pytest.raises(UserError, match=r"base_run_logs has no trial 2; set recorded\.trial to at most 1"):
        loaded([FIRST, FIRST], treated, trial=2)


@pytest.mark.parametrize(
    ("second", "what"),
    [
        (FIRST | {"env_0": False}, "env_0 was solved before"),
        (FIRST | {"env_9": True}, "env_9 is there twice, or new"),
        ({"env_0": True}, "holds 1 of 3 games"),
        (_trial(FIRST) + _trial({"env_1": True}), "env_1 is there twice"),
        (FIRST | {"env_1": "no"}, "valid boolean"),
        (b"{}", "valid list"),
        (b"[{", "no JSON"),
    ],
)
def test_trials_that_do_not_fit_together_are_refused(loaded, second, what):
    """A mixed-up log would give counts that look like any others."""
    with pytest.raises(UserError, match=what):
        loaded([FIRST, second], [FIRST, FIRST], trial=1)


ROOT = "programming_runs/root"


def _row(task, is_solved, *reflections, field="name", **change):
    more = {"reflections": list(reflections)} if reflections else {}
    return (
        {field: task, "prompt": "def f():\n", "solution": "return 1", "is_solved": is_solved} | more | change
    )


def _jsonl(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.fixture
def programs(archived, recorded):
    """The outcomes of a baseline and a treated run, given as rows or as bytes."""

    def load(untreated, given, **changes):
        members = [
            (f"{ROOT}/{run}/log.jsonl", rows if isinstance(rows, bytes) else _jsonl(*rows))
            for run, rows in (("simple_mbpp_py2", untreated), ("reflexion_mbpp_py", given))
        ]
        members += [(f"{ROOT}/reflexion_mbpp_py/notes.txt", b"no log"), ("LICENSE", b"MIT")]
        return archives.load_programs(recorded("reflexion_mbpp", **changes), archived("reflexion", *members))

    return load


def test_runs_are_matched_by_task_whatever_their_order(programs):
    """Recoveries and disruptions would be of two different tasks."""
    baseline = [_row("a", True), _row("b", False), _row("c", False)]
    treated = [_row("c", True, "It forgot zero.", "Again."), _row("a", False, "Wrong."), _row("b", False)]
    found = [
        (one.task, one.condition, one.success, one.interventions, one.steps)
        for one in programs(baseline, treated)
    ]
    assert found == [
        ("a", BASELINE, True, 0, 1),
        ("a", "reflexion", False, 1, 2),
        ("b", BASELINE, False, 0, 1),
        ("b", "reflexion", False, 0, 1),
        ("c", BASELINE, False, 0, 1),
        ("c", "reflexion", True, 2, 3),
    ]
    assert {(one.seed, one.agent, one.tokens, one.reason) for one in programs(baseline, treated)} == {
        (0, "gpt-4", 0, "")
    }


def test_tasks_of_one_arm_only_are_left_out_and_counted(programs, caplog):
    """An unfinished run's missing tasks would be taken for failures, or vanish unsaid."""
    with caplog.at_level(logging.WARNING):
        found = programs(
            [_row("a", True), _row("b", True)], [_row("b", True), _row("c", True), _row("d", True)]
        )
    assert {one.task for one in found} == {"b"}
    assert "3 tasks were recorded in one arm only" in caplog.text


def test_humanevals_rows_name_their_task_otherwise(programs):
    """HumanEval could not be read at all."""
    rows = [_row("HumanEval/0", True, field="task_id", entry_point="f")]
    assert {one.task for one in programs(rows, rows)} == {"HumanEval/0"}


def test_recorded_code_is_never_run(programs, tmp_path):
    """A log from a stranger would run on the reader's machine."""
    left = tmp_path / "left-behind"
    code = f"open({str(left)!r}, 'w').close()"
    rows = [_row("a", False, code, solution=code, prompt=code, test=code, entry_point=code)]
    assert not any(one.success for one in programs(rows, rows))
    assert not left.exists()


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (_row("b", "true"), "'is_solved': Input should be a valid boolean"),
        (_row("b", 1), "'is_solved': Input should be a valid boolean"),
        (_row("b", None), "'is_solved': Input should be a valid boolean"),
        (_row("", True), "'name': String should match"),
        (_row("a", True), "task a is there twice"),
        (_row("b", True, reflections="one"), "'reflections': Input should be a valid list"),
        (["b", True], "valid dictionary"),
    ],
)
def test_a_row_that_is_no_verdict_is_one_clear_line(programs, bad, what):
    """A verdict would be guessed: the string "false" counts as true."""
    with pytest.raises(UserError, match=rf"reflexion: .*log\.jsonl line 2: .*{what}") as failed:
        programs([_row("a", True)], _jsonl(_row("a", True), bad))
    assert "\n" not in str(failed.value)


@pytest.mark.parametrize(
    "line", [b'{"name": "b", "is_solved": tr', b'{"is_solved": true, "is_solved": false}', b"\xff"]
)
def test_a_broken_line_is_one_clear_line(programs, line):
    """Half a log would pass for the whole, or one of two verdicts be picked."""
    with pytest.raises(UserError, match=r"log\.jsonl line 2: "):
        programs([_row("a", True)], _jsonl(_row("a", True)) + line)


def test_a_run_that_is_not_there_names_those_that_are(programs):
    """A typing error would have to be looked up in the archive."""
    rows = [_row("a", True)]
    with pytest.raises(UserError, match=r"'simple_mbpp'; set .* one of reflexion_mbpp_py, simple_mbpp_py2$"):
        programs(rows, rows, baseline="simple_mbpp")


def test_arms_without_a_common_task_are_refused(programs):
    """A decision would rest on no pair at all."""
    with pytest.raises(UserError, match="share no task"):
        programs([_row("a", True)], [_row("b", True)])


def test_a_member_that_is_there_twice_is_refused(archived, recorded):
    """The later of two logs would silently replace the first."""
    member = (f"{ROOT}/simple_mbpp_py2/log.jsonl", _jsonl(_row("a", True)))
    with pytest.raises(UserError, match="is in the archive twice"):
        archives.load_programs(recorded("reflexion_mbpp"), archived("reflexion", member, member))


CHAT = [
    {"role": "user", "content": "Action: is no action here"},
    {"role": "assistant", "content": "Thought: look.\nAction: search[x]"},
    {"role": "user", "content": "Observation: y"},
    {"role": "assistant", "content": "Action: finish[y]"},
]
TEXT = "Action: of the prompt\n### Response:\nThought: known.\nAction: finish[y]\nObservation: right\n"


def _question(reward, traj=TEXT):
    return {"reward": reward, "em": reward, "f1": 1.0, "gt": "y", "pred": "y", "prompt": "", "traj": traj}


@pytest.fixture
def policies(as_files, recorded):
    def load(small, large):
        files = as_files("fireact", ("run_llama-2-7b-d.json", small), ("run_llama-2-13b-d.json", large))
        return archives.load_policies(recorded("fireact"), files)

    return load


def test_policies_are_matched_by_question_and_their_actions_counted(policies):
    """One agent's answer would be held against the other's on another question."""
    found = policies(
        {"1": _question(True), "2": _question(False, CHAT)}, {"2": _question(True), "3": _question(True)}
    )
    assert [(one.task, one.condition, one.success, one.steps) for one in found] == [
        ("2", BASELINE, False, 2),
        ("2", "llama-2-13b", True, 1),
    ]
    assert {(one.agent, one.seed, one.interventions) for one in found} == {("fireact", 0, 0)}


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ({"1": _question("yes")}, "'1.reward': Input should be a valid boolean"),
        ({"1": _question(True, None)}, "'1.traj.str': Input should be a valid string"),
        ({"1": "text"}, "'1': Input should be a valid dictionary"),
        ([], "valid dictionary"),
        (b'{"1": {}, "1": {}}', "key '1' twice in one object"),
        (b"{", "no JSON"),
    ],
)
def test_a_broken_file_is_one_clear_line(policies, content, what):
    """A question that is there twice would be answered by whichever comes last."""
    with pytest.raises(UserError, match=what):
        policies({"1": _question(True)}, content)


def test_a_file_that_breaks_off_is_one_clear_line(as_files, recorded):
    """A half-copied mirror would end in a traceback."""
    packed = gzip.compress(b'{"1": {}}')
    files = as_files("fireact", ("a_llama-2-7b.json.gz", packed[:-6]), ("a_llama-2-13b.json", {}))
    with pytest.raises(UserError, match=r"broken \.gz file"):
        archives.load_policies(recorded("fireact"), files)


def test_a_policy_has_to_name_one_file(as_files, recorded):
    """Two agents' runs would be mixed."""
    files = as_files("fireact", ("a_llama-2-7b.json", {}), ("b_llama-2-13b.json", {}))
    with pytest.raises(UserError, match=r"2 files are named after the policy 'llama-2'"):
        archives.load_policies(recorded("fireact", treated="llama-2"), files)
