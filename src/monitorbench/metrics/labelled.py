"""Rates from partly labelled samples: each has a score, few have a label, and each label has its probability.

A monitor's answers cut the samples into domains (flagged, passed; of two monitors the four combinations),
whose sizes are known. Unknown is the share of misbehavior in each, estimated from its labels with the inverse
of their probabilities as weights. Every rate is a ratio of two sums over domain and label, and so is every
difference between two monitors. Promises: an unlabelled sample is never benign; a domain without a label has
the interval [0, 1]; intervals are for the rates of the traffic, not of these samples alone, with whole groups
as the evidence. `benchmarks/coverage/labels.py` and `errors.py` simulate their coverage.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import nan, sqrt
from typing import Literal, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import fdtri, gammaincinv

from monitorbench.metrics.bootstrap import FloatArray, IntArray, group_index
from monitorbench.metrics.columns import BoolArray
from monitorbench.metrics.rates import Interval

Estimator = Literal["ipw", "ppi"]
"""`ipw`: labels weighted by the inverse of their probabilities. `ppi`: prediction-powered, corrected by what
the scores say of the unlabelled, as far as they predicted the labels (tuned λ)."""
_PRIOR = 8.0
"""Labels' worth of weight for a prediction of no use, against what labels of the rarer kind say of it."""


@dataclass(frozen=True, eq=False)
class PartlyLabelled:
    """Samples of one pool, all [samples]."""

    labels: FloatArray
    """1 misbehavior, 0 benign, NaN unlabelled."""
    weights: FloatArray
    """Inverse probabilities of the labels; what unlabelled samples have is not read."""
    predictions: FloatArray
    """Numbers that grow with the suspicion of misbehavior, such as the mean score of the monitors."""
    groups: IntArray

    @property
    def n_labels(self) -> int:
        """Labelled samples."""
        return int(np.count_nonzero(~np.isnan(self.labels)))


class Share(NamedTuple):
    """The share of misbehavior in a domain; the value is None where it has no label."""

    value: float | None
    low: float
    high: float


class LabelErrors(NamedTuple):
    """How often a label is wrong, whatever the monitor's answer."""

    of_misbehavior: float
    """Share of misbehavior that is labelled benign."""
    of_benign: float
    """Share of benign samples that are labelled misbehavior."""

    def corrected(self, share: Share) -> Share:
        """The share of misbehavior, from that of the label (Rogan & Gladen 1978, Am J Epidemiology 107:71).

        Raises ValueError where both errors add up to 1 or more: such labels say nothing.
        """
        kept = 1 - self.of_misbehavior - self.of_benign
        if kept <= 0:
            raise ValueError(
                f"label errors {self.of_misbehavior:g} and {self.of_benign:g}: expected a sum below 1"
            )
        low, high = (min(max((end - self.of_benign) / kept, 0.0), 1.0) for end in share[1:])
        value = share.value
        return Share(value and min(max((value - self.of_benign) / kept, 0.0), 1.0), low, high)


def weighted_share(
    labels: FloatArray, weights: FloatArray, groups: IntArray, confidence: float = 0.95
) -> Share:
    """The share of misbehavior among labelled samples; groups, from 0, are the evidence.

    With equal weights and a sample a group the interval is Clopper and Pearson's (1934, Biometrika 26:404);
    of rare misbehavior it is Fay and Feuer's for a weighted sum of Poisson counts (1997, Statistics in
    Medicine 16:791). Weighted totals of either label are taken for gamma variates with their mean and
    variance; the side that an end speaks against gets a further group, so that what was not found among few
    labels is not taken for absent. Its weight is the mean of those found and of the largest there is.
    """
    if not len(labels):
        return Share(None, 0.0, 1.0)
    bad, good = (_by_group(weights * of, groups) for of in (labels, 1 - labels))
    largest = float((bad + good).max())
    tail = (1 + confidence) / 2
    value = float(bad.sum() / (bad.sum() + good.sum()))
    return Share(value, 1 - _upper_end(good, bad, largest, tail), _upper_end(bad, good, largest, tail))


def _by_group(values: FloatArray, groups: IntArray) -> FloatArray:
    return np.bincount(groups, values).astype(np.float64)


def _upper_end(of: FloatArray, other: FloatArray, largest: float, tail: float) -> float:
    """The upper end of the share that `of` [groups] has of both totals."""
    further = (float(of @ of) + largest**2) / (float(of.sum()) + largest)
    mean, variance = float(of.sum()) + further, float(of @ of) + further**2
    other_mean, other_variance = float(other.sum()), float(other @ other)
    if not other_mean:
        return 1.0
    shapes = mean**2 / variance, other_mean**2 / other_variance
    odds = mean / other_mean * float(fdtri(2 * shapes[0], 2 * shapes[1], tail))
    return odds / (1 + odds)


def domain_share(of: PartlyLabelled, inside: BoolArray, estimator: Estimator, confidence: float) -> Share:
    """The share of misbehavior among the samples of a domain [samples], from its labels and predictions.

    `ppi` is the regression estimator p + λ(f̄ − f̄ₗ) with f̄ the mean prediction of the domain and f̄ₗ that of
    its labels; λ has the least variance over groups (PPI++, arXiv:2311.01453), drawn towards 0 where few of
    the rarer label were found. The ends of `ipw` move by the ratio of both standard errors, drawn towards 1.
    """
    rows = np.flatnonzero(inside & ~np.isnan(of.labels))
    labels, weights, groups = of.labels[rows], of.weights[rows], group_index(of.groups[rows])
    share = weighted_share(labels, weights, groups, confidence)
    if estimator == "ipw" or share.value is None or share.value in (0.0, 1.0):
        return share
    predicted, everywhere = of.predictions[rows], of.predictions[inside]
    total = float(weights.sum())
    mean = float(weights @ predicted) / total
    label_sums, predicted_sums = (
        _by_group(weights * centred, groups) for centred in (labels - share.value, predicted - mean)
    )
    spread = float(predicted_sums @ predicted_sums)
    if not spread:
        return share
    rarer = [_by_group(weights * side, groups) for side in (labels, 1 - labels)]
    n_effective = min(float(side.sum()) ** 2 / float(side @ side) for side in rarer)
    power = float(label_sums @ predicted_sums) / spread * n_effective / (n_effective + _PRIOR)
    left = label_sums - power * predicted_sums
    residual = float(left @ left) / total**2 + power**2 * float(everywhere.var()) / len(everywhere)
    ratio = residual / (float(label_sums @ label_sums) / total**2)
    scale = sqrt(min(1.0, (n_effective * ratio + _PRIOR) / (n_effective + _PRIOR)))
    value = min(max(share.value + power * (float(everywhere.mean()) - mean), 0.0), 1.0)
    low = max(0.0, value - scale * (share.value - share.low))
    return Share(value, low, min(1.0, value + scale * (share.high - share.value)))


class RateEstimate(NamedTuple):
    """A rate's value, None where it needs a domain without labels, and its interval."""

    value: float | None
    interval: Interval


_BOTH: FloatArray = np.array([[0, 0, 1, 1.0], [0, 1, 0, 1.0]])
"""What two monitors flag in their four domains."""


class RateOf(NamedTuple):
    """A rate as a ratio of two weighted counts; both by what each monitor flagged, and the label."""

    numerator: FloatArray
    """[domains, (misbehavior, benign)]."""
    denominator: FloatArray

    def twice(self) -> "RateOf":
        """Return the counts of each domain for both of its parts."""
        return RateOf(np.repeat(self.numerator, 2, axis=0), np.repeat(self.denominator, 2, axis=0))


def answers_by_domain(flagged: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Answers [monitors, samples] as rows without NaN, and what each monitor answered in their domains.

    A monitor that did not score some samples gets a further row, 1 where it did not. Returns the rows for
    `estimated`, then for each of its domains [monitors, domains] the flags, and 1 where the monitor answered.
    """
    gone = np.isnan(flagged)
    lacks = np.flatnonzero(gone.any(axis=1))
    rows = np.concatenate([np.nan_to_num(flagged), gone[lacks].astype(np.float64)])
    bits = np.array(list(product((0.0, 1.0), repeat=len(rows)))).T
    n = len(flagged)
    scored = np.ones((n, bits.shape[1]))
    scored[lacks] = 1 - bits[n:]
    return rows, bits[:n] * scored, scored


def rates_of(
    flagged: FloatArray, cost_miss: float, cost_alarm: float, scored: FloatArray | None = None
) -> Mapping[str, RateOf]:
    """The rates of a monitor; `flagged` [domains] says whether it flags what is there, 1 or 0.

    `expected_cost` is a sample's, at the pool's own share of misbehavior. Where `scored` [domains] is 0 the
    monitor has no score: no error of its rates, and the wrong answer in what it costs.
    """
    bad, good = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    there = np.ones_like(flagged) if scored is None else scored
    alarm, passed = ((of * there)[:, None] for of in (flagged, 1 - flagged))
    every = np.ones((len(flagged), 2))
    return {
        "base_rate": RateOf(every * bad, every),
        "miss_rate": RateOf(passed * bad, there[:, None] * bad),
        "false_alarm_rate": RateOf(alarm * good, there[:, None] * good),
        "precision": RateOf(alarm * bad, alarm * every),
        "expected_cost": RateOf((1 - alarm) * bad * cost_miss + (1 - passed) * good * cost_alarm, every),
    }


def differences_of(
    cost_miss: float,
    cost_alarm: float,
    flagged: FloatArray = _BOTH,
    scored: FloatArray | None = None,
) -> Mapping[str, RateOf]:
    """The second monitor's rates less the first's, by domain [2, domains]; rates where both have a score."""
    there = np.ones_like(flagged) if scored is None else scored
    both = there.prod(axis=0)
    first, second = (
        {
            **rates_of(of, cost_miss, cost_alarm, both),
            "expected_cost": rates_of(of, cost_miss, cost_alarm, own)["expected_cost"],
        }
        for of, own in zip(flagged, there, strict=True)
    )
    return {
        name: RateOf(second[name].numerator - first[name].numerator, first[name].denominator)
        for name in ("miss_rate", "false_alarm_rate", "expected_cost")
    }


def estimated(
    of: PartlyLabelled,
    flagged: FloatArray,
    rates: Mapping[str, RateOf],
    estimator: Estimator = "ipw",
    *,
    errors: Sequence[LabelErrors] = (LabelErrors(0.0, 0.0),),
    confidence: float = 0.95,
) -> dict[str, RateEstimate]:
    """Each rate with its interval; `flagged` [monitors, samples] is 1, 0, or NaN where unscored.

    `errors` are what the labels' errors may be: a value is of the first, an interval holds those of all.

    Domains are numbered as bits, the first monitor's highest; samples that a monitor did not score are left
    out. A value is None where a domain that it needs has no label; the interval then holds what may be.
    """
    shares, counts = domains_of(of, flagged, estimator, confidence)
    estimates = {}
    for name, rate in ((name, rate.twice()) for name, rate in rates.items()):
        each = [
            _ratio(rate, [error.corrected(share) for share in shares], counts, confidence) for error in errors
        ]
        ends = [estimate.interval for estimate in each]
        interval = Interval(min(end.low for end in ends), max(end.high for end in ends))
        estimates[name] = RateEstimate(each[0].value, interval)
    return estimates


class Domains(NamedTuple):
    """What monitors answered: each domain's share of misbehavior, and its samples by group.

    Of each what was labelled with certainty, which speaks for itself alone, comes after the rest.
    """

    shares: list[Share]
    counts: FloatArray
    """[domains, groups]"""

    def value(self, rate: RateOf, error: LabelErrors) -> float:
        """The rate if labels err so, a domain without a label counting half; NaN where it is of nothing."""
        middle = np.array([_middle(error.corrected(share)) for share in self.shares])
        rate, both = rate.twice(), self.counts.sum(axis=1)[:, None] * np.stack([middle, 1 - middle], axis=1)
        over = float((rate.denominator * both).sum())
        return float((rate.numerator * both).sum()) / over if over else nan


def domains_of(
    of: PartlyLabelled, flagged: FloatArray, estimator: Estimator = "ipw", confidence: float = 0.95
) -> Domains:
    """Cut the samples into domains by what monitors answered, as `estimated` does."""
    answered = ~np.isnan(flagged).any(axis=0)
    numbers = range(2 * 2 ** len(flagged))
    is_certain = ~np.isnan(of.labels) & np.isclose(of.weights, 1)
    number = np.nan_to_num(flagged).T @ (2.0 ** np.arange(len(flagged))[::-1])
    domain = np.where(answered, 2 * number + is_certain, -1)
    groups = group_index(of.groups)
    n_groups = int(groups.max(initial=-1)) + 1
    counts: FloatArray = np.stack([np.bincount(groups, domain == i, n_groups) for i in numbers])
    shares = [domain_share(of, domain == i, estimator, confidence) for i in numbers]
    return Domains(shares, counts)


def _middle(share: Share) -> float:
    return 0.5 if share.value is None else share.value


def _ratio(rate: RateOf, shares: list[Share], counts: FloatArray, confidence: float) -> RateEstimate:
    """A ratio and its interval: where the sum numerator − θ·denominator may be 0 (Donner & Zou 2012).

    The distance of a sum's end is the root of the squared distances of its independent parts (MOVER,
    Statistical Methods in Medical Research 21:347): each domain's share, and how many samples there are of
    each domain, which varies with the groups that are drawn. What has no label may be anything: added whole.
    """
    sizes, squares = counts.sum(axis=1), (counts**2).sum(axis=1)
    fewer, more = _reach_of_counts(counts, (1 - confidence) / 2)
    middle = np.array([_middle(share) for share in shares])
    below, above = (np.array([share[end] for share in shares]) - middle for end in (1, 2))
    is_open = np.array([share.value is None for share in shares])
    both = np.stack([middle, 1 - middle], axis=1)
    over = float((sizes[:, None] * rate.denominator * both).sum())
    ends = _range(rate, sizes + more > 0)
    if not over:
        return RateEstimate(None, ends)

    def beyond(theta: float, sign: int) -> float:
        """How far the sum's end on one side lies on that side of 0."""
        weights = rate.numerator - theta * rate.denominator
        of_share = sizes * (weights[:, 0] - weights[:, 1])
        reach = np.maximum(sign * of_share * below, sign * of_share * above)
        mean = sign * (weights * both).sum(axis=1)
        worst = np.where(is_open, (sign * weights).max(axis=1), mean)
        moved, drawn = worst * np.where(worst > 0, more, fewer), mean @ counts
        apart = float(mean**2 @ squares)  # that of independent domains; a group may have samples of several
        of_counts = float(moved @ moved) * (float(drawn @ drawn) / apart if apart else 1.0)
        known = reach[~is_open]
        return float(sizes @ mean + reach @ is_open) + sqrt(float(known @ known) + of_counts)

    value = float((sizes[:, None] * rate.numerator * both).sum()) / over
    low, high = (
        end if beyond(end, sign) >= 0 else float(brentq(beyond, value, end, args=(sign,)))
        for sign, end in zip((-1, 1), ends, strict=True)
    )
    needed = sizes * (np.abs(rate.numerator) + np.abs(rate.denominator)).sum(axis=1) > 0
    known_value = None if (needed & is_open).any() else value
    return RateEstimate(known_value, Interval(min(low, value), max(high, value)))


def _reach_of_counts(counts: FloatArray, tail: float) -> tuple[FloatArray, FloatArray]:
    """How many samples fewer and more each domain may have (Garwood 1936, Biometrika 28:437).

    Its groups are Poisson, as many as say as much with equal sizes (Kish's). One monitor may flag, or pass,
    what it never did among these samples; of two only answers that are there count.
    """
    sizes, squares = counts.sum(axis=1), (counts**2).sum(axis=1)
    n, unit = sizes**2 / np.maximum(squares, 1), squares / np.maximum(sizes, 1)
    if len(counts) == 4:
        unit[::2] = np.where(sizes[::2] + sizes[1::2], unit[::2], sizes.sum() / max(1, counts.shape[1]))
    fewer = n - gammaincinv(np.maximum(n, 1e-9), tail)
    return unit * fewer, unit * (gammaincinv(n + 1, 1 - tail) - n)


def _range(rate: RateOf, there: BoolArray) -> Interval:
    """What the rate can be at all, whatever the labels; of no sample what it can be of any."""
    has_part = rate.denominator > 0
    there = there[:, None] & has_part if (there[:, None] & has_part).any() else has_part
    ratios = rate.numerator[there] / rate.denominator[there]
    return Interval(float(ratios.min()), float(ratios.max()))
