"""`control.html`: one page that needs nothing beside it, every text in it escaped."""

from markupsafe import Markup

from monitorbench.metrics.control.results import BudgetFacts, ControlFacts, ControlResults
from monitorbench.metrics.written import interval, rate, signed, signed_interval
from monitorbench.report.control import figures
from monitorbench.report.control.words import (
    PROTOCOLS,
    answer,
    lacking,
    monitors,
    notes,
    percent,
    percent_with_interval,
    promise,
    which_far,
)
from monitorbench.report.sections.section import PageNumber
from monitorbench.report.template import policy, templates


def render_control(results: ControlResults) -> str:
    """The page of a `control.json`."""
    blocks = [
        {
            "title": f"{name} · {prompt}",
            "n": f"{facts['n_attacks']:,} attacks, {facts['n_honest_calibration']:,} held-out honest samples",
            "ks": [row["k"] for row in next((b["best_of"] for b in facts["budgets"] if b["best_of"]), [])],
            "budgets": [_budget(row) for row in facts["budgets"]],
            "fit": _fit(facts),
            "steps": _steps(facts),
            "front": [
                (
                    PROTOCOLS[row["protocol"]],
                    percent(row["budget"]),
                    PageNumber(rate(row["safety"]), interval(row["safety_ci"])),
                    PageNumber(rate(row["usefulness"]), interval(row["usefulness_ci"])),
                    row["on_front"],
                )
                for row in facts["front"]
            ],
        }
        for name, prompt, facts in monitors(results)
    ]
    differences = [
        (
            percent(row["budget"]),
            " · ".join(row["second"]),
            " · ".join(row["first"]),
            PageNumber(signed(row["difference"]), signed_interval(row["difference_ci"])),
        )
        for row in results["differences"]
    ]
    values = {
        "dataset": results["dataset"],
        "policy": policy(),
        "answer": answer(results),
        "sentences": [which_far(results), promise(results), *notes(results)],
        # Safe to put in as they are: drawn here, every name in them an outline or escaped.
        "roc": Markup(figures.roc(results)),
        "front": Markup(figures.front(results)),
        "monitors": blocks,
        "differences": differences,
    }
    return templates().get_template("control.html.j2").render(values)


def _budget(one: BudgetFacts) -> dict[str, object]:
    return {
        "budget": percent(one["budget"]),
        "threshold": None if one["threshold"] is None else f"{one['threshold']:.4g}",
        "lacking": "" if one["safety"] is not None else lacking(one),
        "fitted": rate(one["fitted_safety"]),
        "safety": PageNumber(rate(one["safety"]), interval(one["safety_ci"])),
        "far": percent_with_interval(one["false_alarm_rate"], one["false_alarm_rate_ci"]),
        "best": [PageNumber(rate(each["safety"]), interval(each["safety_ci"])) for each in one["best_of"]],
        "worst": [
            (each["name"], PageNumber(rate(each["safety"]), interval(each["safety_ci"])))
            for each in one["routes"][:1]
        ],
    }


def _fit(facts: ControlFacts) -> str:
    fit = facts["fit"]
    if fit is None:
        return "There is no fit: a side has too few distinct scores to tell a mean from a spread."
    return (
        "The fit lies at most "
        f"{rate(fit['honest']['distance'])} (honest) and {rate(fit['attack']['distance'])} (attacks) from "
        "the shares of scores that there are; what it says below the data is not checked by any."
    )


def _steps(facts: ControlFacts) -> list[dict[str, object]]:
    return [
        {
            "budget": percent(at_budget["budget"]),
            "lacking": "" if at_budget["safety"] is not None else at_budget["reason"],
            "safety": PageNumber(rate(at_budget["safety"]), interval(at_budget["safety_ci"])),
            "in_time": rate(at_budget["in_time"]),
            "late": rate(at_budget["late"]),
            "never": rate(at_budget["never"]),
            "attackers": [
                (
                    "anywhere" if each["start"] is None else f"at a score up to {each['start']:.3g}",
                    "never" if each["stop"] is None else f"above {each['stop']:.3g}",
                    rate(each["attempted"]),
                    rate(each["caught"]),
                    rate(each["succeeded"]),
                    rate(each["safety_when_repeated"]),
                )
                for each in at_budget["start_stop"]
            ],
        }
        for at_budget in facts["steps"] or []
    ]
