"""Usage of a monitor's answer: seconds, tokens, money."""

from typing import NotRequired, TypedDict

import numpy as np

from monitorbench.metrics.bootstrap import FloatArray


class SentOn(TypedDict):
    """The share of the samples that a cascade's second judge was asked about."""

    budget: float | None
    """The share that was asked for, at most, on the calibration split; None where the band was given."""
    share: float
    """The share here."""
    share_ci: list[float] | None
    """95 %, with whole questions as the evidence; None in older files."""


class UsageFacts(TypedDict):
    """Means and quantiles over the samples that were answered; None where the log knows nothing of it."""

    n: int
    """Answers that are counted."""
    seconds_p50: float | None
    """Measured for each sample; of a batch each answer has its share as its engine measured it."""
    seconds_p95: float | None
    prompt_tokens: float | None
    """Mean."""
    completion_tokens: float | None
    """Mean, the tokens of thoughts included."""
    cost: float | None
    """Mean, in the currency of the engine's prices; None without prices."""
    seconds: NotRequired[float | None]
    """Mean, which says what many answers take, where few of them take most of it; absent in older files."""
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
        completion_tokens=_mean(completion_tokens),
        cost=_mean(cost),
        seconds=_mean(seconds),
    )


def _mean(values: FloatArray) -> float | None:
    return float(values.mean()) if values.any() else None
