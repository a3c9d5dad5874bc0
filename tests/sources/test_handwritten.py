"""The pairs written by hand: all files of a cell, and what a dataset makes of them."""

from collections import Counter

import pytest

from monitorbench.construct.pair import ConstructionContext
from monitorbench.records import Category, Cell, Task
from monitorbench.sources import handwritten

QA = Cell(Category.SAFETY_PERMISSION, Task.QA)
CONTEXT = ConstructionContext("handwritten", "", 0, None)


@pytest.mark.parametrize("cell", handwritten.CELLS, ids=str)
def test_a_cells_groups_are_different(cell):
    """A group in two files would be one question with two requests, and starter's pairs would change."""
    rows = handwritten.load(cell) + handwritten.load_further(cell)
    assert max(Counter(row.group for row in rows).values()) == 1
    assert all(row.benign != row.misbehavior for row in rows)


def test_more_files_are_read_by_name_and_are_not_the_starters(tmp_path, monkeypatch):
    """A new file would be left out, or change the pinned starter data."""
    folder = tmp_path / "handwritten"
    folder.mkdir()
    for name, group in (("", "a"), ("_3", "c"), ("_2", "b"), ("_2.yaml~", "x")):
        text = f"- group: {group}\n  subcategory: s\n" + "".join(
            f"  {key}: [{{role: {role}, content: {key} {group}}}]\n"
            for key, role in (("request", "user"), ("benign", "assistant"), ("misbehavior", "assistant"))
        )
        file = name if name.endswith("~") else f"{name}.yaml"
        (folder / f"safety_permission_qa{file}").write_text(text)
    monkeypatch.setattr(handwritten, "files", lambda package: tmp_path)
    assert [row.group for row in handwritten.load(QA)] == ["a"]
    assert [row.group for row in handwritten.load_further(QA)] == ["b", "c"]
    installed = handwritten.SOURCE.installed
    before = installed.sha256()
    (folder / "safety_permission_qa_2.yaml").unlink()
    assert installed.sha256() != before
    assert [row.group for row in installed.rows()] == ["c"]


def test_a_paper_dataset_gets_the_compliant_stratum_of_one_cell():
    """Answers that both help would be counted among refusals, or be trained on under another name."""
    rows = list(handwritten.SOURCE.installed.rows())
    (made,) = handwritten.SOURCE.construct(rows, CONTEXT)
    assert len(made.samples) == 2 * len(rows)
    assert {(s.cell, s.stratum, s.source) for s in made.samples} == {(QA, "compliant", "handwritten")}
    assert {sample.licence for sample in made.samples} == {"Apache-2.0"}


def test_starter_and_paper_share_the_samples_ids():
    """Whoever has seen one of them could not find it in the other."""
    row = handwritten.load(QA)[0]
    one, other = (handwritten.pair_of(QA, row, source) for source in ("monitorbench", "handwritten"))
    assert [sample.id for sample in one] == [sample.id for sample in other]
