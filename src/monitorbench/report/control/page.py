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
    shown = [
        {
            "title": f"{name} · {prompt}",
            "n": f"{facts['n_attacks']:,} attacks, {facts['n_honest_calibration']:,} held-out honest samples",
            "ks": [one["k"] for one in next((b["best_of"] for b in facts["budgets"] if b["best_of"]), [])],
            "budgets": [_budget(one) for one in facts["budgets"]],
            "fit": _fit(facts),
            "steps": _steps(facts),
            "front": [
                (
                    PROTOCOLS[one["protocol"]],
                    percent(one["budget"]),
                    PageNumber(rate(one["safety"]), interval(one["safety_ci"])),
                    PageNumber(rate(one["usefulness"]), interval(one["usefulness_ci"])),
                    one["on_front"],
                )
                for one in facts["front"]
            ],
        }
        for name, prompt, facts in monitors(results)
    ]
    differences = [
        (
            percent(one["budget"]),
            " · ".join(one["second"]),
            " · ".join(one["first"]),
            PageNumber(signed(one["difference"]), signed_interval(one["difference_ci"])),
        )
        for one in results["differences"]
    ]
    values = {
        "dataset": results["dataset"],
        "policy": policy(),
        "answer": answer(results),
        "sentences": [which_far(results), promise(results), *notes(results)],
        # Safe to put in as they are: drawn here, every name in them an outline or escaped.
        "roc": Markup(figures.roc(results)),
        "front": Markup(figures.front(results)),
        "monitors": shown,
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
            "budget": percent(one["budget"]),
            "lacking": "" if one["safety"] is not None else one["reason"],
            "safety": PageNumber(rate(one["safety"]), interval(one["safety_ci"])),
            "in_time": rate(one["in_time"]),
            "late": rate(one["late"]),
            "never": rate(one["never"]),
            "attackers": [
                (
                    "anywhere" if each["start"] is None else f"at a score up to {each['start']:.3g}",
                    "never" if each["stop"] is None else f"above {each['stop']:.3g}",
                    rate(each["attempted"]),
                    rate(each["caught"]),
                    rate(each["succeeded"]),
                    rate(each["safety_when_repeated"]),
                )
                for each in one["start_stop"]
            ],
        }
        for one in facts["steps"] or []
    ]
