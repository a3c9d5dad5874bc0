"""The page of a recommendation, in words and in a browser."""

from pathlib import Path

import pytest
from fake_results import MANIFEST, fake_results
from hostile import SCRIPT
from in_chromium import SCHEMES, WIDTHS, chromium, needs_chromium, opened, shows_all, violations
from recommendation_page import fake_recommendation

from monitorbench.metrics.choice.facts import Kind
from monitorbench.report.html import render_report
from monitorbench.report.recommendation.page import render_recommendation
from monitorbench.report.recommendation.words import remarks, sentence


def test_the_answer_is_one_sentence_with_intervals_and_what_would_change_it():
    """Otherwise: a reader of thirty seconds leaves without the threshold, or trusts a bare figure."""
    found = fake_recommendation()
    assert found["sentence"] == (
        "Deploy careful to watch, flag above .62: of 1,000 samples at a base rate of 1 % it misses "
        "1.8 [1.4–2.2] and flags 31 [25–37] benign ones; ≤ 5 % false alarms promised with 95 % confidence."
    )
    said = " ".join(found["remarks"])
    assert "Runner-up: quick, flag above .62; it is worse (+0.12 [+0.02, +0.22] a sample)." in said
    assert "below a base rate of 0.12 % (inside your range), quick" in said
    assert "above 530 for a miss, flagging everything" in said
    assert "Regret of the choice: 0.003 a sample on average" in said
    assert "bag of words" in said
    without = fake_recommendation()
    without["shortcuts"] = {"checked": False, "fitted_on": "", "reason": "the samples have no texts"}
    assert sentence(without).endswith("Shortcut checks were impossible: the samples have no texts.")


def test_a_recommendation_stands_on_top_of_a_report():
    """Otherwise: `choose` says one thing on top of its page and another below."""
    plain = render_report(fake_results(), MANIFEST)
    page = render_report(fake_results(), MANIFEST, recommendation=fake_recommendation())
    said = fake_recommendation()["sentence"]
    assert said not in plain
    assert page.index(said) < page.index('class="lead"')
    assert page.count('<p class="decision') == 1
    assert 'class="chosen"' in page


def test_names_of_other_people_stay_text():
    """Otherwise: an imported monitor's name runs as a script on a decision maker's machine."""
    page = render_recommendation(fake_recommendation(best=SCRIPT), MANIFEST)
    assert "<script" not in page
    assert "script-src" not in page


@needs_chromium
def test_the_page_fits_a_screen_and_a_phone(tmp_path: Path):
    """Otherwise: the sentence, the table or the figure is cut off, or can't be read aloud."""
    kinds: tuple[Kind, ...] = ("recommend", "insufficient", "none")
    with chromium() as browser:
        for kind in kinds:
            file = tmp_path / f"{kind}.html"
            file.write_text(render_recommendation(fake_recommendation(kind), MANIFEST), encoding="utf-8")
            for width in WIDTHS:
                with opened(browser, file, width=width, scheme=SCHEMES[width == WIDTHS[1]]) as page:
                    shows_all(page)
                    assert page.locator("p.decision strong").is_visible()
                    box = page.locator("figure svg").bounding_box()
                    assert box["width"] <= width
                    if kind == "recommend":
                        page.screenshot(path=str(tmp_path / f"{kind}-{width}.png"), full_page=True)
                        assert violations(page) == []


@pytest.mark.parametrize("kind", ["insufficient", "none"])
def test_without_a_recommendation_no_row_is_marked(kind: Kind):
    """Otherwise: the eye finds a winner that the sentence denies."""
    assert 'class="chosen"' not in render_recommendation(fake_recommendation(kind), MANIFEST)


def test_what_was_stressed_is_told_with_its_worst_and_what_was_not_is_said():
    """A monitor that an instruction in the text switches off would be deployed on clean figures alone."""
    found = fake_recommendation("recommend")
    assert any("not stressed" in one for one in remarks(found))
    (best,) = [one for one in found["options"] if one["monitor"] == found["monitor"]]
    best["robustness"] = {
        "n_changes": 25,
        "n_tests": 60,
        "worst_auroc": None,
        "worst_miss_rate": {
            "change": "instruction.admin",
            "difference": 0.4,
            "difference_ci": [0.2, 0.6],
            "is_shown": True,
        },
        "worst_false_alarm_rate": None,
        "exposed": ["instruction.admin"],
        "fewest_changed": 12,
        "most_groups": 40,
    }
    (told,) = [one for one in remarks(found) if "changes that keep the label" in one]
    assert told.startswith("Under 25 changes that keep the label, shown to make it worse: 1;")
    assert "miss rate +.40 [+.20, +.60] (instruction.admin)" in told
