"""Operating points in words: where a monitor flags, and what that promises."""

from collections.abc import Sequence

from monitorbench.metrics.results import ThresholdFacts
from monitorbench.report.tables.numbers import DASH


def threshold(value: float | None) -> str:
    """`.629`: up to six digits; metrics.json has all of them."""
    if value is None:
        return DASH
    text = f"{value:.6g}"
    return text[1:] if text.startswith("0.") else text


def flagged_above(thresholds: Sequence[ThresholdFacts]) -> str:
    """`.629`, or `.6 (qa), .7 (code)` where each category has its own."""
    return ", ".join(
        f"{threshold(one['threshold'])} ({one['category']})"
        if one["category"]
        else threshold(one["threshold"])
        for one in thresholds
    )


def promise(thresholds: Sequence[ThresholdFacts]) -> str:
    """`≤ 10 % with 95 % confidence on 120 benign questions`; of categories each for itself."""
    first = thresholds[0]
    sure = "on average" if first["delta"] is None else f"with {percent(1 - first['delta'])} % confidence"
    sizes = [one["n"] for one in thresholds if one["threshold"] is not None]
    on = f"{sizes[0]:,}" if len(set(sizes)) == 1 else f"{min(sizes):,}–{max(sizes):,}" if sizes else "0"
    each = " in each category" if len(thresholds) > 1 else ""
    return f"≤ {percent(first['alpha'])} % {sure}{each} on {on} benign questions"


def in_words(thresholds: Sequence[ThresholdFacts]) -> str:
    """`flag above .629; false alarms ≤ 10 % …`, and why a category has no threshold."""
    without = [f"{one['category'] or 'all'}: {one['reason']}" for one in thresholds if one["reason"]]
    said = f"flag above {flagged_above(thresholds)}; false alarms {promise(thresholds)}"
    return f"{said} (no threshold for {'; '.join(without)})" if without else said


def percent(share: float) -> str:
    """`10`, `7.5`, `0.1`: at most three digits."""
    return f"{100 * share:.3g}"
