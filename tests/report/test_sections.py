"""The list of the page's sections."""

from collections.abc import Mapping

import pytest
from fake_results import BASE, DRAWS, MANIFEST, fake_results, fake_tree, verdicts
from fake_worst import fake_worst
from hostile import SCRIPT
from markupsafe import Markup
from rich.console import Console

from monitorbench.metrics.columns import Columns, columns
from monitorbench.metrics.metrics_json import as_results
from monitorbench.metrics.points_in_words import inverted_remark
from monitorbench.metrics.prompts import add_prompts, choose_wording, shared_numbers
from monitorbench.metrics.registry import cell_numbers
from monitorbench.metrics.results import Results
from monitorbench.metrics.table import Place
from monitorbench.report import write
from monitorbench.report.sections.answer import answer
from monitorbench.report.sections.section import Material, Section
from monitorbench.report.tables.tables import print_tables


def test_the_answer_comes_first():
    """A reader who has ten seconds reads the first section, and no other."""
    assert write.SECTIONS[0].make is answer


def test_a_section_is_one_function_and_one_line(monkeypatch):
    """A team's own section needs no edit elsewhere; one that is not to be shown is not made."""

    def mine(material: Material) -> Markup:
        return Markup("<h2>Mine</h2><p>{}</p>").format(f"<{material.results['dataset']['name']}>")

    def nothing(_: Material) -> Markup:
        return Markup()

    added = (*write.SECTIONS[:1], Section("mine", mine), Section("not shown", nothing))
    monkeypatch.setattr(write, "SECTIONS", added)
    page = write.render_report(fake_results(), MANIFEST)
    assert page.count("<h2>Mine</h2><p>&lt;") == 1


def test_unscored_answers_are_counted_by_reason():
    """An endpoint's outage and a monitor that says nothing of use would be one number."""
    results = fake_results()
    assert "<h2>Answers that are no label" not in write.render_report(results, MANIFEST), "all have a label"
    monitor = next(iter(results["trained_on"]))
    results["unscored"] = {monitor: {"evidence": {"no_label": 9, "http_error": 3}, "direct": {}}}
    page = write.render_report(results, MANIFEST)
    section = page.partition("<h2>Answers that are no label</h2>")[2].partition("<h2>")[0]
    section = section.replace("<wbr>", "")
    assert section.count("<li>") == 1, "who has any"
    assert "evidence prompt: 12 of 140 (8.6\N{NO-BREAK SPACE}%): 9 no label, 3 http error" in section


def test_scores_to_doubt_are_counted_where_there_are_any():
    """Bounds would pass for measured scores, and a threshold of .5 for the monitor's own answer."""
    results = fake_results()
    monitor = next(iter(results["trained_on"]))
    sound = {"n_with_score": 140, "n_censored": 0, "n_both": 140, "n_against": 0}
    sound |= {"n_most_frequent": 1, "n_distinct": 140}
    results["scores"] = {monitor: {"direct": sound}}
    assert "<h2>Scores to doubt" not in write.render_report(results, MANIFEST)
    results["scores"][monitor]["evidence"] = sound | {"n_censored": 35, "n_against": 7}
    page = write.render_report(results, MANIFEST)
    page = page.replace("\N{NO-BREAK SPACE}", " ")
    section = page.partition("<h2>Scores to doubt</h2>")[2].partition("<h2>")[0]
    assert section.count("<li>") == 2, "each doubt, of who has any"
    assert "35 of 140 (25.0 %) scores are censored" in section
    assert "7 of 140 (5.0 %) labels contradict" in section


def with_prompts(results: Results, monitor: str, asked: Mapping[str, Columns]) -> None:
    """Add a monitor that was judged under these prompts."""
    for prompt, judged in asked.items():
        results["table"].add(Place(monitor, prompt), cell_numbers(judged))
        results["curves"][monitor].setdefault(prompt, {"roc": [], "reliability": []})
    add_prompts(results["table"], monitor, asked, **DRAWS)


def test_several_prompts_of_one_monitor_stand_beside_each_other():
    """A prompt would be chosen by two tables over other samples, without an interval of the difference."""
    results = fake_results()
    assert "<h2>One monitor under" not in write.render_report(results, MANIFEST), "each has its own prompt"
    monitor = next(iter(results["trained_on"]))
    asked = {prompt: columns(verdicts(monitor, prompt, 10)) for prompt in ("direct", "evidence_first")}
    with_prompts(results, monitor, asked)
    page = write.render_report(results, MANIFEST)
    section = page.partition("<h2>One monitor under several prompts</h2>")[2].partition("<h2>")[0]
    assert section.count("<tr>") == 4, "a head, each prompt, and one minus the other"
    assert "over the same 140 samples" in section
    console = Console(record=True, width=80)
    print_tables(console, results)
    text = console.export_text()
    lines = text[text.index("by prompt, over the same 140 samples") :].splitlines()[1:5]
    assert [line.split()[0] for line in lines] == ["prompt", "direct", "evidence_first", "minus"]
    assert lines[3].count("[") == 3, "every interval in its line"


@pytest.mark.figures
def test_wordings_are_drawn_with_their_spread_and_the_chosen_one_marked():
    """Which prompt was chosen, and how much hangs on it, would be in no figure and no sentence."""
    results = fake_results()
    names = ["direct", "direct_swapped", "direct_act"]
    # One of them answers as a trained monitor does, so that there is something to choose.
    skilled = {name: f"{BASE}+all" if name == "direct_act" else BASE for name in names}
    asked = {name: columns(verdicts(of, name)) for name, of in skilled.items()}
    choice = choose_wording(asked, "validation", **DRAWS)
    assert choice is not None
    with_prompts(results, BASE, asked)
    results["wordings"] = {BASE: choice}
    page = write.render_report(results, MANIFEST)
    section = page.partition("<h2>One monitor under several prompts</h2>")[2].partition("<h2>")[0]
    assert section.count('id="wordings-0-mark-') == 9, "three numbers of three prompts"
    assert "direct_act was chosen on 280 validation samples: AUROC" in section
    assert section.count('class="chosen"') == 1
    assert "direct_act <strong" in section
    ((highest, lowest, numbers),) = results["table"].prompts_apart(BASE, "auroc_spread")
    assert (highest, choice["not_shown_worse"]) == ("direct_act", [])
    least = shared_numbers(results["table"], BASE)[lowest]["auroc"].value or 0.0
    assert f"to {(numbers['auroc_spread'].value or 0.0) + least:.2f}"[4:] in section
    assert "no difference found" not in section
    console = Console(record=True, width=80)
    print_tables(console, results)
    text = " ".join(console.export_text().split())
    assert "The wording alone moves AUROC from" in text
    assert "direct_act was chosen on 280 validation samples" in text


def test_an_inverted_monitor_is_named_with_its_worst_samples():
    """A monitor that flags every refusal would be a low number among many, without the reason."""
    tree = fake_tree()
    cell = "safety_permission/qa"
    tree["monitors"] = {BASE: tree["monitors"][BASE], "random": tree["monitors"]["random"]}
    for cells in tree["monitors"][BASE].values():
        for found in cells.values():
            found.update(auroc=0.55, auroc_ci=[0.45, 0.65])
    assert "<h2>Inverted" not in write.render_report(as_results(tree), MANIFEST)
    turned = {"auroc": 0.08, "auroc_ci": [0.03, 0.18], "miss_rate": 0.1, "false_alarm_rate": 0.9}
    tree["monitors"][BASE]["direct"][cell].update(turned)
    page = write.render_report(as_results(tree), MANIFEST, fake_worst(), browsable={(BASE, "direct")})
    section = page.partition("<h2>Inverted in a cell</h2>")[2].partition("<h2>")[0]
    assert f"direct prompt, in {cell}</h3>" in section
    assert "AUROC .08 [.03–.18], MR .10, FAR .90" in section
    assert section.count("<article>") > 1, "its worst samples, quoted"
    assert section.count('href="samples.html#') > 2, "and linked"
    assert SCRIPT not in section
    assert page.count(">inverted</strong>") == 1, "in the table by cell"
    (said,) = [one for one in inverted_remark(as_results(tree)) if "Inverted" in one]
    assert f"(direct prompt) in {cell} (.08 [.03–.18])" in said
    console = Console(record=True, width=80)
    print_tables(console, as_results(tree))
    assert f"direct prompt, in {cell}: AUROC .08 [.03–.18]" in " ".join(console.export_text().split())
