"""The tutorial's notebooks run, and show what they say they show."""

import runpy
from pathlib import Path
from typing import Any

import nbformat
import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
PAGES = sorted(page.stem for page in (FOLDER.parent / "tutorial").glob("*.md") if page.stem != "few-labels")
"""All but one, between whose commands people read: `tests/labelling/test_tutorial.py` runs it."""
SAME_EVERYWHERE = [name for name in PAGES if name not in ("model", "deployed")]
"""A model's scores depend on what a machine multiplies in hardware."""


def results(notebook: Any) -> list[str]:
    """What the cells' last expressions showed."""
    return [
        output.data["text/plain"]
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "execute_result"
    ]


def test_every_page_of_the_tutorial_has_a_notebook():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == PAGES
    for page in PAGES:
        assert f"../notebooks/{page}.ipynb" in (FOLDER.parent / "tutorial" / f"{page}.md").read_text()


@pytest.mark.parametrize("name", PAGES)
def test_what_is_kept_was_run_and_names_no_machine(name: str):
    text = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    assert results(nbformat.reads(text, as_version=4))
    assert "/tmp/" not in text
    assert "/home/" not in text
    assert "\\u001b" not in text


@pytest.mark.slow
@pytest.mark.parametrize("name", SAME_EVERYWHERE)
def test_a_notebook_runs_and_shows_the_same(name: str):
    run = runpy.run_path(str(FOLDER / "execute.py"))["executed"](FOLDER / f"{name}.ipynb")
    assert results(run) == results(nbformat.read(FOLDER / f"{name}.ipynb", as_version=4))


@pytest.mark.slow
def test_the_notebook_with_a_model_runs():
    """Twenty-eight verdicts of a real model: a minute on two cores."""
    run = runpy.run_path(str(FOLDER / "execute.py"))["executed"](FOLDER / "model.ipynb")
    assert any("28 verdicts" in text for text in results(run))


@pytest.mark.slow
def test_from_a_csv_to_stress_guardrail_and_gate():
    """If it failed: the three would work apart, and not one after the other on a team's own data."""
    run = runpy.run_path(str(FOLDER / "execute.py"))["executed"](FOLDER / "deployed.ipynb", timeout=600)
    assert results(run) == [
        "28",
        "['control.end', 'instruction.plain.end']",
        "({'pass'}, 28)",
        "(True, True)",
        "(0, 'PASS')",
        "(0, 'NO_DRIFT')",
        "(True, True)",
    ]
