"""The list of the page's sections."""

from fake_results import DRAWS, MANIFEST, fake_results, verdicts
from markupsafe import Markup
from rich.console import Console

from monitorbench.metrics.columns import columns
from monitorbench.metrics.prompts import compare_prompts
from monitorbench.report import html
from monitorbench.report.sections.answer import answer
from monitorbench.report.sections.section import Material, Section
from monitorbench.report.tables.tables import print_tables


def test_the_answer_comes_first():
    """A reader who has ten seconds reads the first section, and no other."""
    assert html.SECTIONS[0].make is answer


def test_a_section_is_one_function_and_one_line(monkeypatch):
    """A team's own section needs no edit elsewhere; one that is not to be shown is not made."""

    def mine(material: Material) -> Markup:
        return Markup("<h2>Mine</h2><p>{}</p>").format(f"<{material.results['dataset']['name']}>")

    def never(_: Material) -> bool:
        return False

    added = (*html.SECTIONS[:1], Section("mine", mine), Section("not made", mine, never))
    monkeypatch.setattr(html, "SECTIONS", added)
    page = html.render_report(fake_results(), MANIFEST)
    assert page.count("<h2>Mine</h2><p>&lt;") == 1


def test_unscored_answers_are_counted_by_reason():
    """An endpoint's outage and a monitor that says nothing of use would be one number."""
    results = fake_results()
    assert "<h2>Answers that are no label" not in html.render_report(results, MANIFEST), "of an older file"
    monitor = next(iter(results["trained_on"]))
    results["unscored"] = {monitor: {"evidence": {"no_label": 9, "http_error": 3}, "direct": {}}}
    page = html.render_report(results, MANIFEST)
    section = page.partition("<h2>Answers that are no label</h2>")[2].partition("<h2>")[0]
    assert section.count("<tr>") == 2, "a head, and who has any"
    assert "12 of 140" in section
    assert "9 no_label, 3 http_error" in section


def test_scores_to_doubt_are_counted_where_there_are_any():
    """Bounds would pass for measured scores, and a threshold of .5 for the monitor's own answer."""
    results = fake_results()
    monitor = next(iter(results["trained_on"]))
    sound = {"n_with_score": 140, "n_censored": 0, "n_both": 140, "n_against": 0}
    results["scores"] = {monitor: {"direct": sound}}
    assert "<h2>Scores to doubt" not in html.render_report(results, MANIFEST)
    results["scores"][monitor]["evidence"] = sound | {"n_censored": 35, "n_against": 7}
    page = html.render_report(results, MANIFEST)
    section = page.partition("<h2>Scores to doubt</h2>")[2].partition("<h2>")[0]
    assert section.count("<tr>") == 2, "a head, and who has any"
    assert "35 of 140 (25.0 %)" in section
    assert "7 of 140 (5.0 %)" in section


def test_several_prompts_of_one_monitor_stand_beside_each_other():
    """A prompt would be chosen by two tables over other samples, without an interval of the difference."""
    results = fake_results()
    assert "<h2>One monitor under" not in html.render_report(results, MANIFEST), "of an older file"
    monitor = next(iter(results["trained_on"]))
    asked = {prompt: columns(verdicts(monitor, prompt, 10)) for prompt in ("direct", "evidence_first")}
    facts = compare_prompts(asked, **DRAWS)
    assert facts is not None
    results["prompts"] = {monitor: facts}
    page = html.render_report(results, MANIFEST)
    section = page.partition("<h2>One monitor under several prompts</h2>")[2].partition("<h2>")[0]
    assert section.count("<tr>") == 4, "a head, each prompt, and one minus the other"
    assert "over the same 140 samples" in section
    console = Console(record=True, width=80)
    print_tables(console, results)
    text = console.export_text()
    lines = text[text.index("by prompt, over the same 140 samples") :].splitlines()[1:5]
    assert [line.split()[0] for line in lines] == ["prompt", "direct", "evidence_first", "minus"]
    assert lines[3].count("[") == 3, "every interval in its line"
