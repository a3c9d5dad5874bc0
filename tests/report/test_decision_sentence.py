"""The page's first sentence, word for word, and the terminal's last line."""

import copy
import io
from typing import Any

import pytest
from fake_results import BASE, MANIFEST, fake_results
from rich.console import Console

from monitorbench.report.html import render_report
from monitorbench.report.sections.decision import decision, short
from monitorbench.report.tables.tables import print_tables

RESULTS = fake_results()
POINT = RESULTS["operating_points"][BASE]["direct"]
RATES = {
    **POINT["rates"],
    "miss_rate": 0.18,
    "miss_rate_ci": [0.12, 0.25],
    "false_alarm_rate": 0.07,
    "false_alarm_rate_ci": [0.04, 0.13],
}
AGAINST = {"prompt": "none", "n": 280, "confidence": 0.95}
WON = {
    "kind": "deploy",
    "monitor": BASE,
    "prompt": "direct",
    "is_calibrated": True,
    "n_candidates": 1,
    "beats": True,
    "against": [
        {"monitor": "bag_of_words", "difference": -0.4, "difference_ci": [-0.6, -0.2], **AGAINST},
        {"monitor": "random", "difference": -0.9, "difference_ci": [-1.1, -0.7], **AGAINST},
    ],
    "others": [],
    "promise": None,
}


def results(**decided: Any) -> Any:
    """Results with this decision, of one monitor and prompt unless it is said."""
    points = {BASE: {"direct": {**POINT, "rates": RATES}}}
    usage = {BASE: {"direct": RESULTS["usage"][BASE]["direct"]}}
    monitors = {
        name: ({"direct": by["direct"]} if name == BASE else by)
        for name, by in RESULTS["monitors"].items()
        if "+" not in name
    }
    found = {**RESULTS, "operating_points": points, "usage": usage, "monitors": monitors}
    return found | {"decision": WON | decided}


def test_deploy() -> None:
    """The answer to the question that the whole project is for."""
    found = decision(results())
    assert found.sentence == (
        "Deploy smollm2_135m, flag above .629: misses 18 % [12–25], alarms on 7 % [4–13]; promised ≤ 10 % "
        "of questions with 95 % confidence, on 120 benign questions; .3 s and $.0002 a sample."
    )
    assert (found.kind, found.monitor, found.prompt) == ("deploy", BASE, "direct")
    assert found.thresholds == {"": 0.6290001}
    assert found.remarks == (
        "smollm2_135m beats each baseline: its expected cost minus that of bag_of_words, which it is least "
        "surely better than, is −0.40 [−0.60, −0.20], 95 % interval, a sample, over 280 samples; an unscored "
        "answer counts as wrong here.",
        "At a base rate of 1 %: precision 1.4 % [1–3], 229 [160–318] alerts in 1,000 samples.",
    )


def test_none_is_said_of_the_candidates_alone() -> None:
    """A perfect monitor without scores beside one with: `no monitor beats the baselines` would be false."""
    found = results(kind="none", beats=False)
    assert decision(found).sentence == "No monitor beats the baselines: deploy none."
    found["usage"] = {**found["usage"], "labels_only": {"direct": RESULTS["usage"][BASE]["direct"]}}
    assert decision(found).sentence == (
        "No monitor with a calibrated threshold beats the baselines: deploy none of them. labels_only has no "
        "calibrated threshold and was no candidate."
    )


def test_scores_that_are_upside_down_are_named() -> None:
    """A product's API gives P(safe): AUROC 0, right answers, and `deploy none` without a hint."""
    found = results(kind="none", beats=False)
    whole = found["monitors"][BASE]["direct"]["overall"]
    turned = {**whole, "auroc": 0.0, "auroc_ci": [0.0, 0.1], "miss_rate": 0.0, "false_alarm_rate": 0.1}
    found["monitors"] = {**found["monitors"], BASE: {"direct": {"overall": turned}}}
    (said,) = [one for one in decision(found).remarks if "upside down" in one]
    assert said.startswith(f"The scores of {BASE} look upside down: AUROC .00 [.00–.10]")
    found["monitors"][BASE]["direct"]["overall"] = {**turned, "miss_rate": 0.95, "false_alarm_rate": 0.2}
    assert not any("upside down" in one for one in decision(found).remarks), "answers no better"


def test_what_a_team_calls_misbehavior() -> None:
    """A page that says misbehavior of what are card numbers is read wrongly."""
    own: Any = results()
    own["dataset"] = {**own["dataset"], "positive_means": "contains <b>personal</b> data"}
    found = decision(own)
    assert "misses 18 % [12–25] of “contains <b>personal</b> data”, alarms on 7 %" in found.sentence
    assert any(one.startswith("Misbehavior is here “contains") for one in found.remarks)
    page = render_report(own, MANIFEST)
    assert "of “contains &lt;b&gt;personal&lt;/b&gt; data”" in page
    assert "<b>personal" not in page
    none: Any = results(kind="none", beats=False)
    none["dataset"] = own["dataset"]
    assert any(one.startswith("Misbehavior is here “contains") for one in decision(none).remarks)


def test_others_that_may_be_as_good_are_named() -> None:
    """Who pays for the winner would like to know that a cheaper one was not shown worse."""
    other = {"monitor": "y", "prompt": "direct", "n": 280, "confidence": 0.95, "difference": -0.1}
    close, far = (
        other | {"difference_ci": [-0.3, 0.1]},
        other | {"monitor": "z", "difference_ci": [-0.3, -0.1]},
    )
    assert "y is not shown worse." in decision(results(others=[close, far])).remarks


def test_by_category_and_on_average() -> None:
    """A threshold of one category would be taken for all."""
    found = results()
    one = POINT["thresholds"][0] | {"method": "conformal_risk", "delta": None}
    point = POINT | {
        "thresholds": [
            one | {"category": "qa", "threshold": 0.5, "n": 40},
            one | {"category": "code", "threshold": None, "n": 3, "reason": "too few"},
        ]
    }
    found["operating_points"] = {BASE: {"direct": point}}
    said = decision(found)
    assert ", flag above .5 (qa), – (code): " in said.sentence
    assert "promised ≤ 10 % of questions on average in each category, on 40 benign questions" in said.sentence
    assert said.thresholds == {"qa": 0.5}


def test_without_a_threshold() -> None:
    """A monitor's own answers promise nothing, and the sentence has to say so."""
    said = decision(results(is_calibrated=False)).sentence
    assert said.startswith("Deploy smollm2_135m by its own answers: misses ")
    assert "; no threshold was calibrated; " in said


def test_none_and_too_few() -> None:
    """Both are answers too, and have to be the first thing that is read."""
    none = decision(results(kind="none", beats=False))
    assert none.sentence == "No monitor beats the baselines: deploy none."
    assert none.monitor is None
    assert "is not shown to beat each baseline" in none.remarks[0]
    promise = {"method": "neyman_pearson", "alpha": 0.05, "delta": 0.05, "n": 50, "needed": 59}
    few = decision(results(kind="too_few", is_calibrated=False, promise=promise))
    assert few.sentence == (
        "Too few questions: 9 more. To promise ≤ 5 % false alarms with 95 % confidence takes 59 benign "
        "calibration questions; the dataset has 50."
    )
    assert few.n_more == 9
    assert few.remarks[0].startswith("Without a promise: Deploy smollm2_135m by its own answers")


@pytest.mark.parametrize("ascii_only", [False, True])
def test_the_terminal_begins_with_it_in_80_columns(ascii_only: bool) -> None:
    """Otherwise: the answer stands behind seventy lines of tables."""
    out = io.StringIO()
    console = Console(file=out, width=80)
    if ascii_only:
        console = Console(file=io.TextIOWrapper(io.BytesIO(), encoding="ascii"), width=80)
    with console.capture() as captured:
        print_tables(console, results())
    text = captured.get()
    assert max(map(len, text.splitlines())) <= 80
    assert " ".join(text.split()).startswith("Deploy smollm2_135m, flag above .629: misses 18 %")
    if ascii_only:
        text.encode("ascii")


@pytest.mark.parametrize(
    ("value", "text"), [(0.3, ".3"), (0.0002, ".0002"), (12.34, "12"), (1.26, "1.3"), (1234, "1,234")]
)
def test_short_numbers(value: float, text: str) -> None:
    """$2e-04 is no price."""
    assert short(value) == text


def test_what_voids_a_promise_stands_behind_it() -> None:
    """Drifted scores, another dataset, a threshold that never fires: each makes the promise worth nothing."""
    found = copy.deepcopy(results())
    point = found["operating_points"][BASE]["direct"]
    drifted = {"distance": 0.4, "p_value": 0.001, "n_calibration": 120, "n_use": 140, "higher": 0.8}
    point.update(calibrated_on="jsonl-0123", flags_nothing=True, drift=drifted)
    sentence = decision(found).sentence
    assert "; calibrated on another dataset, jsonl-0123: the promise is not one for this dataset;" in sentence
    assert "; this threshold flags nothing: no score is above it;" in sentence
    assert "; benign scores are higher than in calibration (" in sentence
    assert "p = 0.001, 120 against 140 questions): expect more false alarms than promised;" in sentence
    point["drift"]["p_value"] = 0.2
    assert "benign scores are" not in decision(found).sentence


def test_false_alarms_by_question_stand_beside_those_by_sample() -> None:
    """Four samples a question: a FAR of 5 % by sample may break a promise of 10 % of the questions."""
    found = copy.deepcopy(results())
    found["operating_points"][BASE]["direct"]["rates"].update(
        is_sample_a_question=False,
        n_benign_questions=35,
        false_alarm_rate_by_question=0.2,
        false_alarm_rate_by_question_ci=[0.1, 0.36],
    )
    said = decision(found).sentence
    assert "alarms on 7 % [4–13] of benign samples and 20 % [10–36] of benign questions" in said


def test_weighted_questions_say_what_they_are_worth() -> None:
    """280 questions of the wrong kind read as 280 of the right one."""
    found = copy.deepcopy(results())
    (one,) = found["operating_points"][BASE]["direct"]["thresholds"]
    one.update(mix="given", effective_n=80.4)
    assert "on 120 benign questions (worth 80 in the given shares of cells)" in decision(found).sentence
