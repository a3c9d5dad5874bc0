"""Prompts are compared on the same samples: else harder ones would pass for a worse prompt."""

import numpy as np
import pytest

from monitorbench.metrics.columns import Columns, columns
from monitorbench.metrics.prompts import add_prompts, shared_numbers
from monitorbench.metrics.rates import Judged
from monitorbench.metrics.registry import cell_numbers
from monitorbench.metrics.table import SHARED, Place, Table
from monitorbench.metrics.transfer import difference
from monitorbench.records import Label

DRAWN = {"resamples": 200, "seed": 0}


def judged(skill: float, n: int = 40, unscored: int = 0, start: int = 0) -> Columns:
    """Pairs `start` to `n`, the first `unscored` answers no label."""
    draw = np.random.default_rng(round(skill * 100))
    rows = []
    for i in range(start, n):
        for label in Label:
            bad = label is Label.MISBEHAVIOR
            score = 1 / (1 + np.exp(-draw.normal(skill if bad else -skill)))
            answer = Label.MISBEHAVIOR if score > 0.5 else Label.BENIGN
            rows.append(
                Judged(
                    sample_id=f"{i}{label}",
                    pair_id=f"{i}",
                    group_id=f"{i}",
                    category="sycophancy_bias",
                    task="qa",
                    label=label,
                    answer=None if len(rows) < unscored else answer,
                    score=float(score),
                )
            )
    return columns(rows)


def compared(by_prompt: dict[str, Columns]) -> Table:
    table = Table()
    for name in by_prompt:
        table.add(Place("m", name), cell_numbers(by_prompt[name]))
    add_prompts(table, "m", by_prompt, **DRAWN)
    return table


def test_each_prompt_is_compared_with_the_first_on_the_same_samples():
    """Two thirds of a table would be of other samples, and the difference partly theirs."""
    by_prompt = {"evidence": judged(0.5, unscored=6), "direct": judged(1.5), "mine": judged(0.9, start=10)}
    table = compared(by_prompt)
    numbers = shared_numbers(table, "m")
    assert list(numbers) == ["direct", "evidence", "mine"]
    assert {of["n"].whole for of in numbers.values()} == {60}
    shared = {
        name: of.taking(np.array([int(i.as_py()[:2].rstrip("mb")) >= 10 for i in of.sample_ids]))
        for name, of in by_prompt.items()
    }
    for name in ("evidence", "mine"):
        minus = table.numbers(Place("m", name, SHARED, against="direct"))
        assert minus is not None
        expected = difference(shared["direct"], shared[name], **DRAWN)
        assert {metric: minus[metric] for metric in expected} == expected
    n_unscored = numbers["evidence"]["n_unscored"].whole
    assert n_unscored == 0, "the unscored ones are among those that one prompt was not asked"


def test_one_prompt_or_nothing_shared_is_no_comparison():
    """Else a page would show a table of one row, or rates over nothing."""
    for alone in ({"direct": judged(1)}, {"direct": judged(1, 10), "evidence": judged(1, 20, start=10)}):
        table = compared(alone)
        assert not shared_numbers(table, "m")
        assert not table.prompts_apart("m", "auroc_difference")


def test_another_label_under_the_other_prompt_is_refused():
    """Runs over two versions of a dataset would be compared as if it were one."""
    first, second = judged(1), judged(0.5)
    second.is_misbehavior[0] = not second.is_misbehavior[0]
    with pytest.raises(ValueError, match="another label"):
        compared({"direct": first, "evidence": second})
