import numpy as np
import pytest

from monitorbench.metrics.columns import UNPAIRED, by_cell, by_slice, columns, present
from monitorbench.metrics.rates import Judged
from monitorbench.records import Category, Label, Task

CELL = (Category.SYCOPHANCY_BIAS, Task.QA)


def test_what_is_missing_is_nan_and_unpaired_samples_are_no_pair() -> None:
    """A missing answer read as 0 would be a sample passed; samples without a pair would become twins."""
    bad, good = Label.MISBEHAVIOR, Label.BENIGN
    found = columns(
        [
            Judged("1", "b", "y", *CELL, bad, bad, 0.75),
            Judged("2", "b", "x", *CELL, good, None, 0.25),
            Judged("3", "", "x", *CELL, good, good, None),
        ]
    )
    assert found.is_misbehavior.tolist() == [True, False, False]
    assert found.flagged == pytest.approx([1, np.nan, 0], nan_ok=True)
    assert found.scores == pytest.approx([0.75, 0.25, np.nan], nan_ok=True)
    assert found.groups.tolist() == [1, 0, 0]
    assert found.pairs[0] == found.pairs[1] > UNPAIRED == found.pairs[2]
    assert len(columns([])) == len(columns([]).sample_ids) == 0


def test_lengths_have_to_agree_and_missing_values_are_left_out() -> None:
    """Answers paired with other samples' labels would be plausible nonsense."""
    flags, values = present([True, False, True], [None, 0.5, float("nan")])
    assert (flags.tolist(), values.tolist()) == ([False], [0.5])
    with pytest.raises(ValueError, match="expected 2 values"):
        present([True, False], [0.1])


def test_own_names_come_behind_the_papers() -> None:
    """Cells of a team's own would be counted under other names, or not at all."""
    cells = [("pii", "qa"), ("abuse", "mail"), CELL, ("pii", "mail")]
    found = columns([Judged(str(i), "", "", *cell, Label.BENIGN, None, None) for i, cell in enumerate(cells)])
    assert found.category_names == (*Category, "abuse", "pii")
    assert found.task_names == (*Task, "mail")
    inside = {name: mask.nonzero()[0].tolist() for name, mask in by_cell(found).items()}
    assert list(inside.items()) == [
        ("overall", [0, 1, 2, 3]),
        ("sycophancy_bias", [2]),
        ("sycophancy_bias/qa", [2]),
        ("abuse", [1]),
        ("abuse/mail", [1]),
        ("pii", [0, 3]),
        ("pii/qa", [0]),
        ("pii/mail", [3]),
    ]
    assert by_slice(found)["task:mail"].tolist() == [False, True, False, True]
    assert found.in_cells(["pii/mail", "sycophancy_bias/qa"]).tolist() == [False, False, True, True]
    assert len(set(found.cells.tolist())) == 4
    assert found.taking(np.array([3])).category_names == found.category_names
