"""The outcomes file, and outcomes as other people's agents log them, by a map of their columns."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from drawing import draws
from hypothesis import example, given
from hypothesis import strategies as st

from monitorbench.config.base import UserError
from monitorbench.config.pilot import OutcomeColumns
from monitorbench.config.study import Study
from monitorbench.intervention.outcomes import (
    BASELINE,
    FIELDS,
    Outcome,
    read_mapped,
    read_outcomes,
    write_outcomes,
)
from monitorbench.intervention.run import run_pilot
from monitorbench.report.pilot.page import report_pilot
from monitorbench.runs.directory import read_checked

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
COUNT = st.integers(0, 10**12)


@st.composite
def runs(draw: st.DrawFn) -> Outcome:
    condition = draw(st.one_of(st.just(BASELINE), TEXT))
    reason = draw(st.one_of(st.just(""), TEXT))
    return Outcome(
        task=draw(TEXT),
        seed=draw(COUNT),
        agent=draw(TEXT),
        condition=condition,
        success=draw(st.booleans()) and not reason,
        interventions=0 if condition == BASELINE else draw(COUNT),
        steps=draw(COUNT),
        tokens=draw(COUNT),
        reason=reason,
    )


@draws(40)
@given(st.lists(runs(), min_size=1, max_size=5), st.sampled_from([".jsonl", ".csv"]))
@example([Outcome("\r", 0, "a\n", '"', False, 0, 0, 0, "a,b")], ".csv")
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, found: list[Outcome], suffix: str
) -> None:
    """A task's name with a comma, a quote or a line break in it would lose runs, or mix up two."""
    path = tmp_path_factory.mktemp("outcomes") / f"found{suffix}"
    write_outcomes(path, found)
    assert read_outcomes(path) == found


ROW = {
    "task": "t",
    "seed": 0,
    "agent": "a",
    "condition": "none",
    "success": True,
    "interventions": 0,
    "steps": 1,
    "tokens": 2,
}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"success": 1}, "field 'success': 1 is neither true nor false"),
        ({"success": "false"}, "field 'success': 'false' is neither"),
        ({"success": None}, "field 'success': None is neither"),
        ({"seed": -1}, "field 'seed': -1 is no whole number"),
        ({"seed": True}, "field 'seed': True is no whole number"),
        ({"steps": 1.5}, "field 'steps': 1.5 is no whole number"),
        ({"task": 11}, "field 'task': 11 is not text"),
        ({"agent": ""}, "field 'agent': empty"),
        ({"task": "\ud800"}, "field 'task': half a surrogate pair at character 0"),
        ({"sucess": True}, "unknown field 'sucess'; expected task, seed"),
        ({"reason": "critic failed"}, "field 'reason': a run that broke down is no success"),
        ({"interventions": 2}, "field 'interventions': a run of condition 'none' has none"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, change: dict[str, object], problem: str) -> None:
    """A value guessed at would count as a success or a failure that nobody saw."""
    path = tmp_path / "outcomes.jsonl"
    path.write_text(json.dumps(ROW) + "\n\n" + json.dumps(ROW | change) + "\n")
    with pytest.raises(UserError) as caught:
        read_outcomes(path)
    assert str(caught.value).startswith(f"{path}, line 3: {problem}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("field", FIELDS[:-1])
def test_a_missing_field_is_named(tmp_path: Path, field: str) -> None:
    """Without `success` every run would pass for the default, whatever that is."""
    path = tmp_path / "outcomes.jsonl"
    path.write_text(json.dumps({name: value for name, value in ROW.items() if name != field}))
    with pytest.raises(UserError, match=rf"line 1: missing field '{field}'"):
        read_outcomes(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"task": "t"', "line 1: Expecting"),
        ("[1]", "entry 1: no JSON object"),
        ('{"task": "t", "success": true, "success": false}', "line 1: key 'success' twice in one object;"),
        ('{"task": "t", "seed": NaN}', "line 1: NaN is no finite number;"),
        ("", "no row in it; expected a row a line"),
        ("\n \n", "no row in it"),
    ],
)
def test_a_file_that_holds_no_outcomes(tmp_path: Path, text: str, problem: str) -> None:
    """A torn or empty file would otherwise be a pilot of fewer tasks, or a traceback."""
    path = tmp_path / "outcomes.jsonl"
    path.write_text(text)
    with pytest.raises(UserError, match=problem):
        read_outcomes(path)


def test_a_column_twice_is_refused(tmp_path: Path) -> None:
    """The last of two columns would decide, and the first one be what people read."""
    path = tmp_path / "outcomes.csv"
    path.write_text("seed,task,agent,condition,success,success,steps,tokens,interventions\n")
    path.write_text(f"{path.read_text()}1,t,a,none,true,false,5,60,0\n")
    with pytest.raises(UserError, match="column 'success' is there twice"):
        read_outcomes(path)


def test_files_that_are_not_there_or_of_another_kind(tmp_path: Path) -> None:
    """A wrong path must be one line that says what was expected."""
    with pytest.raises(UserError, match="no such file"):
        read_outcomes(tmp_path / "none.csv")
    with pytest.raises(UserError, match=r"ends in \.jsonl or \.csv"):
        read_outcomes(tmp_path / "outcomes.json")
    with pytest.raises(UserError, match=r"ends in \.jsonl or \.csv"):
        write_outcomes(tmp_path / "outcomes.parquet", [])
    (tmp_path / "wide.csv").write_bytes("task,seed".encode("utf-16"))
    with pytest.raises(UserError, match="UTF-16"):
        read_outcomes(tmp_path / "wide.csv")


def test_a_spreadsheets_csv(tmp_path: Path) -> None:
    """Excel writes a byte-order mark, TRUE and Windows line ends; reordered columns must not be mixed up."""
    path = tmp_path / "outcomes.csv"
    header = "seed,task,agent,condition,success,steps,tokens,interventions"
    path.write_bytes(f"\ufeff{header}\r\n1,007,a,none,TRUE,5,60,0\r\n1,007,a,append,0,5,60,2\r\n".encode())
    assert read_outcomes(path) == [
        Outcome("007", 1, "a", "none", True, 0, 5, 60),
        Outcome("007", 1, "a", "append", False, 2, 5, 60),
    ]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("1,t,a,none,maybe,5,60,0", "line 2: field 'success': 'maybe' is neither"),
        ("1,t,a,none,true,5,60", "line 2: 7 values under 8 names"),
        ("1,t,a,none,true,5,60,0,9", "line 2: 9 values under 8 names"),
        ("1.0,t,a,none,true,5,60,0", "line 2: field 'seed': '1.0' is no whole number"),
        ('1,"t,a,none,true,5,60,0', "line 1: unexpected end of data"),
    ],
)
def test_a_bad_csv_row_is_named(tmp_path: Path, row: str, problem: str) -> None:
    """A shifted column would be read as another one's value."""
    path = tmp_path / "outcomes.csv"
    path.write_text(f"seed,task,agent,condition,success,steps,tokens,interventions\n{row}\n")
    with pytest.raises(UserError, match=problem):
        read_outcomes(path)


BOTH = [("a", "none", False), ("a", "help", True), ("b", "none", True), ("b", "help", True)]
EXPECTED = {Outcome(task, 0, "agent", condition, success, 0, 0, 0) for task, condition, success in BOTH}


def episodes() -> str:
    return json.dumps(
        {
            f"e{i}": {
                "task": {"name": task},
                "run": {"mode": condition, "info": {"reward": 1.0 if success else 0.4}},
            }
            for i, (task, condition, success) in enumerate(BOTH)
        }
    )


def solutions() -> str:
    rows = [
        {"q": "a", "first": {"is_correct": False}, "chosen": {"is_correct": True}},
        {"q": "b", "first": {"is_correct": True}, "chosen": {"is_correct": True}},
        {"q": "c", "chosen": {"is_correct": True}},
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def rows() -> str:
    """A blank behind some names is none of them."""
    return "task_id,arm,reward\n" + "".join(f"{t}{' ' * s},{c} ,{1 if s else 0.25}\n" for t, c, s in BOTH)


@pytest.mark.parametrize(
    ("name", "write", "columns"),
    [
        ("runs.csv", rows, {"task": "task_id", "condition": "arm", "success": "reward", "success_from": 1.0}),
        (
            "s.jsonl",
            solutions,
            {"task": "q", "arms": {"none": "first.is_correct", "help": "chosen.is_correct"}},
        ),
        (
            "s.jsonl",
            solutions,
            {"task": "q", "arms": {"agent/none": "first.is_correct", "agent/help": "chosen.is_correct"}},
        ),
        (
            "episodes.json",
            episodes,
            {"task": "task.name", "condition": "run.mode", "success": "run.info.reward", "success_from": 0.5},
        ),
    ],
)
def test_runs_are_read_in_each_public_form(
    name: str, write: Callable[[], str], columns: dict[str, Any], tmp_path: Path
):
    """If it failed: whoever logs a row a run with its reward would have to write a script."""
    (tmp_path / name).write_text(write())
    found = set(read_mapped(tmp_path / name, OutcomeColumns.model_validate(columns)).outcomes)
    assert {run for run in found if run.task != "c"} == EXPECTED
    lacking = [run for run in found if run.task == "c" and run.condition == "none"]
    assert [(run.success, run.reason) for run in lacking] == [(False, "no outcome in the file")] * len(
        lacking
    )
    assert len(lacking) == (write is solutions)


def test_a_condition_called_as_the_baseline_is_not_merged_with_it(tmp_path: Path):
    """Runs under a condition of that name were taken for runs without intervention."""
    file = tmp_path / "runs.csv"
    file.write_text("task,arm,ok\n" + "".join(f"t,{arm},1\n" for arm in ("control", "none", "help")))
    columns = OutcomeColumns(task="task", condition="arm", success="ok", baseline="control")
    with pytest.raises(UserError, match=r"line 3.*a condition 'none'.*'control' \(pilot"):
        read_mapped(file, columns)


def test_a_baseline_that_no_run_has_is_named_with_those_that_are_there(tmp_path: Path):
    """A typo sent its writer off to run all tasks again without intervention."""
    file = tmp_path / "runs.csv"
    file.write_text("task,arm,ok\n" + "".join(f"t,{arm},1\n" for arm in ("control", "help")))
    columns = OutcomeColumns(task="task", condition="arm", success="ok", baseline="contol")
    with pytest.raises(UserError) as raised:
        read_mapped(file, columns)
    assert str(raised.value) == (
        "pilot.columns.baseline='contol': no run has that arm; did you mean control? there are control, help"
    )


def test_a_second_run_is_refused_with_what_would_tell_it_apart(tmp_path: Path):
    """Who forgot to name the column of seeds was told to throw the other runs away."""
    file = tmp_path / "runs.csv"
    file.write_text(
        "ticket,arm,ok,n\n" + "".join(f"t,{arm},1,{n}\n" for n in (0, 1) for arm in ("none", "on"))
    )
    columns = OutcomeColumns(task="ticket", condition="arm", success="ok")
    with pytest.raises(UserError) as raised:
        read_mapped(file, columns)
    assert str(raised.value) == (
        f"{file}, line 4: a second run of ticket=t, arm=none, after {file}, line 2; expected one, or a "
        "column that tells them apart (pilot.columns.seed, pilot.columns.agent)"
    )
    assert len(read_mapped(file, columns.model_copy(update={"seed": "n"})).outcomes) == 4

    file.write_text("ticket,alone,helped\nt,1,1\nt,0,1\n")
    with pytest.raises(
        UserError, match=r"line 3: a second run of ticket=t, after .*, line 2; expected one, or"
    ):
        read_mapped(file, OutcomeColumns(task="ticket", arms={"none": "alone", "on": "helped"}))


def test_columns_that_nothing_is_taken_from_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """A column of tasks went unread, and each row was a task of its own, without a word."""
    (tmp_path / "runs.csv").write_text("problem,solo,helped\np1,yes,no\np1,no,yes\n")
    with caplog.at_level("INFO"):
        read_mapped(tmp_path / "runs.csv", OutcomeColumns(arms={"none": "solo", "critic": "helped"}))
    assert "pilot: not read: problem" in caplog.text


def test_an_outcome_that_lacks_is_no_reason_to_intervene(tmp_path: Path, compose_study: Callable[..., Study]):
    """Blanks in place of the five tasks that were disrupted made *inconclusive* into *intervene*."""
    rows = ["yes,yes"] * 24 + ["no,no"] * 20 + ["no,yes"] * 11 + ["yes,"] * 5 + [","]
    file = tmp_path / "runs.csv"
    file.write_text("alone,helped\n" + "\n".join(rows) + "\n")
    settings = (f"outcomes={file}", "pilot.columns.arms={none:alone,critic:helped}", f"paths.runs={tmp_path}")
    run = run_pilot(compose_study("pilot", *settings))
    found = read_checked(run, "decision.json")
    assert (found["decision"], found["n_tasks"], found["broken_treated"]) == ("inconclusive", 60, 5)
    assert found["broken_left_out"]["decision"] == "intervene"
    page = (report_pilot(run, tmp_path) / "report.html").read_text()
    assert "5 of 120 runs broke down" in page
    assert "no outcome in the file" in page


MARK = {"invalidation": {"author": "kim", "reason": "sandbox was broken"}}


def log_of_runs(file: Path, **more: dict[str, Any]) -> Path:
    """A log of Inspect with three tasks in two arms, `more` being what is said of some runs beside."""
    samples = [
        {
            "id": f"t{task}",
            "epoch": 1,
            "uuid": f"{task}{arm}",
            "scores": {"ok": {"value": int(arm == "critic")}},
            "metadata": {"arm": arm},
            **more.get(f"{arm}{task}", {}),
        }
        for task in range(3)
        for arm in ("none", "critic")
    ]
    header = {"version": 2, "status": "success", "eval": {"eval_id": "e", "task": "t", "model": "m"}}
    file.write_text(json.dumps({**header, "samples": samples}))
    return file


def test_runs_that_a_log_strikes_out_are_no_success(tmp_path: Path, compose_study: Callable[..., Study]):
    """If it failed: runs of a broken sandbox, struck out in the log, would make a pilot say *intervene*."""
    columns = OutcomeColumns(task="sample_id", condition="metadata.arm", success="scores.ok")
    file = log_of_runs(tmp_path / "log.json", critic0=MARK, critic2=MARK)
    found = read_mapped(file, columns)
    assert sorted((run.task, run.condition) for run in found.outcomes) == [
        ("t0", "none"),
        ("t1", "critic"),
        ("t1", "none"),
        ("t2", "none"),
    ]
    (remark,) = found.remarks
    assert "2 of 6 runs are left out, as the log marks them (metadata.arm: 2 critic)" in remark
    assert "it is marked as invalid (sandbox was broken)" in remark
    named = (
        f"pilot.columns.{name}={value}" for name, value in columns.model_dump(exclude_defaults=True).items()
    )
    run = run_pilot(compose_study("pilot", f"outcomes={file}", *named, f"paths.runs={tmp_path}"))
    assert remark in (report_pilot(run, tmp_path) / "report.html").read_text()
    broken = log_of_runs(
        tmp_path / "broken.json", critic1={"scores": None, "error": {"message": "timed out"}}
    )
    with pytest.raises(UserError, match=r"sample 4: it ended in an error \(timed out\); expected runs that"):
        read_mapped(broken, columns)
    none_left = log_of_runs(
        tmp_path / "none.json", **{f"{arm}{i}": MARK for i in range(3) for arm in ("none", "critic")}
    )
    with pytest.raises(UserError, match="as all 6 samples; expected runs that are neither"):
        read_mapped(none_left, columns)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"condition": "arm", "success": "reward"}, r"pilot\.columns\.task: rows are runs"),
        ({"task": "task_id", "condition": "arm", "success": "reward"}, r"line 2: reward='0\.25' is no label"),
        (
            {"task": "task_id", "condition": "reward", "success": "arm"},
            r"arm='help ' is no label.*; other words have to be true or false in the file",
        ),
        (
            {"task": "task_id", "condition": "arms", "success": "reward"},
            r"arms: no such column; did you mean arm",
        ),
        ({"arms": {"none": "reward"}}, r"expected none \(without intervention\) and another"),
        (
            {"arms": {"a/none": "reward", "a/help": "reward", "b/help": "reward"}},
            r"expected none \(without intervention\) and another of b",
        ),
    ],
)
def test_what_can_not_be_taken_is_one_line(columns: dict[str, Any], said: str, tmp_path: Path):
    """If it failed: a reward of .25 would count as a success, or as none, by guess."""
    (tmp_path / "runs.csv").write_text(rows())
    with pytest.raises(UserError, match=said) as raised:
        read_mapped(tmp_path / "runs.csv", OutcomeColumns.model_validate(columns))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("sizes", "interval"), [(("175b",), (0.1865, 0.2449)), (("175b", "6b"), (0.1827, 0.2445))]
)
def test_the_verifiers_choices_of_gsm8k_are_a_pilot(
    sizes: tuple[str, ...], interval: tuple[float, float], tmp_path: Path, compose_study: Callable[..., Study]
):
    """Cobbe et al. 2021: solutions of a 175B model with and without its verifier's choice among 100.

    With the 6B model's beside them the lower bound holds for both at once.
    """
    mirror = os.environ.get("MONITORBENCH_SOURCES")
    file = Path(mirror or "") / "gsm8k" / "example_model_solutions.jsonl.gz"
    if not mirror or not file.is_file():
        pytest.skip("MONITORBENCH_SOURCES has no gsm8k/example_model_solutions.jsonl.gz")
    kinds = {"none": "finetuning", "verifier": "verification"}
    arms = ",".join(f"{size}/{arm}:{size}_{kind}.is_correct" for size in sizes for arm, kind in kinds.items())
    settings = (f"outcomes={file}", f"pilot.columns.arms={{{arms}}}", f"paths.runs={tmp_path}/runs")
    found = read_checked(run_pilot(compose_study("pilot", *settings)), "decision.json")
    assert (found["decision"], found["agent"]) == ("intervene", "175b")
    assert list(found["counts"].values()) == [501, 76, 360, 382]
    assert found["delta_success_ci"] == pytest.approx(interval, abs=1e-3)
