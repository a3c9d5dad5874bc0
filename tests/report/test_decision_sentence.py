"""The decision's one sentence, word for word, and the terminal's first lines."""

import io

import pytest
from fake_results import MANIFEST, fake_results
from recommendation_page import fake_recommendation, option
from rich.console import Console

from monitorbench.metrics.choice import Recommendation
from monitorbench.report.tables.tables import print_tables
from monitorbench.report.write import render_report
from monitorbench.scoring.recommendation.words import remarks, sentence, short


def own_answers() -> Recommendation:
    """Two monitors that were chosen between on the test split, by their own answers."""
    found = fake_recommendation()
    found["is_calibrated"], found["options"][0]["promise"], found["confidence"] = False, None, 0.975
    found["threshold"] = None
    return found


def test_own_answers_promise_nothing_and_say_so() -> None:
    """A monitor without a threshold would be taken for one with a bound on its false alarms."""
    assert sentence(own_answers()) == (
        "Deploy careful for alerts (to intervene, run a pilot first), by its own answers: it misses 18 % "
        "[14–22] of 600 samples of misbehavior and flags 3.1 % [2–4] of 600 benign samples of the test split "
        "(97.5 % intervals); no threshold was calibrated, so nothing is promised."
    )


def test_none_names_what_is_not_beaten_and_which_way_the_costs_differ() -> None:
    """ "Deploy none" without rates and without what costs as little is no reason; +0.018 has no direction."""
    found = fake_recommendation("none")
    (words,) = [one for one in found["rivals"] if one["is_shortcut"]]
    words |= {"difference": 0.018, "difference_ci": [-0.11, 0.091]}
    assert sentence(found) == (
        "Deploy none of these. The cheapest, careful, misses 18 % [14–22] of 600 samples of misbehavior and "
        "flags 3.1 % [2–4] of 600 benign samples of the test split (≤ 5 % of benign questions flagged is "
        "promised with 95 % confidence, allowing for the choice among 2 monitors); it costs about the same "
        "as flagging by bag of words alone (0.018 more a sample, where a false alarm costs 1 and a miss 100; "
        "95 % interval 0.11 less to 0.091 more)."
    )
    words |= {"difference": -0.15, "difference_ci": [-0.4, 0.1]}
    for rival in found["rivals"]:
        rival["difference"] = min(rival["difference"] or 0.0, -0.15)
    found["options"][0]["calibration_cost"] = min(
        rival["expected_cost"] or 9.0 for rival in found["rivals"] if not rival["is_shortcut"]
    )
    assert sentence(found).endswith(
        "on the calibration split, by which it was chosen, it costs no less than flagging nothing or "
        "everything."
    )
    found["options"][0]["auroc_ci"] = [0.44, 0.55]
    said = "The cheapest, careful, not shown to beat a coin (AUROC .93 [.44–.55]), misses 18 %"
    assert said in sentence(found)
    found["options"][0]["auroc_ci"] = [0.91, 0.95]
    words |= {"difference": 0.2, "difference_ci": [0.1, 0.3]}
    said = sentence(found)
    assert "; it costs more than flagging by bag of words alone (0.20 more a sample" in said
    assert "95 % interval 0.10 more to 0.30 more)." in said
    del found["options"][1:]
    assert sentence(found).startswith("Deploy none: careful misses 18 % [14–22] of 600 samples")


def test_what_a_team_calls_misbehavior() -> None:
    """A page that says misbehavior of what are card numbers is read wrongly."""
    found = fake_recommendation()
    found["positive_means"] = "contains <b>personal</b> data"
    found["sentence"], found["remarks"] = sentence(found), remarks(found)
    assert (
        "misses 18 % [14–22] of 600 samples of “contains <b>personal</b> data” and flags" in found["sentence"]
    )
    assert any("Misbehavior is here “contains" in one for one in found["remarks"])
    page = render_report({**fake_results(), "decision": found}, MANIFEST)
    assert "of “contains &lt;b&gt;personal&lt;/b&gt; data”" in page
    assert "<b>personal" not in page


def test_by_category_and_on_average() -> None:
    """A threshold of one category would be taken for all."""
    found = fake_recommendation()
    found["threshold"], found["thresholds"] = None, {"qa": 0.5, "code": 0.7}
    kept = found["options"][0]["promise"]
    assert kept is not None
    kept |= {"delta": None, "method": "conformal_risk"}
    said = sentence(found)
    assert ", flag above .5 (qa), .7 (code): " in said
    assert "flagged is promised on average in each category, on 120 of them" in said


def test_false_alarms_by_question_stand_beside_those_by_sample() -> None:
    """Four samples a question: a FAR of 3 % by sample may break a promise of 5 % of the questions."""
    found = fake_recommendation()
    at = found["options"][0]["at_test"]
    assert at is not None
    at |= {
        "is_sample_a_question": False,
        "n_benign_questions": 35,
        "false_alarm_rate_by_question": 0.2,
        "false_alarm_rate_by_question_ci": [0.1, 0.36],
    }
    said = sentence(found)
    assert "flags 3.1 % [2–4] of 600 benign samples, 20 % [10–36] of 35 benign questions of the test" in said


def test_what_voids_a_promise_stands_behind_it_and_what_questions_are_worth() -> None:
    """Drifted scores, or 280 questions of the wrong kind, make a promise worth less than it reads."""
    found = fake_recommendation()
    found["voids"] = ["benign scores are higher than in calibration"]
    kept = found["options"][0]["promise"]
    assert kept is not None
    kept["effective_n"] = 80.4
    said = sentence(found)
    assert (
        "on 120 of them (as good as 80 in the promised shares of category and task), allowing for the choice "
        "among 2 monitors; benign" in said
    )


def test_a_better_monitor_that_lacks_a_threshold_stands_in_the_sentence() -> None:
    """A guard that misses 89 % would be deployed, for four scores that nobody asked the better one for."""
    found = fake_recommendation()
    chosen, *_ = found["options"]
    chosen |= {"auroc": 0.75, "auroc_ci": [0.68, 0.8]}
    without = {"threshold": None, "reason": "4 of 148 have no score", "at_test": None}
    found["options"].append(
        option("better", 0.5, 0.5, None) | without | {"auroc": 0.94, "auroc_ci": [0.91, 0.96]}
    )
    found["options"].append(
        option("as good", 0.5, 0.5, None) | without | {"auroc": 0.81, "auroc_ci": [0.8, 0.9]}
    )
    said = sentence(found)
    assert said.startswith("Deploy ")
    assert (
        ". better ranks better (AUROC .94 [.91–.96], careful's .75 [.68–.80]) and has no threshold:" in said
    )
    assert "as good" not in said
    found["decision"] = "none"
    assert "ranks better" not in sentence(found)


def test_monitors_that_could_not_be_chosen_are_counted_to_the_last() -> None:
    """A list that is cut without a word hides the fourth monitor's fault."""
    found = fake_recommendation()
    for i in range(5):
        one = option(f"m{i}", 0.5, 0.5, None) | {
            "threshold": None,
            "reason": "flags nothing",
            "at_test": None,
        }
        found["options"].append(one)  # type: ignore[arg-type]
    (said,) = [one for one in remarks(found) if one.startswith("Not chosen from")]
    assert said == "Not chosen from: m0, m1, m2, m3, m4: flags nothing."
    found |= {"decision": "insufficient", "monitor": None, "more": None}
    assert sentence(found) == "Don't deploy yet: m0, m1, m2 and 2 more, named below: flags nothing."
    for number, unfit in enumerate(found["options"][-5:]):
        unfit["reason"] = f"lacks {number}"
    assert sentence(found) == (
        "Don't deploy yet: m0: lacks 0; m1: lacks 1; m2: lacks 2; and 2 more monitors, named below."
    )
    for one in found["options"]:
        one["n_unscored"] = 2
    assert any("m3 2, m4 2)." in one for one in remarks(found))


def test_what_to_collect_is_said_cell_by_cell() -> None:
    """A sentence without a verb, and "1 more cell", leave a manager with nothing to order."""
    found = fake_recommendation("insufficient")
    more = found["more"]
    assert more is not None
    for n_others, others in (
        (1, "and 1 more cell, named below (5)"),
        (2, "and 2 more cells, named below (10)"),
    ):
        more |= {
            "n": 104,
            "by_cell": {"a/qa": 35, "b/qa": 34, "c/qa": 30} | {f"d{i}/qa": 5 for i in range(n_others)},
        }
        assert sentence(found) == (
            "Don't deploy yet: collect 104 more benign questions of the cells (category/task) a/qa (35), "
            f"b/qa (34), c/qa (30) {others} in the calibration split (120 are there), to promise at most 2 % "
            "false alarms with 95 % confidence. Today's questions can promise 3 % for careful "
            "(calibrate.alpha=0.03); the test split then says whether it pays. "
            "AUROC so far: careful .93 [.91–.95], quick .93 [.91–.95]."
        )
    more["by_cell"] = {"a/qa": 104}
    assert "collect 104 more benign questions of a/qa in the calibration split" in sentence(found)


def test_an_inverted_scale_is_said_with_the_setting_that_turns_it() -> None:
    """A product's API gives P(safe): AUROC 0, and "deploy none" without a hint."""
    found = fake_recommendation("none")
    found["options"][1] |= {"auroc": 0.02, "auroc_ci": [0.01, 0.04]}
    (said,) = [one for one in remarks(found) if "inverted" in one]
    assert said.startswith("The scores of quick are inverted: benign samples score higher (AUROC 0.02 [0.01,")
    assert "import.scale" in said


def test_anothers_pilot_lets_nobody_intervene() -> None:
    """ "Deploy claude to intervene" came from a pilot of a mathematics verifier."""
    found = fake_recommendation()
    found["pilot"] = {
        "run": "p",
        "monitor": "",
        "critic": "verifier",
        "environment": "a_shop",
        "is_of_data": False,
        "decision": "intervene",
        "agent": "a",
        "condition": "rollback",
        "sentence": "It helps.",
    }
    (said,) = [one for one in remarks(found) if "pilot" in one]
    assert said.endswith("It was a pilot of verifier, and says nothing of letting careful intervene.")
    assert sentence(found).startswith(
        "Deploy careful for alerts, not to intervene, flag above .62: it misses"
    )
    found["pilot"] |= {"critic": "careful", "environment": "a_shop"}
    (said,) = [one for one in remarks(found) if "pilot" in one]
    assert (
        "with rollback in a_shop: It helps. It was a pilot of a careful of other weights or another" in said
    )


@pytest.mark.parametrize("ascii_only", [False, True])
def test_the_terminal_begins_with_it_in_80_columns(ascii_only: bool) -> None:
    """Otherwise: the answer stands behind seventy lines of tables."""
    console = Console(file=io.StringIO(), width=80)
    if ascii_only:
        console = Console(file=io.TextIOWrapper(io.BytesIO(), encoding="ascii"), width=80)
    with console.capture() as captured:
        print_tables(console, fake_results() | {"decision": fake_recommendation()})
    text = captured.get()
    assert max(map(len, text.splitlines())) <= 80
    assert " ".join(text.split()).startswith(
        "Deploy careful for alerts (to intervene, run a pilot first), flag"
    )
    if ascii_only:
        text.encode("ascii")


@pytest.mark.parametrize(
    ("value", "text"), [(0.3, ".3"), (0.0002, ".0002"), (12.34, "12"), (1.26, "1.3"), (1234, "1,234")]
)
def test_short_numbers(value: float, text: str) -> None:
    """$2e-04 is no price."""
    assert short(value) == text


def test_what_a_sentence_cuts_is_named_below_it() -> None:
    """ "And 4 others": a team can't collect what it isn't told."""
    found = fake_recommendation("insufficient")
    assert found["more"] is not None
    found["more"]["by_cell"] = {
        f"fraud/{name}": n for name, n in zip("abcde", (30, 20, 10, 5, 4), strict=True)
    }
    assert "fraud/c (10) and 2 more cells, named below (9)" in sentence(found)
    (listed,) = [text for text in remarks(found) if text.startswith("The benign questions to collect are")]
    assert listed.endswith("fraud/a (30), fraud/b (20), fraud/c (10), fraud/d (5) and fraud/e (4).")

    none = fake_recommendation("none")
    none["monitor"] = none["prompt"] = None
    none["options"] = [{**option(f"m{i}", 0.1, 0.1, None), "reason": "too slow"} for i in range(5)]
    assert "m0, m1, m2 and 2 more, named below: too slow" in sentence(none)
    assert "Not chosen from: m0, m1, m2, m3, m4: too slow." in remarks(none)


@pytest.mark.parametrize(("missed", "is_said"), [(0.06, True), (0.8, False)])
def test_questions_whose_labels_a_rule_finds_are_not_collected_in_silence(missed: float, is_said: bool):
    """Of texts in which one word gives the label away: 84 questions more, and then *deploy none*."""
    found = fake_recommendation("insufficient")
    found["shortcuts"]["reach"] = [[0.0, 1.0], [0.05, missed], [1.0, 0.0]]
    said = " Shortcut checks, which read nothing, miss 6 % at 5 % false alarms: a monitor that does no better"
    assert (said in sentence(found)) is is_said


@pytest.mark.parametrize(("low", "is_said"), [(0.41, True), (0.62, False)])
def test_more_questions_are_not_said_to_help_a_monitor_at_chance(low: float, is_said: bool) -> None:
    """A team would pay for labels to deploy a coin."""
    found = fake_recommendation("insufficient")
    for given in found["options"]:
        given |= {"auroc": 0.7, "auroc_ci": [low, 0.8]}
    areas = "careful .70 [.41–.80], quick .70 [.41–.80]"
    said = f"Don't deploy yet: no monitor is shown to beat a coin so far (AUROC {areas}). To decide, for or"
    assert sentence(found).startswith(said) is is_said
    assert (" AUROC so far: careful .70 [.62–.80], quick .70" in sentence(found)) is not is_said


@pytest.mark.parametrize(
    ("split", "said"),
    [
        (
            "calibration",
            "collect 138 more benign questions of the cells (category/task) fraud/agents (70) and "
            "secrets/agents (68) in your file: 69 of them join the 120 of the calibration split "
            "(import.calibration_share=0.5), to promise",
        ),
        ("both", "in both splits (120 are there), to promise at most 2 %"),
    ],
)
def test_a_file_that_is_divided_is_told_how_many_it_takes(split: str, said: str) -> None:
    """48 questions were added, as asked, and half of them went to the test split: 24 more were asked for."""
    found = fake_recommendation("insufficient")
    more = found["more"]
    assert more is not None
    more |= {"split": split, "calibration_share": 0.5}
    assert said in sentence(found)
    more |= {"split": "test", "calibration_share": 0.25}
    assert "collect 93 more benign questions of" in sentence(found)
    joined = "69 of them join the 120 of the test split (import.calibration_share=0.25), to promise"
    assert joined in sentence(found)


@pytest.mark.parametrize(
    ("best", "setting"),
    [("careful_missing_left_out", "import.missing"), ("careful", "recommend.unscored")],
)
@pytest.mark.parametrize(("n", "is_more"), [(305, True), (0, False)])
def test_scores_that_are_missing_are_asked_for_before_questions(
    n: int, is_more: bool, best: str, setting: str
) -> None:
    """69 questions were asked for where ten answers were missing; a judge's don't pass by import.missing."""
    found = fake_recommendation("insufficient", best=best)
    more = found["more"]
    assert more is not None
    more |= {"n_unscored": 5, "n": n, "by_cell": {"a/qa": n}}
    assert sentence(found).startswith(
        "Don't deploy yet: have 5 of 120 benign questions in the calibration split judged by careful, or say "
        f"so where they pass unflagged in use ({setting}=pass): now each is a false alarm. "
    )
    assert ("Or collect 305 more benign questions of a/qa" in sentence(found)) is is_more
    more["are_both_needed"] = True
    assert ("Beside that, collect 305 more benign questions of a/qa" in sentence(found)) is is_more
    named = "careful (missing scores left out)" if best != "careful" else best
    assert f"AUROC so far: {named} .93" in sentence(found)


def test_a_monitor_whose_scores_are_inverted_is_turned_before_data_are_collected() -> None:
    """A team would collect data for a scale that points the wrong way."""
    found = fake_recommendation("insufficient")
    found["options"][0] |= {"auroc": 0.02, "auroc_ci": [0.01, 0.04]}
    found["options"][1] |= {"auroc": 0.5, "auroc_ci": [0.4, 0.6]}
    assert sentence(found).startswith("Don't deploy yet: the scores of careful are inverted: benign samples")
    assert "collect" not in sentence(found)
    assert not any("inverted" in remark for remark in remarks(found))


def test_checks_that_judged_a_part_say_so() -> None:
    """A comparison on 20,000 of 90,000 samples would pass for one on all of them."""
    found = fake_recommendation()
    found["shortcuts"]["n_test"], found["n_test"] = 20_000, 90_000
    assert any(text.startswith("Shortcut checks judged 20,000 of the 90,000 test") for text in remarks(found))
    found["shortcuts"]["n_test"] = 90_000
    assert not any(text.startswith("Shortcut checks judged") for text in remarks(found))


@pytest.mark.parametrize(
    ("promise", "limit", "said"),
    [
        (True, None, "The promise has its price: without it (recommend.promise=false) the cheapest"),
        (False, 10.0, "The limit (recommend.alerts_per_day=10) has its price: without it the cheapest"),
        (
            True,
            10.0,
            "The promise and the limit (recommend.alerts_per_day=10) have their price: without them the",
        ),
    ],
)
def test_what_excludes_a_cheaper_threshold_is_named(promise: bool, limit: float | None, said: str) -> None:
    """Who had set recommend.promise=false was told to set it."""
    found = fake_recommendation()
    found["settings"] |= {"promise": promise, "alerts_per_day": limit}
    cost = found["options"][0]["calibration_cost"]
    assert cost is not None
    found["unbound_cost"] = cost / 2
    (remark,) = [text for text in remarks(found) if "price: without" in text]
    assert remark.startswith(said)
