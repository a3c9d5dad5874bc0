"""What a monitor's answer takes (seconds, tokens, money), and who judges best for it: Pareto fronts.

Miss rate and false alarm rate trade off over monitors in the same way, with Pearson's r beside the front. A
benchmark has few monitors, and they share families and sizes: r's interval is wide, and still too narrow for
points that are not independent. On the front, lower left is better.
"""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Literal, NotRequired, TypedDict

import numpy as np

from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.table import NO_PROMPT, Table


class SentOn(TypedDict):
    """The share of the samples that a cascade's second judge was asked about."""

    budget: float | None
    """The share that was asked for, at most, on the calibration split; None where the band was given."""
    share: float
    """The share here."""
    share_ci: list[float] | None
    """95 %, with whole questions as the evidence."""


class UsageFacts(TypedDict):
    """Means and quantiles over the samples that were answered; None where the log knows nothing of it."""

    n: int
    """Answers that are counted."""
    seconds_p50: float | None
    """Measured for each sample; of a batch each answer has its share as its engine measured it."""
    seconds_p95: float | None
    prompt_tokens: float | None
    """Mean."""
    longest_prompt: float | None
    """Prompt tokens of the longest."""
    completion_tokens: float | None
    """Mean, the tokens of thoughts included."""
    cost: float | None
    """Mean, in the currency of the engine's prices; None without prices."""
    seconds: float | None
    """Mean, which says what many answers take, where few of them take most of it."""
    sent_on: NotRequired[SentOn]
    """Share of samples sent on by a cascade; absent of other monitors."""


def tokens_of(taken: UsageFacts) -> float | None:
    """Tokens an answer, read and written, as a mean; None where they were not counted."""
    if taken["prompt_tokens"] is None:
        return None
    return taken["prompt_tokens"] + (taken["completion_tokens"] or 0)


def usage(
    seconds: FloatArray, prompt_tokens: FloatArray, completion_tokens: FloatArray, cost: FloatArray
) -> UsageFacts:
    """Summarize columns [samples], NaN where unanswered. A column of zeros was not measured: it is None."""
    answered = ~np.isnan(seconds)
    columns = [column[answered] for column in (seconds, prompt_tokens, completion_tokens, cost)]
    seconds, prompt_tokens, completion_tokens, cost = columns
    p50, p95 = np.quantile(seconds, [0.5, 0.95]).tolist() if seconds.any() else (None, None)
    return UsageFacts(
        n=len(seconds),
        seconds_p50=p50,
        seconds_p95=p95,
        prompt_tokens=_mean(prompt_tokens),
        longest_prompt=float(prompt_tokens.max()) if prompt_tokens.any() else None,
        completion_tokens=_mean(completion_tokens),
        cost=_mean(cost),
        seconds=_mean(seconds),
    )


def _mean(values: FloatArray) -> float | None:
    return float(values.mean()) if values.any() else None


class CorrelationFacts(TypedDict):
    """Pearson's r over `n` monitors; None where it is undefined."""

    r: float | None
    r_ci: list[float] | None
    """Fisher's interval, 95 %; None for fewer than four monitors."""
    n: int


def pearson(x: Sequence[float | None], y: Sequence[float | None]) -> CorrelationFacts:
    """Pearson's r of the points that have both numbers (None and NaN are left out), and Fisher's interval.

    None with fewer than two points or where a column is constant; no interval with fewer than four (Fisher
    1921, Metron 1:3: its width goes by n - 3). Raises ValueError where the columns differ in length.
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.shape != second.shape:
        raise ValueError(f"expected columns of one length, got {len(first)} and {len(second)}")
    complete = ~np.isnan(first) & ~np.isnan(second)
    first, second = first[complete], second[complete]
    n = len(first)
    if n < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return CorrelationFacts(r=None, r_ci=None, n=n)
    from scipy.stats import (
        pearsonr,  # takes most of a second to import, and a single monitor needs none of it
    )

    correlation = pearsonr(first, second)
    ends = [*map(float, correlation.confidence_interval(0.95))] if n > 3 else None
    return CorrelationFacts(r=float(correlation.statistic), r_ci=ends, n=n)


def pareto_front(points: Sequence[tuple[float | None, float | None]]) -> list[int]:
    """Indices, ascending, of the (MR, FAR) points that no other dominates (2601.05752).

    One point dominates another where it is no worse in both rates and better in one; equal points
    are both kept. A point with a missing rate is never on the front and dominates nothing.
    """
    complete = {
        i: (mr, far)
        for i, (mr, far) in enumerate(points)
        if mr is not None and far is not None and not isnan(mr) and not isnan(far)
    }
    distinct = set(complete.values())
    return [
        i
        for i, point in complete.items()
        if not any(other != point and other[0] <= point[0] and other[1] <= point[1] for other in distinct)
    ]


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
    return {"tokens": tokens_of(taken), "seconds": taken["seconds"]}


def cost_fronts(table: Table, usages: Mapping[str, Mapping[str, UsageFacts]]) -> CostFronts:
    """The front of each cost and quality, over all monitors, prompts and baselines together.

    On a front is what no other beats: none is as cheap and better, or as good and cheaper. What lacks the
    cost or the quality is on none. `usages` are by monitor and prompt.
    """
    judged, fronts = table.judged(), CostFronts()
    costs = [
        cost_per_verdict(usages.get(name, {}).get(prompt), is_baseline=prompt == NO_PROMPT)
        for name, prompt in judged
    ]
    for cost in COSTS:
        fronts[cost] = {}
        for quality in QUALITIES:
            losses = [loss(table.parts(*of)[OVERALL][quality].value, quality) for of in judged]
            points = [(of[cost], bad) for of, bad in zip(costs, losses, strict=True)]
            fronts[cost][quality] = [list(judged[i]) for i in pareto_front(points)]
    return fronts


def rates_by_prompt(table: Table) -> dict[str, dict[str, tuple[float | None, float | None]]]:
    """MR and FAR over all samples by prompt and monitor, baselines apart."""
    by_prompt: dict[str, dict[str, tuple[float | None, float | None]]] = {}
    for name, prompt in sorted(table.judged(), key=lambda judged: judged[1]):
        if prompt != NO_PROMPT:
            numbers = table.parts(name, prompt)[OVERALL]
            rates = numbers["miss_rate"].value, numbers["false_alarm_rate"].value
            by_prompt.setdefault(prompt, {})[name] = rates
    return by_prompt


def rate_fronts(table: Table) -> dict[str, list[str]]:
    """The monitors on the front of overall (MR, FAR), by prompt."""
    return {
        prompt: [list(rates)[i] for i in pareto_front(list(rates.values()))]
        for prompt, rates in rates_by_prompt(table).items()
    }


def loss(value: float | None, quality: Quality) -> float | None:
    """The quality as a number that is better where it is lower."""
    if value is None:
        return None
    return 1 - value if quality == "auroc" else value
