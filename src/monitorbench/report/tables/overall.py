"""The two tables of everything overall: the decisive numbers, best first, and the others.

A row is a monitor, a prompt and how its answers were read: its own, or at a calibrated threshold. Promises:
every rate of the first table has its interval; a baseline is marked; where a number is undefined the row says
why. The cost of a verdict beside its quality is for the terminal; below stand whose answers are no label, and
whose scores are bounds, contradict their label or are mostly equal.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.cost_fronts import Cost, Quality, SentOn, UsageFacts, cost_fronts, cost_per_verdict
from monitorbench.metrics.points_in_words import (
    by_question,
    deployed,
    flagged_above,
    notes,
    promise_in,
    there,
    threshold,
)
from monitorbench.metrics.registry import BY_NAME
from monitorbench.metrics.results import OperatingPointFacts, Results, numbers_at, short_names
from monitorbench.metrics.score_facts import doubts, share_of
from monitorbench.metrics.table import MACRO, NO_PROMPT, Number, Numbers
from monitorbench.metrics.written import DASH, interval_of, shown, value_of
from monitorbench.records import Split, reasons_in_words
from monitorbench.scoring.recommendation.words import short


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


_METRICS = ("expected_cost", "miss_rate", "false_alarm_rate", "auroc", "coverage")
_MORE = (
    (MACRO, "miss_rate"),
    (MACRO, "false_alarm_rate"),
    (OVERALL, "miss_rate_at_far_1"),
    (OVERALL, "miss_rate_at_far_5"),
    (OVERALL, "partial_auroc_5"),
    (OVERALL, "pairs_both_right"),
    (MACRO, "auroc"),
    (OVERALL, "brier"),
    (OVERALL, "ece"),
)
COLUMNS = (*(BY_NAME[name].heading for name in _METRICS), "seconds", "tokens", "$")
MORE_COLUMNS = tuple(f"{'macro ' if cell == MACRO else ''}{BY_NAME[name].heading}" for cell, name in _MORE)
_UNDEFINED = OverallNumber(DASH, "", None)


def overall_rows(results: Results, shorts: Mapping[str, str]) -> list[OverallRow]:
    """Every monitor and prompt that was judged overall, by expected cost; undefined costs last.

    The row whose monitor the decision deploys, read as it is deployed, is marked.
    """
    rows = []
    for name, prompt in results["table"].in_order():
        point = results.get("operating_points", {}).get(name, {}).get(prompt)
        for operating_point in [None] if point is None else [None, point]:
            rows.append(_row(results, name, prompt, operating_point, shorts[name]))
    return sorted(rows, key=lambda row: (row.fields[0].value is None, row.fields[0].value or 0.0))


def _is_deployed(results: Results, name: str, prompt: str, point: OperatingPointFacts | None) -> bool:
    """Whether the decision deploys this monitor at these thresholds, or by its own answers."""
    decided = results["decision"]
    if decided["decision"] != "recommend" or (name, prompt) != (decided["monitor"], decided["prompt"]):
        return False
    deployed_at = {**decided["thresholds"]}
    if decided["threshold"] is not None:
        deployed_at[""] = decided["threshold"]
    thresholds = [] if point is None else point["thresholds"]
    return deployed_at == {t["category"]: t["threshold"] for t in thresholds if t["threshold"] is not None}


def more_rows(results: Results, shorts: Mapping[str, str]) -> list[OverallRow]:
    """List more numbers of each monitor's own answers and scores, in the order of `Table.monitors`."""
    rows = []
    for name, prompt in results["table"].in_order():
        parts = results["table"].parts(name, prompt)
        fields = [_field(parts[cell][metric]) if cell in parts else _UNDEFINED for cell, metric in _MORE]
        is_baseline = results["table"].is_reference(name)
        rows.append(OverallRow(shorts[name], _prompt(prompt), is_baseline, False, "", "", fields))
    return rows


def _row(
    results: Results, name: str, prompt: str, point: OperatingPointFacts | None, short_name: str
) -> OverallRow:
    of: Numbers = results["table"].parts(name, prompt)[OVERALL]
    reasons = results["unscored"].get(name, {}).get(prompt, {})
    is_baseline = results["table"].is_reference(name)
    flags, promised = ("a score from .5", "") if is_baseline else _read_by_answers(results, name, prompt)
    if point is not None:
        of, reasons = {**of, **numbers_at(results, name, prompt)}, point["unscored"]
        flags, promised = f"above {flagged_above(point['thresholds'])}", _promised(results, name, prompt)
    elif "operating_point" in results and not is_baseline:
        flags = "by threshold"
    fields = [_field(of[metric]) if metric in of else _UNDEFINED for metric in _METRICS]
    why = f": {reasons_in_words(reasons).replace('_', ' ')}" if reasons else ""
    fields[-1] = fields[-1]._replace(small=f"of {of['n'].whole:,}{why}")
    fields += _usage(results["usage"].get(name, {}).get(prompt))
    is_chosen = _is_deployed(results, name, prompt, point)
    return OverallRow(short_name, _prompt(prompt), is_baseline, is_chosen, flags, promised, fields)


def _read_by_answers(results: Results, name: str, prompt: str) -> tuple[str, str]:
    """Say how a monitor's own answers were read, and that nothing is promised where it has no threshold."""
    has_point = prompt in results.get("operating_points", {}).get(name, {})
    return answers_in_words(results, [name], prompt), "" if has_point else "no threshold is calibrated"


def answers_in_words(results: Results, names: Sequence[str], prompt: str) -> str:
    """Say what the monitors' answers are: their own, or scores from `import.flag_from` on."""
    facts = [results["scores"].get(name, {}).get(prompt) for name in names]
    flagged_from = {None if of_scores is None else of_scores.get("flagged_from") for of_scores in facts}
    if len(flagged_from) != 1 or (score := flagged_from.pop()) is None:
        return "own answers"
    return f"flagged from a score of {threshold(score)}"


def _promised(results: Results, name: str, prompt: str) -> str:
    """The promise, what it is of, what a deployment would see, and what voids it."""
    point = results["operating_points"][name][prompt]
    of, calibration = (numbers_at(results, name, prompt, split) for split in (Split.TEST, Split.CALIBRATION))
    promised = promise_in(results["decision"], name, prompt, point)
    clauses = [promised, by_question(of), deployed(of, results["stakes"]["base_rate"])]
    return "; ".join(
        filter(
            None,
            [
                *clauses,
                there(calibration) if calibration else "",
                *notes(results["dataset"]["directory"], point),
            ],
        )
    )


def _prompt(prompt: str) -> str:
    return "baseline" if prompt == NO_PROMPT else prompt


def _usage(taken: UsageFacts | None) -> list[OverallNumber]:
    """Seconds (median, and that of the slowest twentieth), tokens (asked, and answered), money."""
    if taken is None:
        return [_UNDEFINED] * 3
    p50, p95 = taken["seconds_p50"], taken["seconds_p95"]
    n_prompt, answered = taken["prompt_tokens"], taken["completion_tokens"]
    return [
        _UNDEFINED if p50 is None or p95 is None else OverallNumber(short(p50), f"p95 {short(p95)}", p50),
        _UNDEFINED
        if n_prompt is None
        else OverallNumber(
            f"{n_prompt + (answered or 0):,.0f}", f"{n_prompt:,.0f} + {answered or 0:,.0f}", n_prompt
        ),
        _UNDEFINED if taken["cost"] is None else OverallNumber(short(taken["cost"]), "", taken["cost"]),
    ]


def _field(number: Number) -> OverallNumber:
    return OverallNumber(value_of(number), number.missing or interval_of(number), number.value)


class Costed(NamedTuple):
    """One monitor under one prompt: what a verdict took, and its numbers over all samples."""

    monitor: str
    prompt: str
    costs: Mapping[Cost, float | None]
    numbers: Numbers
    sent_on: SentOn | None


def costed(results: Results) -> list[Costed]:
    """Every monitor and prompt, baselines too, in the order of `Table.monitors`."""
    rows = []
    for name, prompt in results["table"].in_order():
        usage = results["usage"].get(name, {}).get(prompt)
        costs = cost_per_verdict(usage, is_baseline=results["table"].is_reference(name))
        sent_on = usage.get("sent_on") if usage else None
        rows.append(Costed(name, prompt, costs, results["table"].parts(name, prompt)[OVERALL], sent_on))
    return rows


def measured(results: Results) -> list[Costed]:
    """Return the monitors, references left out, for which some cost was measured."""
    return [
        row
        for row in costed(results)
        if not results["table"].is_reference(row.monitor) and any(row.costs.values())
    ]


def cost_row(one: Costed) -> tuple[str, str, str, str]:
    """Tokens, seconds, AUROC and MR at FAR 5 %: at most 8, 8, 13 and 13 characters."""
    numbers = one.numbers
    return (
        number(one.costs["tokens"]),
        number(one.costs["seconds"]),
        shown(numbers["auroc"]),
        shown(numbers["miss_rate_at_far_5"]),
    )


def number(value: float | None) -> str:
    """`251`, `1,204`, `0.25`, `0.00012`: three digits below a hundred, whole ones above it."""
    if value is None:
        return DASH
    return f"{value:,.0f}" if value >= 100 else f"{float(f'{value:.3g}'):.10f}".rstrip("0").rstrip(".")


def sent_on_in_words(sent_on: SentOn) -> str:
    """`asks its second judge about 5.8 % of the samples [4.1–7.9]; budget: 6 %`."""
    inside = ""
    if sent_on["share_ci"]:
        low, high = sent_on["share_ci"]
        inside = f" [{100 * low:.1f}{DASH}{100 * high:.1f}]"
    budget = f"; budget: {100 * sent_on['budget']:.3g} %" if sent_on["budget"] is not None else ""
    return f"asks its second judge about {100 * sent_on['share']:.1f} % of the samples{inside}{budget}"


def on_the_front(results: Results, cost: Cost, quality: Quality) -> list[tuple[str, str]]:
    """(monitor, prompt) of a front, the cheapest first."""
    names = cost_fronts(results["table"], results["usage"])[cost][quality]
    front = [row for row in costed(results) if [row.monitor, row.prompt] in names]
    front.sort(key=lambda row: row.costs[cost] or 0.0)
    return [(row.monitor, row.prompt) for row in front]


def unscored_lines(results: Results) -> list[str]:
    """Return a line for each monitor and prompt with unscored answers: how many of all, and why."""
    names, lines = short_names(results), []
    for monitor, prompt in results["table"].in_order():
        reasons = results["unscored"].get(monitor, {}).get(prompt, {})
        if n := sum(reasons.values()):
            of_all = share_of(n, results["table"].parts(monitor, prompt)[OVERALL]["n"].whole)
            why = reasons_in_words(reasons).replace("_", " ")
            lines.append(f"{names[monitor]} · {prompt} prompt: {of_all}: {why}")
    return lines


def doubt_lines(results: Results) -> list[str]:
    """Return a line for each kind of doubtful scores."""
    names = short_names(results)
    return [
        f"{names[monitor]} · {prompt} prompt: {doubt}"
        for monitor in results["table"].monitors()
        for prompt, facts in results["scores"].get(monitor, {}).items()
        for doubt in doubts(facts)
    ]
