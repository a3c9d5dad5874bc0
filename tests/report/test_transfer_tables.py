"""A transfer study's part of the report: its rows have metrics.json's numbers, no word is lost."""

import copy
import csv
import io
import json
import re
from typing import Any

import pytest
from fake_results import BASE, MANIFEST, fake_results, material_of, of_two_seeds
from rich.console import Console

from monitorbench.metrics.metrics_json import as_results, nested, to_csv, transfer_rows
from monitorbench.metrics.registry import MEASURES, as_json, from_json
from monitorbench.metrics.results import short_names
from monitorbench.metrics.table import Place
from monitorbench.metrics.trainings import doses_in_words
from monitorbench.metrics.written import rate, signed
from monitorbench.report.matrix import matrix, word
from monitorbench.report.tables import training as transfer_words
from monitorbench.report.tables.effects import effects, seed_rows
from monitorbench.report.tables.published import paper_rows
from monitorbench.report.tables.training import print_transfer
from monitorbench.report.write import render_report

RESULTS = fake_results()
SHORTS = short_names(RESULTS)
TREE = nested(RESULTS)
ALL = f"{BASE}+all"


def test_what_is_set_against_something_is_read_back_from_metrics_json():
    """A page made later would lack the matrix, or show another one than was printed."""
    written, read = (
        sorted(found["table"].rows(), key=str)
        for found in (RESULTS, as_results(json.loads(json.dumps(TREE))))
    )
    assert read == written
    sides = {row.against for row in written}
    assert sides == {"", "base", "chance"}
    assert not [row for row in written if row.against and row.value is None and not row.missing]


def test_every_word_has_a_row_with_its_numbers():
    """A word without the numbers it rests on can't be checked by a reader."""
    rows = [row for row in effects(RESULTS, SHORTS) if row.is_in_matrix]
    words = TREE["matrix"]["words"]
    assert len(rows) == sum(len(cells) for by in words.values() for cells in by.values())
    row = next(
        r
        for r in rows
        if (r.subject, r.prompt, r.title) == ("+all (one seed)", "direct", "sycophancy_bias/qa")
    )
    told = words[ALL]["direct"]["sycophancy_bias/qa"]
    d = TREE["transfer"][ALL]["direct"]["sycophancy_bias/qa"]
    assert row.word == told["word"]
    assert [value for value, *_ in row.changes] == [
        signed(d["auroc_difference"]),
        signed(d["miss_rate_difference"]),
        signed(d["false_alarm_rate_difference"]),
        signed(d["miss_rate_at_far_5_difference"]),
    ]
    assert row.is_trained
    assert all(p for *_, p in row.changes[:3])
    assert not row.changes[3][-1], "too few benign questions for FAR 5 %"
    (whole,) = [r for r in rows if (r.subject, r.prompt, r.title) == (row.subject, "direct", "overall")]
    assert all(p for *_, p in whole.changes)
    least = told["detectable_auroc_difference"]
    assert row.detectable == ("none" if least is None else rate(least))


def test_words_are_in_the_terminal_the_csv_and_the_page():
    """A matrix that shows its words in one place alone is read without them in the others."""
    out = io.StringIO()
    print_transfer(Console(file=out, width=80), RESULTS)
    words = {
        told["word"] for by in TREE["matrix"]["words"].values() for p in by.values() for told in p.values()
    }
    assert len(words) > 1, "else this test shows nothing"
    page = render_report(RESULTS, MANIFEST)
    rows = list(csv.DictReader(io.StringIO(to_csv(transfer_rows(RESULTS)))))
    assert {row["word"] for row in rows if row["cell"] == "overall" or "/" in row["cell"]} == words
    assert {row["word"] for row in rows if row["cell"] in ("trained", "held_out")} == {""}
    for told in words:
        assert told in out.getvalue()
        assert f'<td data-label="in a word">{told}' in page
    assert max(map(len, out.getvalue().splitlines())) <= 80
    assert f"Holm over {RESULTS['matrix']['n_tests']} tests" in out.getvalue()


def test_finding_nothing_stands_beside_what_would_have_been_found():
    """Alone it passes for `no change`, which an interval of ±.3 does not show."""
    numbers = RESULTS["table"].numbers(Place(ALL, "direct", against="base"))
    assert numbers is not None
    none = as_json(numbers) | {f"{measure}_p_holm": 0.9 for measure in MEASURES}
    none |= {"auroc_unchanged_p_holm": 0.9, "detectable_auroc_difference": 0.31}
    assert word(from_json(none)) == "none found, sees .31"
    assert word(from_json(none | {"detectable_auroc_difference": None})).endswith("sees none")
    improved = none | {"auroc_difference": 0.2, "auroc_p_holm": 0.001}
    assert word(from_json(improved)) == "improved"
    assert word(from_json(improved | {"auroc_p_holm": None})) == ""


def test_several_seeds_are_one_training_and_one_seed_says_so():
    """What one seed did is printed as what the training does, in the paper too."""
    found = of_two_seeds()
    out = io.StringIO()
    print_transfer(Console(file=out, width=80), found)
    page = render_report(found, MANIFEST)
    for text in (out.getvalue(), page):
        assert "+twice over 2 seeds" in text
        assert "(one seed)" not in text
        assert "no change" not in text
    (row,) = [one for one in effects(found) if one.cell == "overall"]
    d = nested(found)["effects"][f"{BASE}+twice"]["direct"]["overall"]
    assert (row.subject, row.changes[0][0]) == (
        f"{BASE}+twice over 2 seeds",
        signed(d["auroc_difference"]),
    )
    rows = {row["training"]: row for row in transfer_rows(found) if row["cell"] == "overall"}
    assert list(rows) == [f"{BASE}+twice", *found["adapters"][f"{BASE}+twice"]]
    assert rows[f"{BASE}+twice"]["word"]
    assert not rows[ALL]["word"]
    out = io.StringIO()
    print_transfer(Console(file=out, width=80), RESULTS)
    assert "(one seed)" in out.getvalue()
    assert "2 seeds" not in out.getvalue()
    rows = dict(matrix(material_of(found), found["table"].shown_in(""), "direct", "auroc").rows)
    spread = nested(found)["seeds"][f"{BASE}+twice"]["spread"]["direct"]["overall"]["auroc"]
    assert rows["+twice (2 seeds)"][0].text == rate(spread["mean"])


@pytest.mark.parametrize("measure", MEASURES)
def test_a_matrix_has_its_numbers(measure: Any):
    """A matrix of another measure under this one's title, or rows exchanged."""
    made = matrix(material_of(RESULTS), [BASE, ALL], "direct", measure)
    cells = ["overall", *RESULTS["table"].inner_cells("overall")]
    assert [head.removesuffix("†") for head in made.heads] == cells
    assert sum(n for _, n in made.groups) == len(cells) == len(made.columns)
    for name, (shown, tiles) in zip((BASE, ALL), made.rows, strict=True):
        assert shown == SHORTS[name]
        values = [RESULTS["table"].value(name, "direct", measure, cell) for cell in cells]
        assert [tile.text for tile in tiles] == [rate(value) for value in values]
        assert [bool(tile.kind) for tile in tiles] == [value is not None for value in values]
    for cell, base, tile in zip(cells, made.rows[0][1], made.rows[1][1], strict=True):
        change: Any = TREE["transfer"][ALL]["direct"][cell]
        moved = change[f"{measure}_difference"]
        assert tile.change.removesuffix("*") == ("" if moved is None else signed(moved))
        assert not base.change
        numbers = RESULTS["table"].numbers(Place(ALL, "direct", cell, against="base"))
        assert numbers is not None
        assert tile.words == (word(numbers) if measure == "auroc" else "")


def test_unlike_doses_are_said():
    """5.8 passes over one cell beside .42 over all: what differs may be the dose."""
    found = copy.deepcopy(RESULTS)
    assert doses_in_words(found.get("exposures", {})) == []
    found["exposures"] = {ALL: 0.42, f"{BASE}+safety_permission": 5.8}
    (sentence,) = doses_in_words(found.get("exposures", {}))
    assert sentence.startswith("Unlike doses")
    assert "5.80" in sentence
    assert "0.42" in sentence
    assert sentence.split(";")[0] in render_report(found, MANIFEST).replace("<wbr>", "")
    found["exposures"] = {ALL: 1.0, f"{BASE}+safety_permission": 1.4}
    assert "1.00 to 1.40" in doses_in_words(found.get("exposures", {}))[0]


def test_the_words_are_counted_by_where_was_trained():
    """Held-out cells are the question; counted together with trained ones the answer looks better."""
    trained, held_out = transfer_words.counted_words(RESULTS)
    n = sum("/" in c for by in TREE["matrix"]["words"].values() for p in by.values() for c in p)
    numbers = [int(re.search(r"Of (\d+)", text)[1]) for text in (trained, held_out)]  # type: ignore[index]
    assert sum(numbers) == n
    assert "was not trained on" in held_out
    counted = re.sub(r" \(.*?\)", "", held_out)
    assert sum(map(int, re.findall(r" in (\d+)", counted))) == numbers[1]


def test_seeds_and_objectives_are_said_plainly():
    """One of three seeds in the table as the result is what the paper did."""
    row = next(row for row in seed_rows(RESULTS) if row[1] == "overall")
    spread = TREE["seeds"][f"{BASE}+twice"]["spread"]["direct"]["overall"]["auroc"]
    assert row[2:4] == (
        "2",
        f"{rate(spread['mean'])} ± {rate(spread['sd'])} ({rate(spread['low'])} to {rate(spread['high'])})",
    )
    found = copy.deepcopy(RESULTS)
    (test,) = found["objectives"]
    test |= {"miss_rate_at_far_5_difference": -0.2, "p": 0.01, "p_holm": 0.01}
    assert "misses less" in transfer_words.objectives_in_words(found)[0]
    test |= {"p_holm": 0.2}
    assert "no difference found" in transfer_words.objectives_in_words(found)[0]


def test_the_papers_cells_stand_beside_ours_of_the_same_training_only():
    """.59 to .00 of another subset beside ours would be a comparison that never was."""
    rows = paper_rows(RESULTS, SHORTS)
    assert {row[0] for row in rows} == {"all"}, "nothing here was trained on safety_permission/code alone"
    assert all("MR .49 → .70" in row[2] and row[3].startswith("+all") for row in rows)
    found = copy.deepcopy(RESULTS)
    found["trained_on"][f"{BASE}+safety_permission"] = ["safety_permission/code"]
    rows = paper_rows(found, SHORTS)
    same = [row for row in rows if row[:2] == ("safety_permission/code",) * 2]
    assert len(same) == 2, "under both prompts"
    assert same[0][2] == "Qwen3-4B: MR .59 → .00, FAR .03"


def test_a_run_without_adapters_has_no_empty_tables():
    """Headings over nothing make a reader look for what is missing."""
    found: Any = copy.deepcopy(RESULTS)
    found |= {"adapters": {}, "seeds": {}, "objectives": [], "trained_on": {}}
    page = render_report(found, MANIFEST)
    for heading in (
        "Several seeds",
        "Other training objectives",
        "Beside the paper",
        "Every cell of the matrix",
    ):
        assert heading not in page
