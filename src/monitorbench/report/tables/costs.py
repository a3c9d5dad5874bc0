"""Cost of a verdict beside its quality: for the terminal, and in words."""

from collections.abc import Mapping
from typing import NamedTuple

from monitorbench.metrics import reading
from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.cost_fronts import Cost, Quality, cost_per_verdict
from monitorbench.metrics.results import Results
from monitorbench.metrics.table import Numbers
from monitorbench.metrics.usage import SentOn
from monitorbench.metrics.written import DASH, shown


class Costed(NamedTuple):
    """One monitor under one prompt: what a verdict took, and its numbers over all samples."""

    monitor: str
    prompt: str
    costs: Mapping[Cost, float | None]
    numbers: Numbers
    sent_on: SentOn | None


def costed(results: Results) -> list[Costed]:
    """Every monitor and prompt, baselines too, in the order of `reading.monitors`."""
    rows = []
    for name, prompt in reading.judged(results):
        usage = results.get("usage", {}).get(name, {}).get(prompt)
        costs = cost_per_verdict(usage, is_baseline=reading.is_reference(results, name))
        sent_on = usage.get("sent_on") if usage else None
        rows.append(Costed(name, prompt, costs, results["table"].parts(name, prompt)[OVERALL], sent_on))
    return rows


def measured(results: Results) -> list[Costed]:
    """Return the monitors, references left out, for which some cost was measured."""
    return [
        row
        for row in costed(results)
        if not reading.is_reference(results, row.monitor) and any(row.costs.values())
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
    """(monitor, prompt) of a front, the cheapest first; empty where the file has no fronts."""
    fronts = results.get("cost_fronts")
    if fronts is None:
        return []
    names = {(monitor, prompt) for monitor, prompt in fronts[cost][quality]}
    front = [row for row in costed(results) if (row.monitor, row.prompt) in names]
    front.sort(key=lambda row: row.costs[cost] or 0.0)
    return [(row.monitor, row.prompt) for row in front]
