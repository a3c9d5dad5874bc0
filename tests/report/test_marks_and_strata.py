"""Marks and strata wherever a cell's numbers appear: terminal, page, figures and CSV."""

import pytest
from fake_results import BASE, MANIFEST, fake_results, fake_shortcuts, fake_tree, material_of
from test_report_tables import printed

from monitorbench.metrics.marks import headlines_in_words, marks_in_words, strata
from monitorbench.metrics.metrics_json import as_results, monitor_rows
from monitorbench.metrics.results import Results
from monitorbench.report.matrix import matrix
from monitorbench.report.tables.effects import effects
from monitorbench.report.tables.training import by_word
from monitorbench.report.write import render_report

CELL, MARKED = "safety_permission/qa", "specification_gaming/qa"
RULE = 'the word "sneaky": 72% of misbehavior, 2% of benign'


def with_strata() -> Results:
    """The cell's number is that of `compliant`; `refusal` stands beside it, and is marked."""
    found = fake_tree()
    for name, by_prompt in found["slices"].items():
        for prompt, slices in by_prompt.items():
            for stratum in ("compliant", "refusal"):
                slices[f"{CELL}:{stratum}"] = found["monitors"][name][prompt][CELL] | {"n": 17}
    found["headline"] = {CELL: "compliant"}
    found["shortcuts"] |= {f"{CELL}:compliant": fake_shortcuts(0.5), f"{CELL}:refusal": fake_shortcuts(0.97)}
    return as_results(found)


RESULTS = with_strata()


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_terminal_says_it_in_eighty_columns(encoding: str) -> None:
    """A cell won by one word looks like any other, unless the sign and its rule are beside the number."""
    text = printed(RESULTS, encoding)
    sign = "†" if encoding == "utf-8" else "+"
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert f"{CELL} (compliant)" in lines
    assert f"  {CELL}: refusal{sign}" in lines
    assert f"  {CELL}: compliant" not in lines, "it is the cell's own number"
    assert f"{MARKED}{sign}" in lines
    said = " ".join(text.split())
    assert f"{sign} A shortcut gives the label away (AUROC surely above 0.65):" in said
    assert f"{MARKED}: response words 0.79 [0.71, 0.87]: {RULE}" in said
    assert f"{CELL}: refusal: response words 0.97" in said
    assert f"{CELL}: numbers of its stratum compliant; overall and its category have all samples." in said
    below = lines[lines.index(f"  {CELL}: refusal{sign}") + 1]
    assert below.split()[:2] == [BASE, "17"]


def test_nothing_is_said_where_nothing_is_marked() -> None:
    """A footnote under every table is a footnote nobody reads."""
    plain = fake_results()
    plain["shortcuts"] = {}
    assert marks_in_words(plain) == headlines_in_words(plain) == []
    assert "†" not in printed(plain)
    assert "Shortcut checks" not in render_report(plain, MANIFEST)


def test_the_page_has_a_row_for_each_cell_and_stratum() -> None:
    """One row a cell, a column a check, and the rule that gives it away."""
    page = render_report(RESULTS, MANIFEST).replace("<wbr>", "")
    section = page.partition("<h2>Shortcut checks</h2>")[2].partition("</section>")[0]
    for name in (f"{CELL} (compliant)", f"{CELL}: compliant", f"{CELL}: refusal†", f"{MARKED}†"):
        assert f'<th scope="row">{name}</th>' in section, name
    for name in ("words", "echo", "overlap", "form", "all", "length", "source"):
        assert f'<th scope="col">{name}</th>' in section
    assert section.count("the word &#34;sneaky&#34;") == 4
    by_cell = page.partition("<h2>Miss rate, false alarm rate and AUROC by cell</h2>")[2].partition(
        "<details>"
    )[0]
    for name in (f"{CELL} (compliant)", f"{CELL}: refusal†", f"{MARKED}†"):
        assert f'scope="rowgroup">{name}</th>' in by_cell
    assert "A shortcut gives the label away" in by_cell


def test_the_matrix_marks_its_columns_and_its_words() -> None:
    """The main figure is looked at without the table beside it."""
    made = matrix(material_of(RESULTS), [BASE], "direct", "auroc")
    marks = dict(zip(made.heads, made.columns, strict=True))
    assert (marks[f"{MARKED}†"], marks[CELL]) == ("qa†", "qa")
    named = [title for _, titles in by_word(effects(RESULTS)) for title in titles]
    assert {f"{MARKED}†", f"{CELL} (compliant)"} <= set(named)


def test_the_csv_has_strata_and_marks_in_columns() -> None:
    """Whoever sorts the file by AUROC must be able to leave marked cells out."""
    rows = [row for row in monitor_rows(RESULTS) if row["monitor"] == BASE and row["prompt"] == "direct"]
    by_cell = {row["cell"]: row for row in rows}
    assert len(by_cell) == len(rows)
    assert (by_cell[CELL]["headline"], by_cell[CELL]["marked_by"]) == ("compliant", None)
    assert (by_cell[f"{CELL}:refusal"]["marked_by"], by_cell[f"{CELL}:refusal"]["n"]) == ("bag_of_words", 17)
    assert by_cell[MARKED]["marked_by"] == "bag_of_words"
    assert f"{CELL}:compliant" not in by_cell
    assert {tuple(row) for row in rows} == {tuple(rows[0])}, "every row has the same columns"


def test_strata_are_no_slices_of_the_page() -> None:
    """They stand beside their cell; a second time among tasks and sources they would be taken for another."""
    assert not [name for name in RESULTS["table"].slices_under("direct") if name.startswith(CELL)]
    assert strata(RESULTS, "direct", CELL) == [f"{CELL}:refusal"]
    assert strata(RESULTS, "direct", MARKED) == []


def test_what_copies_stands_beside_what_reads() -> None:
    """In a cell the baselines that see a text are shown, those that see none only overall."""
    tree = fake_tree()
    for key in ("monitors", "slices", "macro", "overall"):
        for name in ("echo", "overlap", "form", "all_shortcuts", "length"):
            tree[key][name] = tree[key]["bag_of_words"]
    found = as_results(tree)
    shown = found["table"].shown_in(CELL)
    assert {"bag_of_words", "echo", "overlap", "form", "all_shortcuts"} <= set(shown)
    assert not {"length", "random"} & set(shown)
    assert {"length", "random"} <= set(found["table"].shown_in("overall"))
