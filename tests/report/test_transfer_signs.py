"""Negative transfer and directions, as a reader sees them: rows, sentences, terminal, page."""

import copy
import io

import pytest
from fake_results import BASE, MANIFEST, fake_tree
from rich.console import Console

from monitorbench.metrics.metrics_json import as_results
from monitorbench.metrics.results import Results, short_names
from monitorbench.metrics.trainings import DirectionsFacts
from monitorbench.report.tables import training as words
from monitorbench.report.tables.effects import effects, negative_rows
from monitorbench.report.tables.training import print_transfer
from monitorbench.report.write import render_report

SAFETY, ALL = f"{BASE}+safety_permission", f"{BASE}+all"
HELD_OUT = "sycophancy_bias/qa"


def of_chance(by_cell: dict[str, tuple[float, float]]) -> Results:
    """Results whose one training has these AUROCs and corrected p of .5, by cell."""
    cells = {
        cell: {"auroc": auroc, "auroc_ci": [auroc - 0.1, auroc + 0.1], "p": p, "p_holm": p}
        for cell, (auroc, p) in by_cell.items()
    }
    return as_results({**fake_tree(), "chance": {SAFETY: {"direct": cells}}})


@pytest.fixture(scope="module")
def results() -> Results:
    """One held-out cell upside down, one trained cell too; two trainings of heads."""
    found = of_chance(
        {
            HELD_OUT: (0.18, 0.001),
            "safety_permission/qa": (0.2, 0.001),
            "sycophancy_bias/reasoning": (0.4, 0.2),
        }
    )
    found["directions"] = DirectionsFacts(
        layer=18,
        position="last",
        hidden=576,
        trainings=[SAFETY, ALL],
        n_seeds=[5, 1],
        validation_auroc=[0.81, 0.7],
        cosines=[[0.62, -0.07], [-0.07, None]],
    )
    return found


def printed(results: Results) -> str:
    out = io.StringIO()
    console = Console(file=out, width=80)
    print_transfer(console, results)
    return out.getvalue()


def test_upside_down_is_counted_where_it_was_not_trained(results: Results):
    """If it failed: a training's own cells would be called transfer."""
    rows = negative_rows(effects(results, short_names(results)))
    upside_down = [row for row in rows if row.is_inverted]
    assert [(row.title, row.auroc) for row in upside_down] == [(HELD_OUT, ".18 [.08–.28]")]
    said = words.negative_in_words(results)
    assert "AUROC below .5 after Holm's correction over 3 tests) in 1;" in said
    assert "upside down" in printed(results)


def test_without_adapters_or_heads_nothing_is_said(results: Results):
    """If it failed: a page would count no cells of no training, or compare no directions."""
    alone: Results = {**copy.deepcopy(results), "adapters": {}, "objectives": []}
    del alone["directions"]
    assert printed(alone) == ""
    page = render_report(alone, MANIFEST)
    assert "Where transfer is negative" not in page
    assert "share a direction" not in page


def test_directions_stand_in_terminal_and_page(results: Results):
    """If it failed: cosines would be read without the layer, or without what two seeds have."""
    shown = printed(results)
    assert max(map(len, shown.splitlines())) <= 80
    for text in (".62", "−.07", "–", "layer 18, position last", "±.08", "+safety_permission"):
        assert text in shown
    assert "Two seeds of one training: .62 to .62" in " ".join(shown.split())
    assert "without a common cell" not in shown, "the one pair has a common cell"
    page = render_report(results, MANIFEST)
    assert "Which trainings share a direction" in page
    assert "Where transfer is negative" in page
    assert 'aria-label="cosines between heads"' in page


@pytest.mark.parametrize(
    ("trained", "held_out", "said"),
    [
        (0.86, 0.55, "above chance in 1 of the 2 cells it was trained on (safety_permission/qa: AUROC .86 ["),
        (0.86, 0.55, "a bag of words, which does not read, ."),
        (0.5, 0.55, "not shown to be above chance in the 2 cells it was trained on"),
        (
            0.86,
            0.55,
            "5 cells that +safety_permission was not trained on, none is shown to be above chance",
        ),
        (0.86, 0.80, "trained on, 1 is shown to be above chance (AUROC .45 to .80)"),
        (0.86, 0.55, "no difference found in"),
    ],
)
def test_what_was_learnt_and_what_followed_stands_in_plain_words(
    results: Results, trained: float, held_out: float, said: str
):
    """If it failed: a study's finding would be left to whoever reads thirty-five words in a table."""
    of_cell = dict.fromkeys(results["table"].inner_cells("overall"), 0.45)
    of_cell |= {"safety_permission/qa": trained, HELD_OUT: held_out}
    found = of_chance({name: (auroc, 0.001 if auroc > 0.7 else 1.0) for name, auroc in of_cell.items()})
    out = io.StringIO()
    print_transfer(Console(file=out, width=80), found)
    assert said in " ".join(out.getvalue().split())
    assert max(map(len, out.getvalue().splitlines())) <= 80
    found["trained_on"] = {}
    assert not words.findings(found, {}), "of unknown cells nothing was trained, nor held out"
