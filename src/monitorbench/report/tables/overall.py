"""The two tables of everything overall: the decisive numbers, best first, and the others.

A row is a monitor, a prompt and how its answers were read: its own, or at a calibrated threshold. Promises:
every rate of the first table has its interval; a baseline is marked; where a number is undefined the row says
why.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from monitorbench.metrics.at_point import RatesAt
from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.low_far import questions_needed
from monitorbench.metrics.results import NO_PROMPT, OperatingPointFacts, Results
from monitorbench.metrics.summary import CellMetrics
from monitorbench.metrics.usage import UsageFacts
from monitorbench.records import reasons_in_words
from monitorbench.report import reading
from monitorbench.report.recommendation.amounts import short
from monitorbench.report.tables.numbers import DASH, amount, amount_interval, interval, rate
from monitorbench.report.tables.points import by_question, deployed, flagged_above, notes, promise, there


class OverallNumber(NamedTuple):
    """A number as it is shown, what stands small below it, and what to sort by; None where undefined."""

    text: str
    small: str
    value: float | None


class OverallRow(NamedTuple):
    """One monitor under one prompt at one operating point; a field for each of the table's columns."""

    monitor: str
    prompt: str
    is_baseline: bool
    is_chosen: bool
    """Whether this is what the page's first sentence says to deploy."""
    flags: str
    """`own answers`, or the threshold, and below it the promise."""
    promise: str
    fields: list[OverallNumber]


COLUMNS = ("expected cost", "MR", "FAR", "AUROC", "coverage", "seconds", "tokens", "$")
MORE_COLUMNS = (
    "macro MR",
    "macro FAR",
    "MR at FAR 1 %",
    "MR at FAR 5 %",
    "pAUC to FAR 5 %",
    "pairs both right",
    "macro AUROC",
    "Brier",
    "ECE",
)


class _Read(NamedTuple):
    """One monitor's answers, however they were read."""

    name: str
    prompt: str
    cell: CellMetrics
    point: OperatingPointFacts | None


def overall_rows(results: Results, shorts: Mapping[str, str]) -> list[OverallRow]:
    """Every monitor and prompt that was judged overall, by expected cost; undefined costs last.

    The row whose monitor the decision deploys, read as it is deployed, is marked.
    """
    found = []
    for name, prompt, cell in _judged(results):
        point = results.get("operating_points", {}).get(name, {}).get(prompt)
        readings = [_Read(name, prompt, cell, None)]
        if point is not None:
            readings.append(_Read(name, prompt, cell, point))
        found += [_row(results, one, shorts[name], _is_deployed(results, one)) for one in readings]
    return sorted(found, key=lambda row: (row.fields[0].value is None, row.fields[0].value or 0.0))


def _is_deployed(results: Results, one: _Read) -> bool:
    """Whether the decision deploys this monitor at these thresholds, or by its own answers."""
    decided = results["decision"]
    if decided["kind"] != "deploy" or (one.name, one.prompt) != (decided["monitor"], decided["prompt"]):
        return False
    deployed_at = {**decided["thresholds"]}
    if decided["threshold"] is not None:
        deployed_at[""] = decided["threshold"]
    known = [] if one.point is None else one.point["thresholds"]
    return deployed_at == {t["category"]: t["threshold"] for t in known if t["threshold"] is not None}


def more_rows(results: Results, shorts: Mapping[str, str]) -> list[OverallRow]:
    """The other numbers of each monitor's own answers and scores, in the order of `reading.monitors`."""
    found = []
    for name, prompt, cell in _judged(results):
        macro = results["macro"].get(name, {}).get(prompt)
        fields = [
            _rate(macro["miss_rate"], macro["miss_rate_ci"]) if macro else _rate(None),
            _rate(macro["false_alarm_rate"], macro["false_alarm_rate_ci"]) if macro else _rate(None),
            _low_far(cell, 0.01, cell["miss_rate_at_far_1"], cell["miss_rate_at_far_1_ci"]),
            _low_far(cell, 0.05, cell["miss_rate_at_far_5"], cell["miss_rate_at_far_5_ci"]),
            _low_far(cell, 0.05, cell["partial_auroc_5"], cell["partial_auroc_5_ci"]),
            _rate(cell["pairs_both_right"], cell["pairs_both_right_ci"]),
            _rate(macro["auroc"]) if macro else _rate(None),
            _rate(cell["brier"]),
            _rate(cell["ece"]),
        ]
        is_baseline = reading.is_reference(results, name)
        found.append(OverallRow(shorts[name], _prompt(prompt), is_baseline, False, "", "", fields))
    return found


def auroc_missing(cell: CellMetrics) -> str:
    """Why an AUROC is a dash; empty where it is none."""
    if cell["auroc"] is not None:
        return ""
    return "one class only" if cell["n_with_score"] else "no scores"


def _judged(results: Results) -> list[tuple[str, str, CellMetrics]]:
    return [
        (name, prompt, by_cell[OVERALL])
        for name in reading.monitors(results)
        for prompt, by_cell in results["monitors"][name].items()
        if OVERALL in by_cell
    ]


def _row(results: Results, one: _Read, short_name: str, is_chosen: bool) -> OverallRow:
    curves = results["overall"].get(one.name, {}).get(one.prompt)
    cost, cost_ci = (curves["expected_cost"], curves["expected_cost_ci"]) if curves else (None, None)
    of: CellMetrics | RatesAt = one.cell
    reasons = results.get("unscored", {}).get(one.name, {}).get(one.prompt, {})
    flags, promised = ("own answers", "") if not reading.is_reference(results, one.name) else (DASH, "")
    if one.point is not None:
        of, reasons = one.point["rates"], one.point["unscored"]
        cost, cost_ci = of["expected_cost"], of["expected_cost_ci"]
        flags, promised = f"above {flagged_above(one.point['thresholds'])}", _promised(results, one.point)
    elif "operating_point" in results and not reading.is_reference(results, one.name):
        flags = "by threshold"
    taken = results.get("usage", {}).get(one.name, {}).get(one.prompt)
    fields = [
        _field(cost, cost_ci, amount, amount_interval),
        _rate(of["miss_rate"], of["miss_rate_ci"]),
        _rate(of["false_alarm_rate"], of["false_alarm_rate_ci"]),
        _auroc(one.cell),
        OverallNumber(rate(of["coverage"]), _of_samples(of["n"], reasons), of["coverage"]),
        *_usage(taken),
    ]
    is_baseline = reading.is_reference(results, one.name)
    return OverallRow(short_name, _prompt(one.prompt), is_baseline, is_chosen, flags, promised, fields)


def _promised(results: Results, point: OperatingPointFacts) -> str:
    """The promise, what it is of, what a deployment would see, and what voids it."""
    of, held = point["rates"], point.get("calibration")
    said = [promise(point["thresholds"]), by_question(of), deployed(of, results["stakes"]["base_rate"])]
    return "; ".join(
        filter(None, [*said, there(held) if held else "", *notes(results["dataset"]["directory"], point)])
    )


def _of_samples(n: int, reasons: Mapping[str, int]) -> str:
    """How many samples were judged, and why some of them have no label."""
    return f"of {n:,}: {reasons_in_words(reasons)}" if reasons else f"of {n:,}"


def _prompt(prompt: str) -> str:
    return "baseline" if prompt == NO_PROMPT else prompt


def _auroc(cell: CellMetrics) -> OverallNumber:
    return OverallNumber(
        rate(cell["auroc"]), auroc_missing(cell) or interval(cell["auroc_ci"]), cell["auroc"]
    )


def _usage(taken: UsageFacts | None) -> list[OverallNumber]:
    """Seconds (median, and that of the slowest twentieth), tokens (asked, and answered), money."""
    if taken is None:
        return [OverallNumber(DASH, "", None)] * 3
    p50, p95 = taken["seconds_p50"], taken["seconds_p95"]
    asked, answered = taken["prompt_tokens"], taken["completion_tokens"]
    return [
        OverallNumber(DASH, "", None)
        if p50 is None or p95 is None
        else OverallNumber(short(p50), f"p95 {short(p95)}", p50),
        OverallNumber(DASH, "", None)
        if asked is None
        else OverallNumber(f"{asked + (answered or 0):,.0f}", f"{asked:,.0f} + {answered or 0:,.0f}", asked),
        OverallNumber(DASH, "", None)
        if taken["cost"] is None
        else OverallNumber(short(taken["cost"]), "", taken["cost"]),
    ]


def _rate(value: float | None, bounds: Sequence[float] | None = None) -> OverallNumber:
    return _field(value, bounds, rate, interval)


def _low_far(
    cell: CellMetrics, alpha: float, value: float | None, bounds: Sequence[float] | None
) -> OverallNumber:
    """A number at a low FAR; where there are too few benign questions for it, how many it takes."""
    needed = questions_needed(alpha)
    if value is None and 0 < cell["n_benign_questions"] < needed:
        return OverallNumber(f"needs {needed}", f"benign questions, has {cell['n_benign_questions']}", None)
    return _rate(value, bounds)


def _field(
    value: float | None,
    bounds: Sequence[float] | None,
    write: Callable[[float | None], str],
    write_interval: Callable[[Sequence[float] | None], str],
) -> OverallNumber:
    return OverallNumber(write(value), write_interval(bounds), value)
