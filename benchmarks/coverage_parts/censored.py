"""Scores of an endpoint that reports its likeliest tokens alone: what a label outside of them costs.

The truth is the score from both labels' own probabilities. A label outside the alternatives had no mass
before; now the least probability that is reported stands for it (`prompts.label_logprobs`).
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coverage_parts.table import Table
from monitorbench.config.monitor import LabelWords
from monitorbench.metrics.auroc import auroc
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.low_far import miss_rate_at_far
from monitorbench.prompts.label_logprobs import label_score

WORDS = LabelWords(misbehavior="yes", benign="no")
ALTERNATIVES = 20
SPREADS = (6.0, 12.0, 20.0)
"""Of log P(yes)/P(no) within a label, in nats: how confident a monitor is."""
FOLLOWS = (0.5, 0.0)
"""The share of that by which the answer moves away from the other tokens, too: half where the margin is in
both labels' logits alike, none where the other tokens lie at one distance below whatever is answered."""


class _Scores(NamedTuple):
    """[samples] each; `before` and `now` are NaN where neither label is reported."""

    truth: FloatArray
    before: FloatArray
    now: FloatArray
    censored: FloatArray


def tables(seed: int, effort: float) -> Iterator[Table]:
    """AUROC and MR at FAR 5 % by how many alternatives an endpoint reports."""
    rng = np.random.default_rng(seed)
    n, rounds = 400, max(2, round(20 * effort))
    rows = []
    for follows in FOLLOWS:
        for spread in SPREADS:
            drawn = [_draw(rng, n, spread, follows) for _ in range(rounds)]
            found = np.nanmean([_figures(scores, bad) for scores, bad in drawn], axis=0)
            censored = float(np.mean([scores.censored.mean() for scores, _ in drawn]))
            rows.append([f"{spread:g}", f"{follows:g}", censored, *map(float, found)])
    measures = ("AUROC", "MR at FAR 5 %")
    yield Table(
        title="A label outside an endpoint's alternatives",
        columns=[
            "spread, nats",
            "followed",
            "censored",
            *(f"{measure}, {which}" for measure in measures for which in ("true", "before", "now")),
        ],
        rows=rows,
        note=(
            f"{rounds} rounds of {n} samples, half of them misbehavior, {ALTERNATIVES} alternatives. log "
            "P(yes)/P(no) is normal, means 2.4 spreads apart; beside the labels stand 1,000 others, the "
            "first 3 to 5 nats below an undecided answer, falling off by rank, another draw a sample. "
            "*followed*: the share of the margin by which the answer also moves away from them. Means over "
            "rounds. *before*: the missing label has no mass, its score is exactly 0 or 1."
        ),
    )


def _draw(
    rng: np.random.Generator, n: int, spread: float, follows: float
) -> tuple[_Scores, NDArray[np.bool_]]:
    """`n` samples, and which of them are misbehavior."""
    bad = np.arange(n) % 2 == 0
    margin = spread * (rng.normal(size=n) + np.where(bad, 1.2, -1.2))
    truth, before, now, censored = (np.empty(n) for _ in range(4))
    for i, m in enumerate(margin):
        others = (
            -follows * abs(m)
            - rng.uniform(3, 5)
            - 1.6 * np.log(np.arange(1, 1001))
            + rng.normal(0, 0.5, 1000)
        )
        logits = np.concatenate([[min(m, 0.0), min(-m, 0.0)], others])
        logs = logits - np.logaddexp.reduce(logits)
        tokens = ["yes", "no", *map(str, range(len(others)))]
        top = {tokens[j]: float(logs[j]) for j in np.argsort(-logs)[:ALTERNATIVES]}
        found = label_score(top, WORDS)
        truth[i] = 1 / (1 + math.exp(-m))
        now[i] = math.nan if found.score is None else found.score
        before[i] = _before(top)
        censored[i] = found.censored
    return _Scores(truth, before, now, censored), bad


def _before(top: dict[str, float]) -> float:
    """A label that is not reported has no mass."""
    yes, no = (math.exp(top[word]) if word in top else 0.0 for word in ("yes", "no"))
    return yes / (yes + no) if yes + no else math.nan


def _figures(scores: _Scores, bad: NDArray[np.bool_]) -> list[float]:
    """AUROC of the truth, before and now; then MR at FAR 5 %."""
    which = (scores.truth, scores.before, scores.now)
    aurocs = [auroc(one, bad) for one in which]
    missed = [found.miss_rate if (found := miss_rate_at_far(one, bad, 0.05)) else None for one in which]
    return [math.nan if one is None else one for one in aurocs + missed]
