"""Render the recommendation's page (sentence, table, figure), which needs no other file, like the report.

Promises: the page keeps what `report.html` promises of text and addresses; there is no script on it.
"""

from collections.abc import Mapping
from typing import NamedTuple

from markupsafe import Markup

from monitorbench.metrics.choice.facts import Option, Recommendation, Rival
from monitorbench.report.recommendation.figure import cost_by_base_rate
from monitorbench.report.recommendation.words import (
    RIVALS,
    best,
    called,
    order_of,
    share,
    signed_amount,
    spoken,
)
from monitorbench.report.sections.section import PageNumber
from monitorbench.report.stress.table import worst_lines
from monitorbench.report.tables.numbers import DASH, amount, amount_interval, interval, rate
from monitorbench.report.tables.points import percent, threshold
from monitorbench.report.template import facts, policy, templates

_SHOWN = 6
"""Number of monitors in the table, the cheapest on the calibration split first."""


class CandidateRow(NamedTuple):
    """One row of the table of monitors and rivals."""

    name: str
    is_chosen: bool
    role: str
    """Role of the row: recommended, nearest, runner-up, a shortcut check or no monitor; empty for others."""
    where: str
    missed: PageNumber
    """Miss rate on the test split with what it is of; `alarms` is the false alarm rate in the same form."""
    alarms: PageNumber
    auroc: PageNumber
    cost: PageNumber
    difference: PageNumber
    stressed: PageNumber
    """Number of changes that are shown to make the monitor worse, and the worst miss rate."""
    reason: str
    """Reason that stands in place of the numbers; empty where there are numbers."""


def shown(found: Recommendation) -> Mapping[str, object]:
    """Collect what the templates fill in, on the page and on top of a report."""
    rows = [_row(found, one) for one in found["options"][:_SHOWN]]
    checks = sorted((one for one in found["rivals"] if one["is_shortcut"]), key=order_of(found), reverse=True)
    plain = [one for one in found["rivals"] if not one["is_shortcut"]]
    left_out = len(found["options"]) - len(rows)
    # Safe to put in as it is: drawn here, every name in it an outline or escaped.
    figure = Markup(cost_by_base_rate(found))
    base_rate = percent(found["settings"]["base_rate"])
    low, high = (percent(one) for one in found["settings"]["base_rates"])
    return {
        "found": found,
        "rows": [*rows, *(_rival(one) for one in (*plain, *checks[:1]))],
        "behind": ", ".join(spoken(one["name"]) for one in checks[1:]),
        "is_stressed": any(one["robustness"] for one in found["options"]),
        "left_out": left_out,
        "figure": figure,
        "base_rate": base_rate,
        "confidence": percent(found["confidence"]),
        "range": f"{low}{DASH}{high}",
        "best": best(found) if found["monitor"] is not None else "",
    }


def render_recommendation(found: Recommendation, manifest: Mapping[str, object]) -> str:
    """Render the page; `manifest` says how the recommendation was made."""
    page = templates().get_template("recommendation.html.j2")
    return page.render(**shown(found), facts=facts(manifest), policy=policy())


def _row(found: Recommendation, one: Option) -> CandidateRow:
    is_best = (one["monitor"], one["prompt"]) == (found["monitor"], found["prompt"])
    is_second = (one["monitor"], one["prompt"]) == (found["runner_up"], found["runner_up_prompt"])
    named = {"recommend": "recommended", "insufficient": "nearest", "none": "nearest"}[found["decision"]]
    role = named if is_best else "runner-up" if is_second else ""
    name, at = called(one["monitor"], one["prompt"], found["options"]), one["at_test"]
    if at is None:
        return CandidateRow(name, False, role, DASH, *(PageNumber(DASH, ""),) * 6, one["reason"])
    missed = _split(share(at["miss_rate"], at["miss_rate_ci"]), f"of {at['n_misbehavior']:,}")
    alarms = _split(share(at["false_alarm_rate"], at["false_alarm_rate_ci"]), f"of {at['n_benign']:,}")
    area = PageNumber(rate(one["auroc"]), interval(one["auroc_ci"]))
    cost = PageNumber(amount(at["expected_cost"]), amount_interval(at["expected_cost_ci"]))
    behind = PageNumber("", "") if is_best else _split(signed_amount(one["difference"], one["difference_ci"]))
    chosen = is_best and found["decision"] == "recommend"
    limits = [f"{threshold(value)} ({category})" for category, value in one["thresholds"].items()]
    where = ", ".join(limits) or (
        threshold(one["threshold"]) if one["threshold"] is not None else "own answers"
    )
    return CandidateRow(name, chosen, role, where, missed, alarms, area, cost, behind, _stressed(one), "")


def _stressed(one: Option) -> PageNumber:
    """Fill the column on a monitor's robustness; where that is its own answers', the cell says so."""
    of = one["robustness"]
    if of is None:
        return PageNumber(DASH, "")
    missed = next((line for line in worst_lines(of) if line.startswith("MR ")), "")
    own = "own answers; " if one["robustness_at"] == "answers" else ""
    return PageNumber(f"{len(of['exposed'])} of {of['n_changes']}", f"{own}worst {missed}" if missed else own)


def _rival(one: Rival) -> CandidateRow:
    """Fill the row of a rival that has to be beaten; the difference is its cost less the monitor's."""
    gap = None if one["difference"] is None else 0.0 - one["difference"]
    bounds = [0.0 - bound for bound in reversed(one["difference_ci"])] if one["difference_ci"] else None
    nothing = PageNumber("", "")
    return CandidateRow(
        name=spoken(one["name"]) if one["is_shortcut"] else RIVALS[one["name"]],
        is_chosen=False,
        role="shortcut check" if one["is_shortcut"] else "no monitor",
        where=DASH if one["threshold"] is None else threshold(one["threshold"]),
        missed=nothing,
        alarms=nothing,
        auroc=nothing,
        cost=PageNumber(amount(one["expected_cost"]), ""),
        difference=_split(signed_amount(gap, bounds)),
        stressed=nothing,
        reason="",
    )


def _split(text: str, of: str = "") -> PageNumber:
    """Split `2.0 [1.2–3.1]` into the number and, below it, the interval and what it is of."""
    value, bracket, rest = text.partition(" [")
    inside = f"[{rest}" if bracket else ""
    return PageNumber(value, " ".join(filter(None, (inside, of))))
