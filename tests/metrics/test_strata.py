"""Strata of a cell beside it, and a headline stratum whose numbers are the cell's."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from monitorbench.config.evaluation import Stakes
from monitorbench.metrics.columns import Columns, by_cell, by_slice, by_stratum, columns
from monitorbench.metrics.marks import SURFACES, SurfaceCheck, in_words, is_marked, shortcuts, shown_name
from monitorbench.metrics.metrics_json import number_trees
from monitorbench.metrics.rates import Judged
from monitorbench.metrics.registry import of_parts
from monitorbench.metrics.summary import add_numbers, macro
from monitorbench.metrics.table import Table
from monitorbench.metrics.transfer import differences
from monitorbench.records import Label
from monitorbench.scoring.measure import Drawn

DRAWS = Drawn(resamples=100, seed=0)


def numbers(judged: Columns, stakes: Stakes) -> dict[str, Any]:
    """One monitor's numbers as `metrics.json` has them."""
    table = Table()
    curves = {"m": {"direct": add_numbers(table, "m", "direct", judged, stakes)}}
    return {key: tree["m"]["direct"] for key, tree in number_trees(table, curves).items()}


STAKES = Stakes(base_rate=0.1, cost_miss=10, cost_alarm=1)
QA, CODE = "safety_permission/qa", "safety_permission/code"


def judged(seed: int = 0, *, strata: bool = True) -> list[Judged]:
    """Two cells of forty pairs; the first has two strata, which a monitor finds easy and hard."""
    drawn = random.Random(seed)
    found = []
    for task in ("qa", "code"):
        for i in range(40):
            easy = task == "qa" and i % 2 == 0
            for label in Label:
                score = min(1, max(0, drawn.gauss(0.7 if label is Label.MISBEHAVIOR and easy else 0.5, 0.2)))
                answer = Label.MISBEHAVIOR if score > 0.55 else Label.BENIGN
                name = f"{task}{i}"
                stratum = ("refusal" if easy else "compliant") if strata and task == "qa" else ""
                found.append(
                    Judged(
                        f"{name}{label}",
                        name,
                        name,
                        "safety_permission",
                        task,
                        label,
                        answer,
                        score,
                        stratum=stratum,
                    )
                )
    return found


def test_each_stratum_of_a_cell_has_its_own_numbers() -> None:
    """An easy half would carry a cell's number; scikit-learn's AUROC of each half is the oracle."""
    rows = judged()
    found = numbers(columns(rows), STAKES)
    for stratum in ("refusal", "compliant"):
        inside = [one for one in rows if one.stratum == stratum]
        told = found["slices"][f"{QA}:{stratum}"]
        assert told["n"] == len(inside) == 40
        assert told["auroc"] == pytest.approx(
            roc_auc_score([one.label is Label.MISBEHAVIOR for one in inside], [one.score for one in inside])
        )
        low, high = told["auroc_ci"]
        assert low <= told["auroc"] <= high
        missed = [one.answer is Label.BENIGN for one in inside if one.label is Label.MISBEHAVIOR]
        assert told["miss_rate"] == pytest.approx(sum(missed) / len(missed))
    assert not [name for name in found["slices"] if name.startswith(CODE)], "one stratum is no part of a cell"
    assert sum(mask.sum() for mask in by_stratum(columns(rows)).values()) == 80


def test_without_strata_nothing_is_added() -> None:
    """Numbers of datasets that were judged before have to stay what they were."""
    plain, named = columns(judged(strata=False)), columns(judged())
    assert by_stratum(plain) == {}
    before, after = (numbers(one, STAKES) for one in (plain, named))
    slices = {name: cell for name, cell in after["slices"].items() if not name.startswith(QA)}
    assert {**after, "slices": slices} == before


def test_a_headline_changes_its_cell_and_the_mean_over_cells_alone() -> None:
    """The cell's number is the compliant stratum's; overall and the category still are of every sample."""
    whole = columns(judged())
    headed = replace(whole, headline={QA: "compliant"})
    before, after = (numbers(one, STAKES) for one in (whole, headed))
    assert after["monitors"][QA] == before["slices"][f"{QA}:compliant"] != before["monitors"][QA]
    for same in ("overall", "safety_permission", CODE):
        assert after["monitors"][same] == before["monitors"][same]
    assert after["slices"] == before["slices"]
    assert after["overall"] == before["overall"]
    cells = [after["monitors"][name] for name in (QA, CODE)]
    for rate in ("miss_rate", "false_alarm_rate", "auroc"):
        assert after["macro"][rate] == pytest.approx(np.mean([cell[rate] for cell in cells]))
    low, high = after["macro"]["miss_rate_ci"]
    assert low <= after["macro"]["miss_rate"] <= high


def test_a_difference_from_the_base_is_of_the_same_samples() -> None:
    """The matrix would show the headline's AUROC above a difference of the whole cell's."""
    base, tuned = (replace(columns(judged(seed)), headline={QA: "compliant"}) for seed in (0, 1))
    found = differences(base, tuned, **DRAWS)
    cells = [of_parts(one, by_cell(one))[QA]["auroc"].value for one in (base, tuned)]
    assert found[QA]["n"].value == 40
    assert found[QA]["auroc_difference"].value == pytest.approx(cells[1] - cells[0])


def test_a_headline_without_samples_leaves_its_cell_whole() -> None:
    """A view that holds none of the stratum would lose the cell, or show it empty."""
    headed = replace(columns(judged()), headline={QA: "not there", CODE: "compliant"})
    for cell in (QA, CODE):
        assert by_cell(headed)[cell].sum() == 80
    easy = headed.taking(np.flatnonzero(by_slice(headed)[f"{QA}:refusal"]))
    left = replace(easy, headline={QA: "compliant"})
    assert by_cell(left)[QA].all()
    assert macro(left, of_parts(left, by_cell(left)))["n_cells"].value == 1


def check(auroc: float | None, half: float = 0.05) -> SurfaceCheck:
    bounds = None if auroc is None else [auroc - half, auroc + half]
    marked = is_marked("echo", auroc, bounds)
    rule = "a rule" if marked else ""
    return SurfaceCheck(
        auroc=auroc, auroc_ci=bounds, n=9, within=auroc, from_train=None, marked=marked, rule=rule
    )


def test_the_strongest_check_marks_a_cell() -> None:
    """The rule that is printed has to be that of the check which is surest, not of the largest value."""
    checks = {name: check(0.5) for name in SURFACES}
    assert shortcuts(checks)["marked_by"] is None
    checks |= {"form": check(0.95, 0.25), "echo": check(0.9), "length": check(None)}
    found = shortcuts(checks)
    assert (found["marked_by"], found["rule"]) == ("echo", "a rule")
    assert shortcuts({"echo": check(0.70)})["marked_by"] is None, "its lower bound is .65, not above it"
    assert in_words("echo", found["checks"]["echo"]) == "echo 0.90 [0.85, 0.95]: a rule"
    assert in_words("length", found["checks"]["length"]) == "length –"
    assert [shown_name(name) for name in (QA, f"{QA}:", f"{QA}:a:b")] == [
        QA,
        f"{QA}: no stratum",
        f"{QA}: a:b",
    ]
