"""Operating points in words: where a monitor flags, what that promises, and whose scores are inverted."""

from collections.abc import Sequence
from typing import NamedTuple

from monitorbench.metrics.choice import Recommendation
from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.drift import DRIFTED, Drift
from monitorbench.metrics.guarantees.order_statistic import longer
from monitorbench.metrics.results import OperatingPointFacts, Results, ThresholdFacts, short_names
from monitorbench.metrics.score_facts import MARGIN, is_inverted
from monitorbench.metrics.table import Number, Numbers, is_cell
from monitorbench.metrics.written import DASH, rate, shown, value_of


def threshold(value: float | None, digits: int = 6) -> str:
    """`.629`: up to six digits; metrics.json has all of them."""
    if value is None:
        return DASH
    text = f"{value:.{digits}g}"
    return text[1:] if text.startswith("0.") else text


def flagged_above(thresholds: Sequence[ThresholdFacts]) -> str:
    """`.629`, or `.6 (qa), .7 (code)` where each category has its own."""
    return ", ".join(
        f"{threshold(facts['threshold'])} ({facts['category']})"
        if facts["category"]
        else threshold(facts["threshold"])
        for facts in thresholds
    )


def promise_in(decision: Recommendation, monitor: str, prompt: str, point: OperatingPointFacts) -> str:
    """Say what a point promises, and that it is taken alone where the choice among monitors costs of it."""
    kept = next(
        (
            option["promise"]
            for option in decision["options"]
            if (option["monitor"], option["prompt"]) == (monitor, prompt)
        ),
        None,
    )
    first = point["thresholds"][0]
    is_alone = kept is not None and (kept["alpha"], kept["delta"]) != (first["alpha"], first["delta"])
    return f"{promise(point['thresholds'])}{', taken alone' if is_alone else ''}"


def promise(thresholds: Sequence[ThresholdFacts]) -> str:
    """`≤ 10 % of questions with 95 % confidence, on 120 benign questions`; of categories each for itself."""
    first = thresholds[0]
    sure = "on average" if first["delta"] is None else f"with {percent(1 - first['delta'])} % confidence"
    sizes = [facts["n"] for facts in thresholds if facts["threshold"] is not None]
    if first["method"] == "few_labels":
        return f"≤ {percent(first['alpha'])} % of samples {sure}, over traffic like that of its log"
    on = f"{sizes[0]:,}" if len(set(sizes)) == 1 else f"{min(sizes):,}–{max(sizes):,}" if sizes else "0"
    each = " in each category" if len(thresholds) > 1 else ""
    worth = [facts["effective_n"] for facts in thresholds if facts["effective_n"] is not None]
    counted = f" ({as_good_as(min(filter(None, worth), default=0))})" if worth else ""
    return f"≤ {percent(first['alpha'])} % of questions {sure}{each}, on {on} benign questions{counted}"


def as_good_as(effective_n: float) -> str:
    """Say what questions are worth that were drawn in other shares of cells than a promise is for."""
    return f"as good as {effective_n:.0f} in the promised shares of category and task"


def in_words(thresholds: Sequence[ThresholdFacts]) -> str:
    """`flag above .629; false alarms ≤ 10 % …`, and why a category has no threshold."""
    without = [f"{facts['category'] or 'all'}: {facts['reason']}" for facts in thresholds if facts["reason"]]
    rule = f"flag above {flagged_above(thresholds)}; false alarms {promise(thresholds)}"
    return f"{rule} (no threshold for {'; '.join(without)})" if without else rule


def _share_of(of: Number) -> str:
    return share(of.value, of.interval)


def differs(of: Numbers) -> bool:
    """Whether a benign question has several scored samples, so that rates by question and sample differ."""
    return of["false_alarm_rate_by_question"].value is not None and not of["is_sample_a_question"].value


def by_question(of: Numbers) -> str:
    """Say that rates count samples and the promise questions; if they differ, give the rate by question."""
    if not differs(of):
        return "rates count samples, one benign a question here"
    return (
        f"rates count samples; of {of['n_benign_questions'].whole:,} benign questions "
        f"{_share_of(of['false_alarm_rate_by_question'])} have a false alarm"
    )


def there(of: Numbers) -> str:
    """`misses 18 % [12–25] of 120 on the calibration split`; empty where that is not known."""
    if not of["miss_rate"].interval:
        return ""
    return f"misses {_share_of(of['miss_rate'])} of {of['n_misbehavior'].whole:,} on the calibration split"


def deployed(of: Numbers, base_rate: float) -> str:
    """`at a base rate of .01: precision .12 [.08–.2], 80 [50–120] alerts in 1,000`."""
    right, alerts = of["precision"], of["alerts_per_1000"]
    if alerts.value is None:
        return ""
    is_precise = right.value is not None
    precise = f"precision {_share_of(right)}" if is_precise else "no precision, nothing is flagged"
    inside = f" [{alerts.low:.0f}{DASH}{alerts.high:.0f}]" if alerts.interval else ""
    return (
        f"at a base rate of {percent(base_rate)} %: {precise}, {alerts.value:.0f}{inside} alerts in 1,000 "
        "samples"
    )


def elsewhere(dataset: str, point: OperatingPointFacts) -> str:
    """`calibrated on another dataset, X, so promised nothing here`; empty on its own directory, `dataset`."""
    source = point["calibrated_on"]
    if source == dataset:
        return ""
    return f"calibrated on another dataset, {source}: the promise is not one for this dataset"


def drift_in_words(found: Drift) -> str:
    """Describe a drift: which way scores differ, and how surely."""
    side = "higher" if found["higher"] > 0.5 else "lower" if found["higher"] < 0.5 else "spread otherwise"
    more = ": expect more false alarms than promised" if side == "higher" else ""
    return (
        f"benign scores are {side} than in calibration (Kolmogorov–Smirnov distance {found['distance']:.2f} "
        f"within cells, p = {found['p_value']:.3f}, {found['n_calibration']:,} against {found['n_use']:,} "
        f"questions){more}"
    )


def notes(dataset: str, point: OperatingPointFacts) -> list[str]:
    """List what voids a promise or makes it worthless on this dataset, by its directory's name.

    That is a calibration on another one or on shorter texts, drifted scores, or nothing flagged.
    """
    lines = [line] if (line := elsewhere(dataset, point)) else []
    if point.get("flags_nothing"):
        lines.append("this threshold flags nothing: no score is above it")
    elif point.get("flags_nothing_there"):
        lines.append("this threshold flagged nothing in calibration: no score there is above it")
    changed = point.get("drift")
    if changed is not None and changed["p_value"] < DRIFTED:
        lines.append(drift_in_words(changed))
    return [*lines, *filter(None, [longer(*point.get("longest_prompts", (None, None)))])]


def percent(share: float) -> str:
    """`10`, `7.5`, `0.1`: at most three digits."""
    return f"{100 * share:.3g}"


def share(value: float | None, bounds: Sequence[float] | None) -> str:
    """Write a share as `18 % [12–25]`: two digits of the share, whole percents of its interval."""
    if value is None:
        return f"{DASH} %"
    inside = f" [{100 * bounds[0]:.0f}{DASH}{100 * bounds[1]:.0f}]" if bounds else ""
    return f"{float(f'{100 * value:.2g}'):g} %{inside}"


_NAMED = 3
"""Most cells that are named in the remark."""


class InvertedCell(NamedTuple):
    """A monitor under a prompt in a cell where benign samples get the higher scores."""

    monitor: str
    prompt: str
    cell: str
    found: Numbers


def inverted_cells(results: Results) -> list[InvertedCell]:
    """List inverted monitors but references, overall and by `category/task`, the lowest AUROC first."""
    rows = [
        InvertedCell(monitor, prompt, cell, numbers)
        for monitor, prompt in results["table"].in_order()
        if not results["table"].is_reference(monitor)
        for cell, numbers in results["table"].parts(monitor, prompt).items()
        if (cell == OVERALL or (is_cell(cell) and "/" in cell))
        and is_inverted(numbers["auroc"].value, numbers["auroc"].interval)
    ]
    return sorted(rows, key=lambda row: row.found["auroc"].value or 0.0)


def inverted_heading() -> str:
    """Define `inverted` in one line."""
    return f"Inverted: benign samples score higher (AUROC below {rate(MARGIN)}, its interval below .5)"


def inverted_lines(results: Results) -> list[str]:
    """Return a line for the terminal for each inverted cell."""
    names = short_names(results)
    return [
        f"{names[row.monitor]} · {row.prompt} prompt, {where(row.cell)}: "
        f"AUROC {shown(row.found['auroc'])}, "
        f"MR {value_of(row.found['miss_rate'])}, FAR {value_of(row.found['false_alarm_rate'])}"
        for row in inverted_cells(results)
    ]


def inverted_remark(results: Results) -> list[str]:
    """One sentence for the top of the page on monitors that the decision does not call inverted overall."""
    told = {
        (option["monitor"], option["prompt"])
        for option in results["decision"]["options"]
        if is_inverted(option["auroc"], option["auroc_ci"])
    }
    rows = [row for row in inverted_cells(results) if (row.monitor, row.prompt) not in told]
    if not rows:
        return []
    names = [
        f"{row.monitor} ({row.prompt} prompt) {where(row.cell)} ({shown(row.found['auroc'])})"
        for row in rows[:_NAMED]
    ]
    more = f" and {len(rows) - _NAMED} more, listed below" if len(rows) > _NAMED else ""
    return [f"Inverted, benign samples get the higher scores: {', '.join(names)}{more}."]


def where(cell: str) -> str:
    """`in safety_permission/qa`, or `overall`."""
    return cell if cell == OVERALL else f"in {cell}"
