"""Who judges best for what it costs: the Pareto fronts of quality against cost per verdict."""

from collections.abc import Mapping, Sequence
from typing import Literal

from monitorbench.metrics.table import Numbers
from monitorbench.metrics.trade_off import pareto_front
from monitorbench.metrics.usage import UsageFacts, tokens_of

Cost = Literal["tokens", "seconds"]
"""Mean cost of an answer: tokens read and written, or seconds measured."""
Quality = Literal["auroc", "miss_rate_at_far_5"]
COSTS: tuple[Cost, ...] = ("tokens", "seconds")
QUALITIES: tuple[Quality, ...] = ("auroc", "miss_rate_at_far_5")

CostFronts = dict[Cost, dict[Quality, list[list[str]]]]
"""[monitor, prompt] of those on the front, for each cost and quality."""


def cost_per_verdict(taken: UsageFacts | None, *, is_baseline: bool) -> dict[Cost, float | None]:
    """Tokens and seconds of an answer: 0 for a baseline, None where not measured."""
    if is_baseline:
        return {"tokens": 0.0, "seconds": 0.0}
    if taken is None:
        return {"tokens": None, "seconds": None}
    return {"tokens": tokens_of(taken), "seconds": taken.get("seconds")}


def cost_fronts(
    judged: Sequence[tuple[str, str, Numbers]],
    costs: Mapping[tuple[str, str], Mapping[Cost, float | None]],
) -> CostFronts:
    """The front of each cost and quality over (monitor, prompt, numbers); `costs` is by monitor and prompt.

    On a front is what no other beats: none is as cheap and better, or as good and cheaper. What lacks the
    cost or the quality is on none.
    """
    fronts: CostFronts = {}
    for cost in COSTS:
        fronts[cost] = {}
        for quality in QUALITIES:
            points = [
                (costs[name, prompt][cost], loss(numbers[quality].value, quality))
                for name, prompt, numbers in judged
            ]
            fronts[cost][quality] = [list(judged[i][:2]) for i in pareto_front(points)]
    return fronts


def loss(value: float | None, quality: Quality) -> float | None:
    """The quality as a number that is better where it is lower."""
    if value is None:
        return None
    return 1 - value if quality == "auroc" else value
