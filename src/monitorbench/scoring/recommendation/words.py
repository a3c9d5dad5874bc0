"""Put the recommendation into words: one sentence, and the remarks that it rests on.

The words are in the template `decision.txt.j2`, the same for page, terminal and JSON file. Promises: no
figure of the test split without its interval; what is missing is named by number, label and cell; where no
shortcut check could be made, the sentence says so.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import ceil
from sys import maxsize
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from monitorbench.metrics.choice import MoreFacts, Option, Recommendation, Rival, named_option
from monitorbench.metrics.points_in_words import as_good_as, percent, share, threshold
from monitorbench.metrics.robustness import answer, worst_lines
from monitorbench.metrics.score_facts import (
    COUNTED_AS,
    as_imported,
    inverted_in_words,
    is_inverted,
    passed_by,
)
from monitorbench.metrics.written import DASH, MINUS, amount, amount_interval, counted, interval, rate
from monitorbench.scoring.recommendation.deployment import limits_in_words

_CHECKS = {
    "echo": "words echoed from the request",
    "overlap": "overlap with the request",
    "form": "length and layout",
}
"""Shortcut checks whose names are not plain words; they follow "by"."""
RIVALS: Mapping[str, str] = {"nothing": "flagging nothing", "everything": "flagging everything"}


def called(monitor: str | None, prompt: str | None, options: Sequence[Option]) -> str:
    """Name the monitor, with its prompt where it was run with several."""
    several = len({option["prompt"] for option in options if option["monitor"] == monitor}) > 1
    name, how = as_imported(f"{monitor}")
    notes = [f"missing scores {COUNTED_AS[how]}"] if how else []
    notes += [f"{prompt} prompt"] if several else []
    return f"{name} ({', '.join(notes)})" if notes else name


def to_be_added(more: MoreFacts) -> tuple[int, dict[str, int]]:
    """Count the questions to collect, in all and of each cell.

    Of an imported file they are so many that what the file's division brings to the split that lacks them is
    enough; where both splits are to grow, and where the split is given, they are those that are missing.
    """
    share = {"calibration": more["calibration_share"], "test": 1 - more["calibration_share"], "both": 1}
    part = share[more["split"]] if more["calibration_share"] else 1
    if part == 1:
        return more["n"], more["by_cell"]
    by_cell = {name: ceil(n / part - 1e-9) for name, n in more["by_cell"].items()}
    return sum(by_cell.values()) or ceil(more["n"] / part - 1e-9), by_cell


def best(recommendation: Recommendation) -> str:
    """Name the monitor that the answer is about."""
    return called(recommendation["monitor"], recommendation["prompt"], recommendation["options"])


def spoken(name: str) -> str:
    """Say what a shortcut check goes by, as in a sentence."""
    return _CHECKS.get(name, name.replace("_", " "))


def short(value: float) -> str:
    """Write a number with two digits: `.3`, `.0002`, `12`."""
    text = f"{value:,.0f}" if value >= 10 else f"{float(f'{value:.2g}'):f}".rstrip("0").rstrip(".")
    return text[1:] if text.startswith("0.") else text


def on_own_scale(limit: float, scale: Sequence[float] | None) -> str:
    """Write a threshold as the monitor's file has its scores: ` (in the file: above 66.4)`.

    `scale` has the values of the file that became 0 and 1; "" without one.
    """
    if scale is None:
        return ""
    low, high = scale
    side, turned = ("above", "") if low < high else ("below", f", {low:g} being the most benign")
    return f" (in the file: {side} {threshold(low + limit * (high - low))}{turned})"


def in_1000(value: float | None, bounds: Sequence[float] | None) -> str:
    """Write a number of samples in 1,000 as `2.0 [1.2–3.1]`."""
    if value is None:
        return DASH
    inside = f" [{_few(bounds[0])}{DASH}{_few(bounds[1])}]" if bounds else ""
    return f"{_few(value)}{inside}"


def _few(value: float) -> str:
    """Write a number of samples: `31`, `2.0`, `0.04`."""
    if value >= 9.95:
        return f"{value:,.0f}"
    text = f"{value:.1f}" if value >= 0.095 or value == 0 else f"{float(f'{value:.1g}'):f}".rstrip("0")
    return "0" if value == 0 else text


def signed(value: float) -> str:
    """Write a difference in cost with its sign: `−0.31`."""
    return f"{MINUS if value < 0 else '+' if value > 0 else ''}{amount(abs(value))}"


def signed_amount(value: float | None, bounds: Sequence[float] | None) -> str:
    """Write a difference in cost as `−0.31 [−0.42, −0.20]`."""
    if value is None:
        return DASH
    inside = f" [{signed(bounds[0])}, {signed(bounds[1])}]" if bounds else ""
    return f"{signed(value)}{inside}"


def order_of(recommendation: Recommendation) -> Callable[[Rival], float]:
    """Return the key that orders rivals by how little they are beaten.

    The key is the difference where no monitor is recommended (`none`), else its interval's upper bound.
    """
    return _difference if recommendation["decision"] == "none" else _upper_bound


def _difference(rival: Rival) -> float:
    return rival["difference"] if rival["difference"] is not None else float("inf")


def _upper_bound(rival: Rival) -> float:
    """Return the upper bound of the difference to a rival; infinity where it has no interval."""
    return rival["difference_ci"][1] if rival["difference_ci"] else float("inf")


_NAMED = 3
"""Number of cells, or of monitors, that are named in one sentence."""
_MOST_MISSED = 0.5
"""Largest miss rate at 5 % false alarms of shortcut checks that is told while data is missing."""
_MUCH = 1.1
"""Smallest ratio of two costs at which a remark tells of them."""


def sentence(recommendation: Recommendation) -> str:
    """Put the answer into one sentence."""
    return _line(str(_words(recommendation).sentence()))


def remarks(recommendation: Recommendation) -> list[str]:
    """List the remarks that the sentence rests on, a sentence or two each."""
    texts = [line for remark in _words(recommendation).remarks for line in str(remark()).split("\n---\n")]
    return [text for text in map(_line, texts) if text]


@cache
def _template() -> Template:
    """Return the template, plain text in which nothing is escaped: whoever shows the words does that."""
    plain = Environment(
        loader=PackageLoader("monitorbench.scoring.recommendation", "."),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    plain.filters |= {"line": _line, "spoken": spoken}
    written_by = (amount, amount_interval, counted, in_1000, interval, percent, rate, share, short)
    told_by = (
        as_good_as,
        to_be_added,
        signed_amount,
        inverted_in_words,
        on_own_scale,
        passed_by,
        threshold,
        worst_lines,
    )
    plain.globals |= {function.__name__: function for function in (*written_by, *told_by)}
    return plain.get_template("decision.txt.j2")


def _line(text: str) -> str:
    """Put a text on one line."""
    return re.sub(r"\s*\n\s*", " ", text).strip()


def _words(recommendation: Recommendation) -> Any:
    """Return the template's macros over a recommendation and what its words are chosen by."""
    rivals, settings, option = (
        recommendation["rivals"],
        recommendation["settings"],
        named_option(recommendation),
    )
    at_test = option and option["at_test"]
    with_auroc = [option for option in recommendation["options"] if option["auroc"] is not None]
    inverted = [option for option in with_auroc if is_inverted(option["auroc"], option["auroc_ci"])]
    is_chance = all((option["auroc_ci"] or [0.0])[0] <= 0.5 for option in with_auroc)
    alerts, around = (
        (None, None) if at_test is None else (at_test["alerts_per_1000"], at_test["alerts_per_1000_ci"])
    )
    daily = None if settings["samples_per_day"] is None else settings["samples_per_day"] / 1000
    values = {
        "recommendation": recommendation,
        "settings": settings,
        "at": at_test,
        "promise": option and option["promise"],
        "option": option,
        "runner_up": _runner_up(recommendation),
        "best": best(recommendation),
        "nearest": max(rivals, key=_upper_bound, default=None),
        "worst": max(rivals, key=order_of(recommendation), default=None),
        # Cheaper on the test split than all rivals, and yet none: by the calibration split.
        "is_dear": _is_dear(recommendation) and all((rival["difference"] or 0.0) < 0 for rival in rivals),
        "confidence": percent(recommendation["confidence"]),
        "is_plain": recommendation["positive_means"] in ("", "misbehavior"),
        "limits": limits_in_words(settings["alerts_per_day"], settings["money_per_day"]),
        # `recommend` decided: its choice was redrawn, and it takes pilots and stress runs.
        "is_of_recommend": recommendation["decision"] == "recommend" and recommendation["regret"]["n"] > 0,
        "cost_of_promise": _cost_of_promise(recommendation),
        "alerts_a_day": ""
        if alerts is None or daily is None
        else in_1000(daily * alerts, [daily * bound for bound in around] if around else None),
        "most_named": _NAMED,
        "all_named": maxsize,
        "options_with_auroc": with_auroc,
        "outranking": _outranking(recommendation),
        "blind_miss": _blind_miss(recommendation),
        "is_chance": bool(with_auroc) and is_chance,
        "inverted_options": inverted,
        "is_only_inverted": bool(inverted) and is_chance,
        "more_monitor": as_imported(recommendation["more"]["monitor"])[0] if recommendation["more"] else "",
        "rival_names": RIVALS,
        "named": lambda option: called(option["monitor"], option["prompt"], recommendation["options"]),
        "stress_answer": answer,
    }
    return _template().make_module(values)


def _blind_miss(recommendation: Recommendation) -> float | None:
    """The miss rate of the best shortcut check at 5 % false alarms; None where it is above a half."""
    missed = next((miss for far, miss in recommendation["shortcuts"]["reach"] if far == 0.05), 1.0)
    return missed if missed <= _MOST_MISSED else None


def _is_dear(recommendation: Recommendation) -> bool:
    """Return whether the chosen monitor is no cheaper than reading nothing on the calibration split."""
    option = named_option(recommendation)
    if option is None or not recommendation["is_calibrated"] or option["calibration_cost"] is None:
        return False
    blind = [rival["expected_cost"] for rival in recommendation["rivals"] if rival["name"] in RIVALS]
    least = min((cost for cost in blind if cost is not None), default=float("inf"))
    return option["calibration_cost"] >= least - 1e-9


def _outranking(recommendation: Recommendation) -> list[Option]:
    """List the monitors without a threshold that rank better than the recommended one, beyond intervals."""
    option = named_option(recommendation)
    if recommendation["decision"] != "recommend" or option is None or option["auroc_ci"] is None:
        return []
    others = [one for one in recommendation["options"] if one["reason"] and one["auroc_ci"]]
    return [one for one in others if one["auroc_ci"] and one["auroc_ci"][0] > option["auroc_ci"][1]]


def _runner_up(recommendation: Recommendation) -> Option | None:
    """Find the runner-up among the monitors that were chosen from."""
    second = recommendation["runner_up"], recommendation["runner_up_prompt"]
    return next(
        (option for option in recommendation["options"] if (option["monitor"], option["prompt"]) == second),
        None,
    )


def _cost_of_promise(recommendation: Recommendation) -> float | None:
    """Return the least cost that keeps the promise and the budget, where any threshold costs much less."""
    costs = [option["calibration_cost"] for option in recommendation["options"]]
    least = min((cost for cost in costs if cost is not None), default=None)
    unbound = recommendation["unbound_cost"]
    is_dearer = unbound is not None and least is not None and least > unbound and least >= _MUCH * unbound
    return least if is_dearer else None
