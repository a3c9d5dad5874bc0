"""Which samples a person should label: each with its probability, so that what comes back stays unbiased.

`active` draws in proportion to how much a sample's label would move MR and FAR, as far as is known before it
is labelled: from its risk, by the rank of its score at first, then by the labels that came back. `stratified`
gives each stratum of the risk one probability, the mean of these (Neyman 1934); `uniform` asks blindly.
`alerts` takes what is flagged, riskiest first, and a share blindly: an audit queue, and the quickest search.

More can be asked later: each round draws among the unlabelled, decided from what was seen.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import expit, ndtri
from scipy.stats import rankdata

from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.columns import BoolArray

Design = Literal["active", "stratified", "uniform", "alerts"]
_OF_ALARMS = 0.25
"""Share of the labels for FAR; the rest are for MR, which needs more of them."""
_FLOOR = 0.3
"""Least risk that is believed when labels are spread, as a share of the mean risk."""
_STRATA = 10
"""Strata of the score, each half as large as the next lower one."""
_COEFFICIENTS = 2.0
"""Sum of the coefficients that scores have in the risk before any label says otherwise."""


def risk(scores: FloatArray, labels: FloatArray) -> FloatArray:
    """Guess each sample's probability of misbehavior [samples] from scores [monitors, samples] and labels.

    Without labels it is 1/(2·rank) of the mean score. With them it is a logistic regression on the monitors'
    normal scores (van der Waerden's), its coefficients drawn towards equal ones by a normal prior. How likely
    a sample was to be labelled needs no weight here, since that depended on the scores alone (Rubin 1976).
    """
    normal = _normal_scores(scores)
    labelled = ~np.isnan(labels)
    if not labelled.any():
        return np.asarray(0.5 / _rank(normal.mean(axis=1)), dtype=np.float64)
    columns = np.hstack([np.ones((len(normal), 1)), normal])
    prior = np.r_[0.0, np.full(normal.shape[1], _COEFFICIENTS / normal.shape[1])]
    precision = np.diag(np.r_[1e-4, np.ones(normal.shape[1])])
    weights = np.r_[-4.0, prior[1:]]
    read, told = columns[labelled], labels[labelled]
    for _ in range(_STEPS):
        chances = expit(read @ weights)
        slope = read.T @ (told - chances) - precision @ (weights - prior)
        curvature = (read.T * (chances * (1 - chances))) @ read + precision
        step = np.linalg.solve(curvature, slope)
        size = float(np.abs(step).max())
        weights = weights + step * min(1.0, _LONGEST_STEP / max(size, 1e-12))
        if size < _CONVERGED:
            break
    bounded: FloatArray = np.clip(expit(columns @ weights), 1e-9, 1 - 1e-9)
    return bounded


_STEPS, _LONGEST_STEP, _CONVERGED = 50, 4.0, 1e-6
"""Newton's steps, at most; the most that a coefficient moves in a step; and how little is none."""


def _normal_scores(scores: FloatArray) -> FloatArray:
    """The normal quantile of each score's mean rank [samples, monitors]; an unscored sample ranks highest."""
    filled = np.where(np.isnan(scores), np.inf, scores)
    ranks = np.apply_along_axis(rankdata, 1, filled)
    normal: FloatArray = ndtri((ranks - 0.5) / scores.shape[1]).T
    return normal


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
    n: int,
    risks: FloatArray,
    flagged: FloatArray,
    free: BoolArray,
    design: Design,
    *,
    blind_share: float = 0.1,
) -> FloatArray:
    """The probability that each sample is asked for, `n` in all; 0 where a sample is not `free` [samples].

    `blind_share` of the labels are drawn blindly, which bounds the weights where scores mislead.
    """
    n = min(n, int(free.sum()))
    if not n:
        return np.zeros(len(risks))
    if design == "alerts":
        return _alerts_first(n, risks, flagged, free, blind_share)
    size = np.ones(len(risks))
    if design != "uniform":
        size = influence(np.maximum(risks, _FLOOR * risks.mean()), flagged)
        if design == "stratified":
            stratum = strata(risks)
            sums, counts = np.bincount(stratum, size * free), np.bincount(stratum, free)
            size = (sums / np.maximum(counts, 1))[stratum]
    size = np.where(free, size, 0.0)
    return _summing_to(
        n, (1 - blind_share) * size / max(size.sum(), 1e-300) + blind_share * free / free.sum()
    )


def _alerts_first(
    n: int, risks: FloatArray, flagged: FloatArray, free: BoolArray, blind_share: float
) -> FloatArray:
    """Certainty for what a monitor flags or did not score, riskiest first; the rest of `n` drawn blindly."""
    alerts = np.flatnonzero(free & (np.nan_to_num(flagged, nan=1.0) > 0).any(axis=0))
    blind = min(n, max(1, round(blind_share * n)))
    chances = np.zeros(len(risks))
    chances[alerts[np.argsort(-risks[alerts], kind="stable")][: n - blind]] = 1.0
    left = free & (chances == 0)
    if left.any():
        chances[left] = min(1.0, (n - chances.sum()) / left.sum())
    return chances


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
    by the inverse of its probability. Rounds are averaged by how many samples they drew; where the last took
    most of its samples with certainty, as `alerts` does, it stands alone, since the others know less.
    """
    if rounds and (rounds[-1].chances >= 1).mean() > 0.5:
        weights = np.zeros(n_samples)
        for asked in rounds:
            weights[asked.rows] = 1.0
        weights[rounds[-1].rows] = 1 / rounds[-1].chances
        return weights
    weights, earlier = np.zeros(n_samples), np.zeros(n_samples)
    total = sum(len(asked.rows) for asked in rounds)
    for asked in rounds:
        share = len(asked.rows) / total
        weights += share * earlier
        weights[asked.rows] += share / asked.chances
        earlier[asked.rows] = 1.0
    return weights
