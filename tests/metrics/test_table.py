"""The results table: what was put in is found, by whoever asks for it, and survives `metrics.json`."""

import ast
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import monitorbench
from monitorbench.config.evaluation import Stakes
from monitorbench.metrics.columns import OVERALL, Columns, columns
from monitorbench.metrics.metrics_json import number_trees, read_trees
from monitorbench.metrics.rates import Judged
from monitorbench.metrics.summary import add_numbers
from monitorbench.metrics.table import BASE, MACRO, NO_PROMPT, SHARED, Number, Place, Table, is_cell, is_slice
from monitorbench.records import Category, Label, Task

STAKES = Stakes(base_rate=0.1, cost_miss=20, cost_alarm=1)


def judged(*, unscored: int = 0) -> Columns:
    rng = np.random.default_rng(0)
    rows = [
        Judged(
            sample_id=f"{task}{i}{label}",
            pair_id=f"{task}{i}",
            group_id=f"{task}{i // 2}",
            category=Category.SAFETY_PERMISSION,
            task=task,
            label=label,
            answer=label if rng.random() < 0.8 else Label.BENIGN,
            score=float(rng.random()),
            source="made",
            stratum=f"s{i % 2}",
        )
        for task in (Task.QA, Task.CODE)
        for i in range(12)
        for label in Label
    ]
    return columns([replace(row, answer=None) if i < unscored else row for i, row in enumerate(rows)])


@pytest.fixture(scope="module")
def made() -> tuple[Table, dict]:
    table = Table()
    curves = {
        name: {prompt: add_numbers(table, name, prompt, judged(unscored=n), STAKES)}
        for name, prompt, n in (("m", "direct", 3), ("random", NO_PROMPT, 0))
    }
    return table, curves


def test_what_was_written_is_read_back(made: tuple[Table, dict]):
    """The report of a run would differ from the table that was printed when it was scored."""
    table, curves = made
    read, read_curves = read_trees(json.loads(json.dumps(number_trees(table, curves), allow_nan=False)))
    assert list(read.rows()) == list(table.rows())
    assert read_curves == curves


def test_a_row_says_what_it_is_over_and_why_it_is_missing(made: tuple[Table, dict]):
    """A rate without its n, or a dash without a reason, is what nobody can check."""
    table, _ = made
    (row,) = table.where(metric="miss_rate", monitor="m", part=OVERALL)
    n = sum(of.value or 0 for of in table.where(metric="n_misbehavior_scored", monitor="m", part=OVERALL))
    assert (row.n, row.n_groups, row.prompt, row.point, row.split) == (n, 12, "direct", "", "test")
    (low,) = table.where(metric="miss_rate_at_far_5", monitor="m", part=OVERALL)
    assert (low.value, low.missing) == (None, "needs 59 benign questions, has 12")
    assert not [row for row in table.rows() if row.value is None and row.low is None and not row.missing]


def test_what_is_set_against_another_is_none_of_a_monitors_own_numbers():
    """A difference of .1 would be drawn as an AUROC of .1, and `held_out` as a cell."""
    table, own, apart = Table(), {"auroc": Number("auroc", 0.8)}, {"auroc": Number("auroc", 0.1)}
    table.add(Place("m", "direct"), own)
    for part in (OVERALL, "held_out"):
        table.add(Place("m", "direct", part, against=BASE), apart)
        table.add(Place("family", "direct", part, against=BASE), apart)
    assert table.parts("m", "direct") == {OVERALL: own}
    assert table.judged() == [("m", "direct")]
    assert table.cells_under("direct") == [OVERALL]
    assert list(table.compared(BASE)) == ["m", "family"]
    assert [(row.value, row.against) for row in table.where(monitor="m", part=OVERALL)] == [
        (0.8, ""),
        (0.1, "base"),
    ]


def test_every_part_is_one_kind_of_part(made: tuple[Table, dict]):
    """A stratum among the cells would be counted a second time in every mean over them."""
    table, _ = made
    parts = list(table.parts("m", "direct"))
    cells, slices = [p for p in parts if is_cell(p)], [p for p in parts if is_slice(p)]
    assert {*cells, *slices, MACRO} == set(parts)
    assert "safety_permission/qa:s0" in slices
    assert (is_cell(SHARED), is_slice(SHARED)) == (False, False)


def test_a_point_is_no_monitor_of_its_own():
    """Numbers at a threshold would stand in the tables as another monitor's own answers."""
    table = Table()
    add_numbers(table, "m", "direct", judged(), STAKES)
    before = table.judged(), dict(table.parts("m", "direct"))
    table.add(Place("m", "direct", point="p"), {"n": table.parts("m", "direct")[OVERALL]["n"]})
    assert (table.judged(), dict(table.parts("m", "direct"))) == before
    assert [row.point for row in table.where(metric="n", part=OVERALL)] == ["", "p"]


ROOMS = ("metrics", "library", "runs", "scoring", "intervention/statistics")


@pytest.mark.parametrize(("room", "other"), [*((room, "report") for room in ROOMS), ("metrics", "config")])
def test_what_computes_imports_neither_what_prints_nor_settings(room: str, other: str):
    """A number could not be had without the page's libraries, or a whole study's settings."""
    assert monitorbench.__file__ is not None
    found = []
    for file in sorted((Path(monitorbench.__file__).parent / room).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"monitorbench.{other}"):
                found.append(f"{file.name}:{node.lineno} imports {node.module}")
    assert found == []
