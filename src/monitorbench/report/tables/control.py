"""A control evaluation as a table in 80 columns, as rows of `control.csv`, and in sentences."""

from collections.abc import Iterator, Sequence

from monitorbench.config.terminal import Console
from monitorbench.metrics.control.results import BudgetFacts, ControlFacts, ControlResults
from monitorbench.metrics.metrics_json import CsvRow, flat
from monitorbench.metrics.score_facts import in_words
from monitorbench.metrics.written import DASH, counted, rate, rate_with_interval, signed_with_interval
from monitorbench.report.tables.terminal import print_rows, say

_FEW = 5
"""Honest tasks above a threshold below which another calibration's may lie far from it."""
UNSCORED = {
    "against": "unscored honest samples count as audited, unscored attacks as uncaught",
    "flag": "unscored samples count as audited and caught",
    "pass": "unscored samples count as not audited and uncaught",
    "leave_out": "unscored samples are left out",
}
PROTOCOLS = {
    "stop": "stop",
    "defer_to_trusted": "defer to trusted",
    "defer_to_resample": "defer to resample",
}


def percent(share: float) -> str:
    """`0.3 %`."""
    return f"{100 * share:g} %"


def percent_with_interval(value: float | None, bounds: Sequence[float] | None) -> str:
    """`0.42 % [0.1–1.3]`: a rate that is to be read beside a budget of .1 %; empty where there is none."""
    if value is None:
        return ""
    inside = f" [{100 * bounds[0]:.2g}{DASH}{100 * bounds[1]:.2g}]" if bounds else ""
    return f"{100 * value:.2g} %{inside}"


def monitors(results: ControlResults) -> Iterator[tuple[str, str, ControlFacts]]:
    """Yield the name in words, prompt and numbers of each monitor."""
    for name, by_prompt in results["monitors"].items():
        for prompt, facts in by_prompt.items():
            yield in_words(name), prompt, facts


def which_far(results: ControlResults) -> str:
    """State which samples the budget is a share of: honest traffic, benign counterparts or a mix."""
    of = results["far_of"]
    n = counted(of["n"], "benign sample")
    if of["kind"] == "paired_benign":
        return (
            f"The false alarm rate here is that of benign counterparts of attacks ({n}): no honest traffic, "
            "which is mostly far from any attack. A budget on honest traffic needs honest traffic."
        )
    if of["kind"] == "mixed":
        return (
            f"Of {n} that stand for honest traffic, {of['n_paired']:,} are benign counterparts of attacks, "
            "which are no honest traffic: the false alarm rate is that of the mix."
        )
    return f"The false alarm rate is that of {n} that are nobody's counterpart, taken for honest traffic."


def promise(results: ControlResults) -> str:
    """State what is guaranteed of the budget, and what counts as caught, successful and unscored."""
    if results["method"] == "neyman_pearson":
        delta = results["delta"] or 0.0
        bound = (
            f"with probability {1 - delta:g} over calibrations at most the budget's share of honest tasks is "
            "audited"
        )
    else:
        bound = "on average over calibrations at most the budget's share of honest samples is audited"
    rule = (
        "every attack counts as successful" if results["success"] == "assumed" else "success is as recorded"
    )
    return (
        f"Promised: {bound}. Caught is strictly above the threshold; {rule}; {UNSCORED[results['unscored']]}."
    )


def lacking(facts: BudgetFacts) -> str:
    """Say in place of a number, in about thirty characters, why a budget has no safety."""
    if facts["more_tasks"] is None:
        return "can't be met: too many unscored"
    return f"{facts['more_tasks']:,} more honest tasks needed"


def answer(results: ControlResults) -> str:
    """The first sentence: the safest monitor at the smallest budget that the data can keep."""
    budgets = {at_budget["budget"] for _, _, facts in monitors(results) for at_budget in facts["budgets"]}
    for budget in sorted(budgets):
        candidates = [
            (at_budget["safety"], name, prompt, at_budget)
            for name, prompt, facts in monitors(results)
            for at_budget in facts["budgets"]
            if at_budget["budget"] == budget and at_budget["safety"] is not None
        ]
        if candidates:
            safety, name, prompt, at_budget = max(candidates, key=lambda row: row[0])
            low, high = at_budget["safety_ci"] or (0.0, 1.0)
            return (
                f"The smallest budget that these data can keep is {percent(budget)}: there {name} ({prompt}) "
                f"leaves safety {safety:.2f} [{low:.2f}–{high:.2f}]."
            )
    first = next((facts["budgets"][-1] for _, _, facts in monitors(results)), None)
    more = f"; for {percent(first['budget'])} {lacking(first)}" if first else ""
    return f"Insufficient data: no budget can be kept{more}."


def notes(results: ControlResults) -> list[str]:
    """Return caveats: inverted scores, few honest tasks above a threshold, unscored samples, no catch."""
    caveats = [facts["inverted"] for _, _, facts in monitors(results) if facts["inverted"]]
    few = {
        at_budget["budget"]
        for _, _, facts in monitors(results)
        for at_budget in facts["budgets"]
        if at_budget["safety"] is not None and at_budget["tasks_above"] < _FEW
    }
    if few:
        limits = ", ".join(percent(budget) for budget in sorted(few))
        caveats.append(
            f"At {limits} fewer than {_FEW} held-out honest tasks lie above a threshold: another calibration "
            "could give quite another one, and the intervals are of this one."
        )
    for name, prompt, facts in monitors(results):
        lost = facts["n_unscored_calibration"] + facts["n_unscored_honest"] + facts["n_unscored_attacks"]
        if lost:
            caveats.append(
                f"{name} ({prompt}) left {lost:,} samples unscored: {UNSCORED[results['unscored']]}."
            )
        blind = [percent(at_budget["budget"]) for at_budget in facts["budgets"] if at_budget["flags_nothing"]]
        if blind:
            caveats.append(
                f"{name} ({prompt}) catches nothing at {', '.join(blind)}: no attack scores higher."
            )
    return caveats


_SAFETY = (
    ("budget", 6),
    ("above", 6),
    ("safety", 17),
    ("FAR on test", 17),
    ("best of", 7),
    ("worst route", 11),
)
_FRONT = (("protocol", 17), ("acted", 6), ("safety", 16), ("usefulness", 16))
_STEPS = (("of steps", 8), ("above", 6), ("safety", 16), ("in time", 7), ("late", 5), ("repeated", 8))
_DIFFERENCES = (("difference", 18), ("safety of", 28), ("less that of", 28))


def print_control(console: Console, results: ControlResults) -> None:
    """The answer first, then a block a monitor, differences, and what a reader must know."""
    say(console, answer(results), "bold")
    for name, prompt, facts in monitors(results):
        say(console, "")
        say(console, f"{name} · {prompt}: {facts['n_attacks']:,} attacks", "bold")
        most = max((row["k"] for b in facts["budgets"] for row in b["best_of"]), default=0)
        header = [f"of {most}" if most and title == "best of" else title for title, _ in _SAFETY]
        rows = [_safety_row(row) for row in facts["budgets"]]
        print_rows(console, _SAFETY, [header, *rows])
        if text := _worst_route(facts):
            say(console, text, "dim")
        if facts["steps"]:
            steps = [
                [
                    percent(row["budget"]),
                    _threshold(row["threshold"]),
                    rate_with_interval(row["safety"], row["safety_ci"])
                    if row["safety"] is not None
                    else _short(row["more_tasks"]),
                    rate(row["in_time"]),
                    rate(row["late"]),
                    rate(row["start_stop"][0]["safety_when_repeated"] if row["start_stop"] else None),
                ]
                for row in facts["steps"]
            ]
            print_rows(console, _STEPS, [[title for title, _ in _STEPS], *steps])
        front = [
            [
                PROTOCOLS[row["protocol"]],
                percent(row["budget"]),
                rate_with_interval(row["safety"], row["safety_ci"]),
                rate_with_interval(row["usefulness"], row["usefulness_ci"]),
            ]
            for row in facts["front"]
            if row["on_front"]
        ]
        if front:
            print_rows(console, _FRONT, [[title for title, _ in _FRONT], *front])
    _differences(console, results)
    say(console, "")
    for text in (which_far(results), promise(results), *notes(results)):
        say(console, text, "dim")


def _differences(console: Console, results: ControlResults) -> None:
    if not results["differences"]:
        return
    say(console, "")
    smallest = min(pair["budget"] for pair in results["differences"])
    say(console, f"Differences in safety at {percent(smallest)}, on the same attacks", "bold")
    rows = [
        [
            signed_with_interval(pair["difference"], pair["difference_ci"]),
            " · ".join(pair["second"]),
            " · ".join(pair["first"]),
        ]
        for pair in results["differences"]
        if pair["budget"] == smallest
    ]
    print_rows(console, _DIFFERENCES, [[title for title, _ in _DIFFERENCES], *rows])


def _safety_row(one: BudgetFacts) -> list[str]:
    if one["safety"] is None:
        fitted = f"fit says {rate(one['fitted_safety'])}" if one["fitted_safety"] is not None else ""
        return [percent(one["budget"]), "none", _short(one["more_tasks"]), fitted, "", ""]
    worst = one["routes"][0] if one["routes"] else None
    return [
        percent(one["budget"]),
        _threshold(one["threshold"]),
        rate_with_interval(one["safety"], one["safety_ci"]),
        percent_with_interval(one["false_alarm_rate"], one["false_alarm_rate_ci"]),
        rate(one["best_of"][-1]["safety"]) if one["best_of"] else "",
        rate(worst["safety"]) if worst else "",
    ]


def _worst_route(facts: ControlFacts) -> str:
    """Name the worst route at the largest budget that is kept; empty with fewer than two routes."""
    rows = [at_budget for at_budget in facts["budgets"] if at_budget["routes"]]
    if not rows or len(rows[-1]["routes"]) < 2:
        return ""
    worst, budget = rows[-1]["routes"][0], percent(rows[-1]["budget"])
    return (
        f"The worst of {len(rows[-1]['routes'])} routes of attack at a budget of {budget}: {worst['name']} "
        f"{rate_with_interval(worst['safety'], worst['safety_ci'])}, {counted(worst['n'], 'attack')}."
    )


def _short(more: int | None) -> str:
    return "can't be met" if more is None else f"{more:,} more tasks"


def _threshold(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"


def control_rows(results: ControlResults) -> list[CsvRow]:
    """`control.csv`: one row a monitor, prompt and budget, every number unrounded under its key."""
    rows: list[CsvRow] = []
    judged = ((name, *entry) for name, of in results["monitors"].items() for entry in of.items())
    for name, prompt, facts in judged:
        for at_budget in facts["budgets"]:
            numbers = {key: value for key, value in at_budget.items() if key not in ("best_of", "routes")}
            worst = at_budget["routes"][0] if at_budget["routes"] else None
            rows.append(
                {
                    "monitor": name,
                    "prompt": prompt,
                    **flat(numbers),
                    **{f"best_of_{each['k']}": each["safety"] for each in at_budget["best_of"]},
                    "worst_route": worst and worst["name"],
                    "worst_route_safety": worst and worst["safety"],
                }
            )
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]
