"""Render the recommendation's page (sentence, tables, figures), which needs no other file, like the report.

Promises: the page keeps what `report.html` promises of text and addresses; there is no script on it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from monitorbench.metrics.choice import AtTest, Option, PromiseKept, Recommendation, Rival
from monitorbench.metrics.points_in_words import percent, share, threshold
from monitorbench.metrics.robustness import worst_lines
from monitorbench.metrics.written import DASH, amount, amount_interval, interval, rate
from monitorbench.report.plane import cost_by_base_rate, plane
from monitorbench.report.sections.section import PageNumber
from monitorbench.report.template import facts, policy, templates
from monitorbench.runs.run_folders import dataset_name
from monitorbench.scoring.recommendation.words import (
    RIVALS,
    best,
    called,
    in_1000,
    order_of,
    signed_amount,
    spoken,
)

_SHOWN = 6
"""Number of monitors in the tables, the cheapest on the calibration split first."""
_NOTHING, _UNKNOWN = PageNumber("", ""), PageNumber(DASH, "")


class CandidateRow(NamedTuple):
    """One monitor or rival: its cells in the table of rates, and those in the table of costs."""

    name: str
    is_chosen: bool = False
    role: str = ""
    """Role of the row: recommended, cheapest of these, runner-up, shortcut check, no monitor; or empty."""
    where: str = DASH
    missed: PageNumber = _NOTHING
    """Miss rate on the test split with what it is of; `alarms` is the false alarm rate in the same form."""
    alarms: PageNumber = _NOTHING
    auroc: PageNumber = _NOTHING
    promise: PageNumber = _NOTHING
    cost: PageNumber = _NOTHING
    difference: PageNumber = _NOTHING
    stressed: PageNumber = _NOTHING
    """Number of changes that are shown to make the monitor worse, and the worst miss rate."""
    reason: str = ""
    """Reason why there is no threshold, hence no rate and no promise; empty where there is a threshold."""


def title(recommendation: Recommendation) -> str:
    """Return the page's title: the answer in three words, and the data that it is of."""
    words = {"insufficient": "Don't deploy yet", "none": "Deploy none"}
    answer = words.get(recommendation["decision"], f"Deploy {best(recommendation)}")
    return f"{answer} ({dataset_name(recommendation['data'])})"


def page_values(recommendation: Recommendation, training: str = "") -> dict[str, Any]:
    """Collect what the templates fill in, on the page and on top of a report of this `training`."""
    options, rivals = recommendation["options"][:_SHOWN], recommendation["rivals"]
    rows = [_row(recommendation, option) for option in options]
    checks = [rival for rival in rivals if rival["is_shortcut"]]
    checks.sort(key=order_of(recommendation), reverse=True)
    nearest_check = [_rival(rival) for rival in checks[:1]]
    low, high = (percent(base_rate) for base_rate in recommendation["settings"]["base_rates"])
    return {
        "recommendation": recommendation,
        "training": training,
        "rates": [*rows, *nearest_check],
        "costs": [
            *(row for row in rows if not row.reason),
            *(_rival(rival) for rival in rivals if not rival["is_shortcut"]),
            *nearest_check,
        ],
        "behind": ", ".join(spoken(rival["name"]) for rival in checks[1:]),
        "is_stressed": any(option["robustness"] for option in recommendation["options"]),
        "by_question": any(
            at_test is not None and not at_test["is_sample_a_question"]
            for at_test in (option["at_test"] for option in options)
        ),
        "left_out": [
            called(option["monitor"], option["prompt"], recommendation["options"])
            for option in recommendation["options"][_SHOWN:]
        ],
        "plane": plane(recommendation, options),
        "cost_figure": cost_by_base_rate(recommendation),
        "data": dataset_name(recommendation["data"]),
        "base_rate": percent(recommendation["settings"]["base_rate"]),
        "n_in_1000": in_1000(1000 * recommendation["settings"]["base_rate"], None),
        "confidence": percent(recommendation["confidence"]),
        "range": f"{low}{DASH}{high}",
        "best": best(recommendation) if recommendation["monitor"] is not None else "",
    }


def render_recommendation(recommendation: Recommendation, manifest: Mapping[str, object]) -> str:
    """Render the page; `manifest` says how the recommendation was made."""
    page = templates().get_template("recommendation.html.j2")
    return page.render(
        **page_values(recommendation), title=title(recommendation), facts=facts(manifest), policy=policy()
    )


def _row(recommendation: Recommendation, option: Option) -> CandidateRow:
    decision, judge = recommendation["decision"], (option["monitor"], option["prompt"])
    is_best = judge == (recommendation["monitor"], recommendation["prompt"])
    is_second = judge == (recommendation["runner_up"], recommendation["runner_up_prompt"])
    best_role = "recommended" if decision == "recommend" else "cheapest of these"
    role = best_role if is_best else "runner-up" if is_second else ""
    name, at_test = called(*judge, recommendation["options"]), option["at_test"]
    auroc = PageNumber(rate(option["auroc"]), interval(option["auroc_ci"]))
    if at_test is None:
        row = CandidateRow(name, role=role, where="none", auroc=auroc, reason=option["reason"])
        return row._replace(missed=_UNKNOWN, alarms=_UNKNOWN, promise=_UNKNOWN)
    limits = [f"{threshold(value)} ({category})" for category, value in option["thresholds"].items()]
    where = ", ".join(limits) or (
        threshold(option["threshold"]) if option["threshold"] is not None else "own answers"
    )
    return CandidateRow(
        name=name,
        is_chosen=is_best and decision == "recommend",
        role=role,
        where=where,
        missed=_missed(recommendation, at_test),
        alarms=_alarms(at_test),
        auroc=auroc,
        promise=_promise(option["promise"]),
        cost=PageNumber(amount(at_test["expected_cost"]), amount_interval(at_test["expected_cost_ci"])),
        difference=_NOTHING
        if is_best
        else _split(signed_amount(option["difference"], option["difference_ci"])),
        stressed=_stressed(option),
    )


def _missed(recommendation: Recommendation, at: AtTest) -> PageNumber:
    """Write the miss rate, what it is of, and what it comes to in 1,000 samples of the deployment."""
    n_in_1000 = 1000 * recommendation["settings"]["base_rate"]
    missed, misbehaving = in_1000(at["missed_per_1000"], None), in_1000(n_in_1000, None)
    of_1000 = f"per 1,000: {missed} of {misbehaving} missed"
    return _split(share(at["miss_rate"], at["miss_rate_ci"]), f"of {at['n_misbehavior']:,}", of_1000)


def _alarms(at: AtTest) -> PageNumber:
    """Write the false alarm rate by sample and, where a question has several, by question."""
    of_1000 = f"per 1,000: {in_1000(at['false_alarms_per_1000'], None)} flagged"
    if not at["is_sample_a_question"]:
        of_questions = share(at["false_alarm_rate_by_question"], at["false_alarm_rate_by_question_ci"])
        of_1000 = f"{of_questions} of {at['n_benign_questions']:,} questions; {of_1000}"
    of = f"of {at['n_benign']:,}"
    return _split(share(at["false_alarm_rate"], at["false_alarm_rate_ci"]), of, of_1000)


def _promise(kept: PromiseKept | None) -> PageNumber:
    """Write what a threshold promises: a share of benign questions, not of samples."""
    if kept is None:
        return PageNumber("none", "")
    sure = "on average" if kept["delta"] is None else f"{percent(1 - kept['delta'])} % confidence"
    return PageNumber(f"≤ {percent(kept['alpha'])} % of questions", f"{sure}, on {kept['n']:,}")


def _stressed(option: Option) -> PageNumber:
    """Fill the column on a monitor's robustness; where that is its own answers', the cell says so."""
    of = option["robustness"]
    if of is None:
        return _UNKNOWN
    missed = next((line for line in worst_lines(of) if line.startswith("MR ")), "")
    own = "own answers; " if option["robustness_at"] == "answers" else ""
    return PageNumber(f"{len(of['exposed'])} of {of['n_changes']}", f"{own}worst {missed}" if missed else own)


def _rival(rival: Rival) -> CandidateRow:
    """Fill the row of a rival that has to be beaten; the difference is its cost less the monitor's."""
    gap = None if rival["difference"] is None else 0.0 - rival["difference"]
    bounds = [0.0 - bound for bound in reversed(rival["difference_ci"])] if rival["difference_ci"] else None
    return CandidateRow(
        name=spoken(rival["name"]) if rival["is_shortcut"] else RIVALS[rival["name"]],
        role="shortcut check" if rival["is_shortcut"] else "no monitor",
        where=threshold(rival["threshold"], 3),  # nobody is to flag above it
        missed=PageNumber(share(rival["miss_rate"], None), ""),
        alarms=PageNumber(share(rival["false_alarm_rate"], None), ""),
        cost=PageNumber(amount(rival["expected_cost"]), ""),
        difference=_split(signed_amount(gap, bounds)),
    )


def _split(text: str, of: str = "", more: str = "") -> PageNumber:
    """Split `2.0 [1.2–3.1]` into the number and, below it, the interval, what it is of, and a line more."""
    value, bracket, bounds = text.partition(" [")
    inside = f"[{bounds}" if bracket else ""
    return PageNumber(value, " ".join(filter(None, (inside, of))), more)
