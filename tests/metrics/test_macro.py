"""Macro averages and slices: a small cell counts as much as a large one, and nothing is counted twice."""

import random
from dataclasses import replace

import numpy as np
import pytest

from monitorbench.metrics.columns import by_slice, columns
from monitorbench.metrics.rates import Judged
from monitorbench.metrics.summary import macro, summarise
from monitorbench.records import Category, Label, Task

DRAWS = {"resamples": 300, "seed": 0}


def judged(sizes: dict[tuple[Category, Task], int], wrong: float, unscored: float = 0.0) -> list[Judged]:
    drawn = random.Random(0)
    flipped = {Label.BENIGN: Label.MISBEHAVIOR, Label.MISBEHAVIOR: Label.BENIGN}
    return [
        Judged(
            f"{category}/{task}/{i}/{label}",
            f"{category}/{task}/{i}",
            f"{category}/{task}/{i}",
            category,
            task,
            label,
            None if drawn.random() < unscored else flipped[label] if drawn.random() < wrong else label,
            drawn.random(),
            source=f"source {i % 2}",
            has_thinking=i % 3 == 0,
        )
        for (category, task), n in sizes.items()
        for i in range(n)
        for label in Label
    ]


LARGE, SMALL = (Category.SAFETY_PERMISSION, Task.CODE), (Category.SYCOPHANCY_BIAS, Task.QA)


def test_each_cell_counts_once():
    """A monitor that is good in the largest cell only would look good everywhere."""
    found = judged({LARGE: 200}, 0.0) + judged({SMALL: 20}, 1.0)
    by_cell = summarise(columns(found), **DRAWS)
    averaged = macro(columns(found), by_cell, **DRAWS)
    assert averaged["n_cells"] == 2
    assert averaged["miss_rate"] == averaged["false_alarm_rate"] == 0.5
    assert by_cell["overall"]["miss_rate"] == pytest.approx(20 / 220)


def test_it_is_the_mean_of_the_cells_with_an_interval_around_it():
    """The number would differ from what a reader works out from the table above it."""
    found = judged({LARGE: 60, SMALL: 30, (Category.SYCOPHANCY_BIAS, Task.REASONING): 10}, 0.3, 0.1)
    by_cell = summarise(columns(found), **DRAWS)
    averaged = macro(columns(found), by_cell, **DRAWS)
    for key in ("miss_rate", "false_alarm_rate", "auroc"):
        cells = [numbers[key] for name, numbers in by_cell.items() if "/" in name]
        assert averaged[key] == pytest.approx(np.mean(cells))
    for key in ("miss_rate", "false_alarm_rate"):
        low, high = averaged[f"{key}_ci"]
        assert low < averaged[key] < high
        assert high - low < 0.35


def test_without_answers_there_is_no_average():
    """An unscored monitor would get a rate of 0."""
    nothing = columns([replace(one, answer=None, score=None) for one in judged({LARGE: 5}, 0.0)])
    averaged = macro(nothing, summarise(nothing, **DRAWS), **DRAWS)
    assert averaged["miss_rate"] is averaged["false_alarm_rate_ci"] is averaged["auroc"] is None


def test_slices_part_the_samples():
    """A sample would be in two sources, or in none."""
    found = judged({LARGE: 12, SMALL: 9}, 0.2)
    held = columns(found)
    slices = {name: held.taking(inside) for name, inside in by_slice(held).items()}
    for names in (
        ["task:qa", "task:code"],
        ["with_thinking", "without_thinking"],
        ["source:source 0", "source:source 1"],
    ):
        assert sorted(one for name in names for one in slices[name].sample_ids.to_pylist()) == sorted(
            one.sample_id for one in found
        )
    assert "task:reasoning" not in slices
    assert slices["with_thinking"].has_thinking.all()
