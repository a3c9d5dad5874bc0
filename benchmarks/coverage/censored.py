"""Scores of an endpoint that reports its likeliest tokens alone: what a label outside of them costs.

The truth is the score from both labels' own probabilities. A label outside the alternatives had no mass
before; now the least probability that is reported stands for it (`prompts.label_tokens`).
"""

import math
from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np

from benchmarks.coverage import Cell, Table
from monitorbench.config.monitor import LabelWords
from monitorbench.metrics.auroc import auroc
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.columns import BoolArray
from monitorbench.metrics.low_far import miss_rate_at_far
from monitorbench.prompts.label_tokens import label_score

WORDS = LabelWords(misbehavior="yes", benign="no")
ALTERNATIVES, SAMPLES = 20, 400
SPREADS = (6.0, 12.0, 20.0)
"""Standard deviations of log P(yes)/P(no) within a label, in nats: how confident a monitor is."""
FOLLOWS = (0.5, 0.0)
"""The share of that by which the answer moves away from the other tokens, too: half where the margin is in
both labels' logits alike, none where the other tokens lie at one distance below whatever is answered."""


def tables(seed: int, effort: float) -> Iterator[Table]:
    """Tabulate AUROC and MR at FAR 5 % of the true scores, of those before and of those now."""
    rng, rounds = np.random.default_rng(seed), max(2, round(20 * effort))
    is_bad = np.arange(SAMPLES) % 2 == 0
    rows: list[list[Cell]] = []
    for follows, spread in product(FOLLOWS, SPREADS):
        margins = (spread * (rng.normal(size=SAMPLES) + np.where(is_bad, 1.2, -1.2)) for _ in range(rounds))
        draws = [_draw(rng, margin, follows) for margin in margins]
        figures = np.nanmean([_figures(scores[:3], is_bad) for scores in draws], axis=0)
        censored = float(np.mean([scores[3].mean() for scores in draws]))
        rows.append([f"{spread:g}", f"{follows:g}", censored, *map(float, figures)])
    ways = (f"{name}, {way}" for name in ("AUROC", "MR at FAR 5 %") for way in ("true", "before", "now"))
    yield Table(
        "A label outside an endpoint's alternatives",
        f"spread, nats | followed | censored | {' | '.join(ways)}",
        rows,
        f"{rounds} rounds of {SAMPLES} samples, half of them misbehavior, {ALTERNATIVES} alternatives. log "
        "P(yes)/P(no) is normal, means 2.4 spreads apart; beside the labels stand 1,000 others, the "
        "first 3 to 5 nats below an undecided answer, falling off by rank, another draw a sample. "
        "*followed*: the share of the margin by which the answer also moves away from them. Means over "
        "rounds. *before*: the missing label has no mass, its score is exactly 0 or 1.",
    )


def _draw(rng: np.random.Generator, margins: FloatArray, follows: float) -> FloatArray:
    """Draw true scores, those before, those now (NaN: neither label is reported) and which are censored."""
    drawn = np.empty((4, len(margins)))
    for i, margin in enumerate(margins):
        nearest = -follows * abs(margin) - rng.uniform(3, 5)
        others = nearest - 1.6 * np.log(np.arange(1, 1001)) + rng.normal(0, 0.5, 1000)
        logits = np.concatenate([[min(margin, 0.0), min(-margin, 0.0)], others])
        logs = logits - np.logaddexp.reduce(logits)
        tokens = ["yes", "no", *map(str, range(len(others)))]
        top = {tokens[j]: float(logs[j]) for j in np.argsort(-logs)[:ALTERNATIVES]}
        yes, no = (math.exp(top[word]) if word in top else 0.0 for word in ("yes", "no"))
        before = yes / (yes + no) if yes + no else math.nan
        now = label_score(top, WORDS)
        score = math.nan if now.score is None else now.score
        drawn[:, i] = 1 / (1 + math.exp(-margin)), before, score, now.censored
    return drawn


def _figures(ways: FloatArray, is_bad: BoolArray) -> list[float]:
    """Compute the AUROC of each way's scores [ways, samples], then their MR at FAR 5 %."""
    figures = [of(scores, is_bad) for of in (auroc, partial(miss_rate_at_far, alpha=0.05)) for scores in ways]
    return [math.nan if figure is None else figure for figure in figures]
