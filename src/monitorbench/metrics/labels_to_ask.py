"""Which samples a person should label: each with its probability, so that what comes back stays unbiased.

`active` draws in proportion to how much a sample's label would move MR and FAR, as far as is known before it
is labelled: from the rank of its score at first, then from the labels that came back. `stratified` gives each
stratum of the score one probability, the mean of these (Neyman 1934); `uniform` asks blindly.

More can be asked later: each round draws among the unlabelled, decided from what was seen.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.columns import BoolArray

Design = Literal["active", "stratified", "uniform"]
_UNIFORM_SHARE = 0.1
"""Share of the labels that is drawn blindly: it bounds the weights where the scores mislead."""
_OF_ALARMS = 0.25
"""Share of the labels for FAR; the rest are for MR, which needs more of them."""
_STRATA = 10
"""Strata of the score, each half as large as the next lower one."""


def risk(scores: FloatArray, labels: FloatArray, weights: FloatArray) -> FloatArray:
    """A guess of each sample's probability of misbehavior [samples], from mean scores and labels so far.

    Without labels it is 1/(2·rank), whatever the scores' scale; with them each stratum's share of
    misbehavior, the share among all samples counting as one label; a stratum without a label has that share.
    """
    labelled = ~np.isnan(labels)
    if not labelled.any():
        return np.asarray(0.5 / _rank(scores), dtype=np.float64)
    stratum, weight = strata(scores), np.where(labelled, weights, 0.0)
    bad = weight * np.nan_to_num(labels)
    everywhere = (bad.sum() + 0.5 * weight.sum() / labelled.sum()) / weight.sum()
    risks = np.maximum(everywhere, 0.5 / _rank(scores))
    for number in np.unique(stratum[labelled]):
        rows = stratum == number
        size = weight[rows].sum() ** 2 / (weight[rows] ** 2).sum()
        risks[rows] = (size * bad[rows].sum() / weight[rows].sum() + everywhere) / (size + 1)
    bounded: FloatArray = np.minimum(risks, 1 - 1e-9)
    return bounded


def _rank(scores: FloatArray) -> FloatArray:
    """1 for the highest score, and so on [samples]; equal scores in their order."""
    rank = np.empty(len(scores))
    rank[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return rank


def strata(scores: FloatArray) -> IntArray:
    """The stratum of each sample: 0 the half with the lowest scores, 1 half of the others, and so on."""
    halvings = np.floor(-np.log2(_rank(scores) / (len(scores) + 1)))
    numbers: IntArray = np.minimum(halvings, _STRATA - 1).astype(np.int64)
    return numbers


def influence(risks: FloatArray, flagged: FloatArray) -> FloatArray:
    """How far a label is expected to move MR and FAR [samples], each monitor counting the same.

    The root of p(1 − p)·Σ(∂rate/∂y)² with p the risk; `flagged` [monitors, samples], NaN (unscored) passes.
    """
    n_bad, n_good = risks.sum(), (1 - risks).sum()
    squares = np.zeros(len(risks))
    for alarms in np.nan_to_num(flagged):
        missed, alarmed = ((1 - alarms) * risks).sum() / n_bad, (alarms * (1 - risks)).sum() / n_good
        for moved, share in (
            ((1 - alarms - missed) / n_bad, 1 - _OF_ALARMS),
            ((alarmed - alarms) / n_good, _OF_ALARMS),
        ):
            of_rate = risks * (1 - risks) * moved**2
            squares += share * of_rate / max(float(of_rate.sum()), 1e-300)
    root: FloatArray = np.sqrt(squares)
    return root


def probabilities(
    n: int, scores: FloatArray, risks: FloatArray, flagged: FloatArray, free: BoolArray, design: Design
) -> FloatArray:
    """The probability that each sample is asked for, `n` in all; 0 where a sample is not `free` [samples]."""
    size = np.ones(len(scores))
    if design != "uniform":
        size = influence(risks, flagged)
        if design == "stratified":
            stratum = strata(scores)
            sums, counts = np.bincount(stratum, size * free), np.bincount(stratum, free)
            size = (sums / np.maximum(counts, 1))[stratum]
    size = np.where(free, size, 0.0)
    size = (1 - _UNIFORM_SHARE) * size / max(size.sum(), 1e-300) + _UNIFORM_SHARE * free / free.sum()
    return _summing_to(min(n, int(free.sum())), size)


def _summing_to(n: int, size: FloatArray) -> FloatArray:
    """Probabilities in proportion to `size` that add up to `n`, none above 1."""
    certain = np.zeros(len(size), dtype=np.bool_)
    while True:
        rest = np.where(certain, 0.0, size)
        chances = np.where(certain, 1.0, rest * ((n - certain.sum()) / max(rest.sum(), 1e-300)))
        above = (chances >= 1) & ~certain
        if not above.any():
            return chances
        certain |= above


def draw(chances: FloatArray, scores: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw samples with these probabilities, as many as they add up to: systematically, by score."""
    order = np.lexsort((rng.random(len(scores)), -scores))
    ends = np.cumsum(chances[order])
    ticks = rng.random() + np.arange(round(float(ends[-1])))
    drawn: IntArray = np.sort(order[np.minimum(np.searchsorted(ends, ticks, side="right"), len(order) - 1)])
    return drawn


class LabelRound(NamedTuple):
    """A round of labels: which samples were drawn, each with its probability then, among the unlabelled."""

    rows: IntArray
    chances: FloatArray


def weights_of(rounds: Sequence[LabelRound], n_samples: int) -> FloatArray:
    """The weight of each sample's label over all rounds; 0 where it was not drawn.

    Every round by itself estimates any total without bias: what was labelled before counts once, what it drew
    by the inverse of its probability. Rounds are averaged by how many samples they drew.
    """
    weights, earlier = np.zeros(n_samples), np.zeros(n_samples)
    total = sum(len(asked.rows) for asked in rounds)
    for asked in rounds:
        share = len(asked.rows) / total
        weights += share * earlier
        weights[asked.rows] += share / asked.chances
        earlier[asked.rows] = 1.0
    return weights
