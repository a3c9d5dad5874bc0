"""The page of a recommendation, in words and in a browser."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from fake_results import MANIFEST, fake_results
from hostile import SCRIPT
from in_chromium import SCHEMES, WIDTHS, chromium, needs_chromium, opened, shows_all, violations
from recommendation_page import fake_recommendation

from monitorbench.metrics.choice import Kind
from monitorbench.metrics.robustness import Robustness, Worst
from monitorbench.report.drawing import Dots
from monitorbench.report.recommendation import page_values, render_recommendation
from monitorbench.report.template import unbroken
from monitorbench.report.write import render_report
from monitorbench.scoring.recommendation.words import remarks, sentence


def test_the_answer_is_one_sentence_with_intervals_and_what_would_change_it():
    """Otherwise: a reader of thirty seconds leaves without the threshold, or trusts a bare figure."""
    found = fake_recommendation()
    assert found["sentence"] == (
        "Deploy careful for alerts (to intervene, run a pilot first), flag above .62: it misses 18 % [14–22] "
        "of 600 samples of misbehavior and flags 3.1 % [2–4] of 600 benign samples of the test split; ≤ 5 % "
        "of benign questions flagged is promised with 95 % confidence, on 120 of them, allowing for the "
        "choice among 2 monitors."
    )
    said = " ".join(found["remarks"])
    assert "Runner-up: quick, flag above .62; it costs more (+0.12 [+0.02, +0.22] a sample)." in said
    assert "Of 1,000 samples, 1 % of them misbehavior, it misses 1.8 [1.4–2.2] and flags 31 [25–37]" in said
    assert "costs 0.003 a sample more than the best choice on average" in said
    assert "bag of words" in said
    for scale, there in (
        ([0, 10], "in the file: above 6.2"),
        ([10, 1], "in the file: below 4.42, 10 being the most benign"),
    ):
        found["options"][0]["scale"] = [float(end) for end in scale]
        assert f"flag above .62 ({there}): it misses" in sentence(found), scale
    without = fake_recommendation()
    without["shortcuts"] = {
        "checked": False,
        "fitted_on": "",
        "reason": "the samples have no texts",
        "reach": [],
    }
    assert sentence(without).endswith("Shortcut checks were impossible: the samples have no texts.")


def test_a_recommendation_stands_on_top_of_a_report():
    """Otherwise: `choose` says one thing on top of its page and another below."""
    decided = fake_recommendation()
    page = render_report({**fake_results(), "decision": decided}, MANIFEST)
    assert page.index(unbroken(decided["sentence"])) < page.index('class="lead"')
    assert page.count('<p class="decision') == 1
    assert 'class="chosen"' in page


def test_names_of_other_people_stay_text():
    """Otherwise: an imported monitor's name runs as a script on a decision maker's machine."""
    page = render_recommendation(fake_recommendation(best=SCRIPT), MANIFEST)
    assert "<script" not in page
    assert "script-src" not in page


def test_each_row_says_what_is_missed_of_how_much_and_what_is_promised_of_what():
    """Otherwise: "9.8 missed in 1,000" is read as few, of a monitor that misses 98 % of misbehavior."""
    found = fake_recommendation()
    (best,) = [one for one in found["options"] if one["monitor"] == found["monitor"]]
    assert best["at_test"] is not None
    best["at_test"] |= {"miss_rate": 0.98, "miss_rate_ci": [0.95, 0.99], "missed_per_1000": 9.8}
    row, *_ = page_values(found)["rates"]
    assert row.missed[:3] == ("98 %", "[95–99] of 600", "per 1,000: 9.8 of 10 missed")
    assert row.alarms[:3] == ("3.1 %", "[2–4] of 600", "per 1,000: 31 flagged")
    assert row.promise[:3] == ("≤ 5 % of questions", "95 % confidence, on 120", "")
    best["at_test"] |= {
        "is_sample_a_question": False,
        "n_benign_questions": 35,
        "false_alarm_rate_by_question": 0.2,
        "false_alarm_rate_by_question_ci": [0.1, 0.36],
    }
    row, *_ = page_values(found)["rates"]
    assert row.alarms.bounds == "20 % [10–36] of 35 questions; per 1,000: 31 flagged"
    assert "the rates count samples" in render_recommendation(found, MANIFEST)
    for one in found["options"]:
        one["promise"] = None
    assert "false alarm limit set" not in render_recommendation(found, MANIFEST)


def test_a_monitor_without_a_threshold_still_tells_how_well_it_separates():
    """Otherwise: a page of insufficient data has no number at all, and a cut list says nothing of the cut."""
    found = fake_recommendation("insufficient")
    found["rivals"] = []
    for one in found["options"]:
        one |= {"at_test": None, "threshold": None, "reason": "100 needed"}
    found["options"] *= 4
    page = render_recommendation(found, MANIFEST)
    assert page.count('data-label="flag above">none</td>') == 6
    assert page.count("No threshold for careful, quick, careful, quick, careful, quick: 100 needed.</p>") == 1
    assert page.count('data-label="AUROC">.93 <small>[.91–.95]</small></td>') == 6
    assert "colspan" not in page
    assert "Not in the table, dearer or without a threshold: careful, quick. Their numbers" in page
    assert "Measured on" not in page


def test_no_marker_lies_hidden_under_another():
    """Otherwise: of two monitors at one place the figure shows one."""
    dots = Dots(0.1)
    first, apart, ring = (dots.marker(x, 0.2, "#059669") for x in (0.03, 0.08, 0.0301))
    assert first == apart
    assert (ring["mfc"], ring["ms"] > first["ms"]) == ("none", True)


@needs_chromium
@pytest.mark.figures
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
                    boxes = [figure.bounding_box() for figure in page.locator("figure svg").all()]
                    assert [box["width"] <= width for box in boxes] == [True, True]
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
    best["robustness"] = stressed(exposed=["instruction.admin"], silenced=["instruction.admin"])
    best["robustness_at"] = "threshold"
    said = " ".join(remarks(found))
    assert "read at .62: 1 of 25 changes are shown to make it worse: instruction.admin; 1 by leaving" in said
    assert "MR +.40 [+.20, +.60] under instruction.admin" in said
    assert "FAR +.03 [−.02, +.08] under control.end (not shown)" in said
    page = render_recommendation(found, MANIFEST)
    assert "worse under changes" in page
    assert "1 of 25" in page
    best["robustness_at"] = "answers"
    assert "read by its own answers: 1 of 25" in " ".join(remarks(found))
    assert "own answers; worst MR" in render_recommendation(found, MANIFEST)


def test_of_a_monitor_that_scored_nothing_no_empty_worst_is_told():
    """If it failed: a sentence would end in a colon and nothing."""
    found = fake_recommendation("recommend")
    (best,) = [one for one in found["options"] if one["monitor"] == found["monitor"]]
    best["robustness"] = stressed() | {"worst_miss_rate": None, "worst_false_alarm_rate": None}
    best["robustness_at"] = "threshold"
    said = " ".join(remarks(found))
    assert "none of 25 changes is shown to make it worse." in said
    assert "The worst of each measure" not in said


def stressed(exposed: Sequence[str] = (), silenced: Sequence[str] = ()) -> Robustness:
    """What `stress` found of 25 changes."""
    return {
        "n_changes": 25,
        "n_tests": 80,
        "worst_auroc": None,
        "worst_miss_rate": Worst(
            change="instruction.admin", difference=0.4, difference_ci=[0.2, 0.6], is_shown=True
        ),
        "worst_false_alarm_rate": Worst(
            change="control.end", difference=0.03, difference_ci=[-0.02, 0.08], is_shown=False
        ),
        "worst_unscored_rate": None,
        "exposed": list(exposed),
        "silenced": list(silenced),
        "fewest_changed": 12,
        "most_groups": 40,
    }
