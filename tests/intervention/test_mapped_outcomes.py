"""Outcomes as other people's agents log them, by a map of their columns."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monitorbench.config.base import UserError
from monitorbench.config.pilot import OutcomeColumns
from monitorbench.config.study import Study
from monitorbench.intervention.outcomes import Outcome, read_mapped
from monitorbench.intervention.run import run_pilot
from monitorbench.runs.directory import read_checked

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
    return "task_id,arm,reward\n" + "".join(f"{t},{c},{1 if s else 0.25}\n" for t, c, s in BOTH)


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
    assert set(read_mapped(tmp_path / name, OutcomeColumns.model_validate(columns))) == EXPECTED


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"condition": "arm", "success": "reward"}, r"pilot\.columns\.task: rows are runs"),
        ({"task": "task_id", "condition": "arm", "success": "reward"}, r"line 2: reward='0\.25' is no label"),
        (
            {"task": "task_id", "condition": "arms", "success": "reward"},
            r"arms: no such column; did you mean arm",
        ),
        ({"arms": {"none": "reward"}}, r"expected none \(without intervention\) and another"),
    ],
)
def test_what_can_not_be_taken_is_one_line(columns: dict[str, Any], said: str, tmp_path: Path):
    """If it failed: a reward of .25 would count as a success, or as none, by guess."""
    (tmp_path / "runs.csv").write_text(rows())
    with pytest.raises(UserError, match=said) as raised:
        read_mapped(tmp_path / "runs.csv", OutcomeColumns.model_validate(columns))
    assert "\n" not in str(raised.value)


def test_the_verifiers_choices_of_gsm8k_are_a_pilot(tmp_path: Path, compose_study: Callable[..., Study]):
    """Cobbe et al. 2021: solutions of a 175B model with and without its verifier's choice among 100."""
    mirror = os.environ.get("MONITORBENCH_SOURCES")
    file = Path(mirror or "") / "gsm8k" / "example_model_solutions.jsonl.gz"
    if not mirror or not file.is_file():
        pytest.skip("MONITORBENCH_SOURCES has no gsm8k/example_model_solutions.jsonl.gz")
    arms = "{none:175b_finetuning.is_correct,verifier:175b_verification.is_correct}"
    settings = (f"outcomes={file}", f"pilot.columns.arms={arms}", f"paths.runs={tmp_path}/runs")
    found = read_checked(run_pilot(compose_study("pilot", *settings)), "decision.json")
    assert found["decision"] == "intervene"
    assert found["delta_success"] == pytest.approx((360 - 76) / 1319, abs=1e-9)
    low, high = found["delta_success_ci"]
    assert low == pytest.approx(0.183, abs=0.006)
    assert high == pytest.approx(0.244, abs=0.006)
