import copy
import csv
import io
from typing import Any

import pytest
from fake_results import BASE, fake_tree
from rich.console import Console

from monitorbench.metrics.metrics_json import as_results, monitor_rows, to_csv, transfer_rows
from monitorbench.metrics.results import short_names
from monitorbench.metrics.written import (
    Finding,
    count,
    finding,
    rate,
    rate_with_interval,
    signed_with_interval,
)
from monitorbench.report.tables.effects import comparisons
from monitorbench.report.tables.tables import print_tables

TREE = fake_tree()
RESULTS = as_results(TREE)


def printed(results, encoding: str = "utf-8") -> str:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    print_tables(Console(file=out, width=80), results)
    out.flush()
    return out.buffer.getvalue().decode(encoding)


def renamed(tree: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """The same `metrics.json` with a monitor under another name."""
    found = copy.deepcopy(tree)
    by_monitor = ("monitors", "slices", "macro", "overall", "transfer", "trained_on", "learning_curves")
    for key in (*by_monitor, "effects", "adapters", "operating_points", "usage"):
        found[key] = {new if name == old else name: value for name, value in found[key].items()}
    found["adapters"] = {
        training: [new if name == old else name for name in names]
        for training, names in found["adapters"].items()
    }
    words = found["matrix"]["words"]
    found["matrix"]["words"] = {new if name == old else name: value for name, value in words.items()}
    found["pareto"] = {p: [new if n == old else n for n in names] for p, names in found["pareto"].items()}
    return found


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.357, ".36"), (0.0, ".00"), (1.0, "1.0"), (0.9996, "1.0"), (0.996, ".996"), (None, "–")],
)
def test_a_rate_is_short_and_1_only_where_it_is_1(value: float | None, text: str) -> None:
    """A monitor that misses one of 250 is shown as perfect, or columns shift by many characters."""
    assert rate(value) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (99_999, "99999"),
        (250_660, "251k"),
        (999_499, "999k"),
        (999_500, "1.0M"),
        (12_345_678, "12.3M"),
    ],
)
def test_a_count_takes_five_characters(number: int, text: str) -> None:
    """A sweep of a million verdicts folded its counts over two lines."""
    assert count(number) == text


def test_intervals_are_written_in_words_a_reader_knows() -> None:
    """`.36 [.25–.48]` and `−.03 [−.10, .00]`: a lost sign would turn worse into better."""
    assert rate_with_interval(0.36, [0.25, 0.48]) == ".36 [.25–.48]"
    assert rate_with_interval(None, None) == "–"
    assert signed_with_interval(-0.03, [-0.1, -0.001]) == "−.03 [−.10, .00]"
    assert signed_with_interval(1.0, [0.5, 1.0]) == "+1.0 [+.50, +1.0]"


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ([0.01, 0.2], Finding.BETTER),
        ([-0.2, -0.01], Finding.WORSE),
        ([-0.1, 0.1], Finding.NO_DIFFERENCE),
        ([0.0, 0.1], Finding.NO_DIFFERENCE),
        ([1e-17, 0.1], Finding.NO_DIFFERENCE),
        (None, Finding.UNKNOWN),
    ],
)
def test_better_is_said_only_where_zero_is_excluded(bounds: list[float] | None, said: Finding) -> None:
    """Otherwise chance, or a rounding error, is announced as an effect of training."""
    assert finding(bounds) is said


def test_csv_has_every_number_unrounded() -> None:
    """Who plots from table.csv must get metrics.json's numbers, each bound in its own column."""
    rows = list(csv.DictReader(io.StringIO(to_csv(monitor_rows(RESULTS)))))
    assert len(rows) == sum(len(cells) for by in TREE["monitors"].values() for cells in by.values())
    for row in rows:
        numbers = TREE["monitors"][row["monitor"]][row["prompt"]][row["cell"]]
        for key, value in numbers.items():
            if isinstance(value, list):
                assert [float(row[f"{key}_low"]), float(row[f"{key}_high"])] == value
            elif key.endswith("_ci"):
                assert row[f"{key}_low"] == row[f"{key}_high"] == ""
            else:
                assert row[key] == ("" if value is None else str(value))
    transfer = list(csv.DictReader(io.StringIO(to_csv(transfer_rows(RESULTS)))))
    assert {row["cell"] for row in transfer} >= {"overall", "trained", "held_out", "sycophancy_bias/qa"}
    assert transfer[0]["base"] == BASE
    assert transfer[0]["trained_on"] == "safety_permission/qa;safety_permission/code"


def test_csv_leaves_the_undefined_empty() -> None:
    """`None` in a cell would be read as text; a NaN as a number."""
    found = copy.deepcopy(TREE)
    found["monitors"][BASE]["direct"]["overall"] |= {"auroc": None, "auroc_ci": None}
    row = next(csv.DictReader(io.StringIO(to_csv(monitor_rows(as_results(found))))))
    assert (row["auroc"], row["auroc_ci_low"], row["auroc_ci_high"]) == ("", "", "")
    assert to_csv([]) == ""


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_tables_fit_80_columns(encoding: str) -> None:
    """A wrapped table can't be read in a default terminal; one that raises on its encoding not at all."""
    text = printed(RESULTS, encoding)
    assert max(len(line) for line in text.splitlines()) <= 80
    for words in ("safety_permission/code", "+safety_permission", "bag_of_words", "held out, 5 cells"):
        assert words in text
    assert "no difference found" in text
    assert "better" in text


def test_long_and_hostile_names_fit_and_are_shown_as_they_are() -> None:
    """A name in brackets must not vanish as markup, a long one must not push the numbers out."""
    text = printed(as_results(renamed(TREE, f"{BASE}+all", "[red]" + "x" * 60 + "[/red]+[bold]all")))
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "[bold]all" in text.replace("\n", "")


def test_wide_numbers_keep_the_columns() -> None:
    """A perfect monitor on thousands of samples has the widest numbers there are."""
    found = copy.deepcopy(TREE)
    for cells in found["monitors"][BASE].values():
        for numbers in cells.values():
            numbers |= {"n": 3010, "n_unscored": 3010, "auroc": 1.0, "auroc_ci": [1.0, 1.0]}
            numbers |= {"miss_rate": 1.0, "miss_rate_ci": [1.0, 1.0]}
    cells = printed(as_results(found)).partition("Prompt:")[2].partition("Cost per verdict")[0]
    lines = [line for line in cells.splitlines() if line.strip().startswith(BASE)]
    assert lines
    assert all("3010" in line and "1.0 [1.0–1.0]" in line and len(line) <= 80 for line in lines)


def test_trained_cells_and_bag_of_words_beside_them() -> None:
    """A held-out difference beside the wrong cells' bag of words would be a false comparison."""
    compared = {(one.effect.training, one.effect.cell): one for one in comparisons(RESULTS)}
    numbers = TREE["monitors"]["bag_of_words"]["none"]
    trained = compared[f"{BASE}+safety_permission", "trained"]
    assert trained.n_cells == 2
    there = numbers["safety_permission"]
    assert trained.bag_of_words == rate_with_interval(there["auroc"], there["auroc_ci"])
    held_out = compared[f"{BASE}+safety_permission", "held_out"]
    others = [cell for cell in numbers if "/" in cell and not cell.startswith("safety")]
    mean = sum(numbers[cell]["auroc"] for cell in others) / len(others)
    assert (held_out.n_cells, held_out.bag_of_words) == (5, f"{rate(mean)} (mean)")
    assert (f"{BASE}+all", "held_out") not in compared


def test_results_of_another_schema_are_refused() -> None:
    """An old file read as a new one would show wrong numbers without a word."""
    with pytest.raises(ValueError, match="schema_version: got 1, expected 6"):
        as_results({"schema_version": 1})
    with pytest.raises(ValueError, match="got None"):
        as_results({})


def test_what_missing_scores_count_as_stands_in_words_at_a_monitors_name():
    """A name of files, `judge_missing_left_out`, would have to be guessed at in each table."""
    results = as_results(renamed(TREE, BASE, "judge_missing_left_out"))
    assert short_names(results)["judge_missing_left_out"] == "judge (missing left out)"
    assert "judge_missing" not in printed(results)


def test_a_long_name_breaks_at_an_underscore():
    """Half a word in a line of its own is read as another monitor."""
    text = printed(as_results(renamed(TREE, BASE, "a_judge_of_which_scores_are_sometimes_flagged")))
    lines = [line.split("  ")[0].strip() or line.split()[0] for line in text.splitlines() if line.strip()]
    assert any(line.endswith("_") for line in lines)
    assert not any(line.endswith(("flagg", "missin", "scor", "whic")) for line in lines)
