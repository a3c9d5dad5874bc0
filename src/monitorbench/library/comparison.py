"""Is one monitor better than another on the same samples? (`compare`)"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from monitorbench.library.discrimination import need_both
from monitorbench.library.inputs import (
    Column,
    Estimate,
    ResultRow,
    Shown,
    answers_of,
    are_answers,
    are_numbers,
    groups_of,
    in_order_of,
    labels_of,
    p_value,
    scores_of,
)
from monitorbench.metrics import significance
from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.columns import BoolArray
from monitorbench.metrics.significance import RateDifference, auroc_change_test


@dataclass(frozen=True, slots=True)
class Difference:
    """b minus a, over the samples that both answered."""

    a: float | None
    b: float | None
    difference: Estimate
    """The interval holds 0 where p is at least .05, and only there."""
    p: float | None
    """Two-sided, groups as the evidence, not corrected for how many monitors are compared; of a rate exact,
    McNemar's where a group has one sample of the label."""
    n: int
    n_left_out: int
    """Samples that either left unscored."""


@dataclass(frozen=True, slots=True, repr=False)
class MonitorComparison(Shown):
    """What was compared: both rates of answers, or AUROC of scores; the other is None."""

    miss_rate: Difference | None = None
    false_alarm_rate: Difference | None = None
    auroc: Difference | None = None

    def _title(self) -> str:
        return "Two monitors on the same samples: b minus a, 95 % intervals"

    def _rows(self) -> Sequence[ResultRow]:
        differences = (
            ("miss rate", self.miss_rate),
            ("false alarm rate", self.false_alarm_rate),
            ("AUROC", self.auroc),
        )
        return [
            ResultRow(
                name,
                f"{difference.difference!r}, {p_value(difference.p)}",
                f"a {Estimate(difference.a, None)!r}, b {Estimate(difference.b, None)!r}, n {difference.n}",
            )
            for name, difference in differences
            if difference is not None
        ]


def compare(labels: Column, a: Column, b: Column, groups: Column | None = None) -> MonitorComparison:
    """The difference between two monitors with its 95 % interval and a test, b minus a.

        compare(labels, base_scores, tuned_scores, groups)

    Answers (labels, booleans, 1 and 0) are compared by miss rate and false alarm rate, all other numbers are
    scores and compared by AUROC. A sample that either left unscored is left out of both.

    Args:
        labels: `misbehavior` or `benign`, 1 or 0, True or False.
        a: the first monitor's answers or scores; None where unscored.
        b: the second's, of the same kind and in the same order.
        groups: the name of each sample's question; without it every sample is one.

    Raises:
        ValueError: for lengths that differ, one of answers and one of scores, what is no label or no number,
            NaN, and scores of one label only.

    """
    a, b, groups = in_order_of(labels, a=a, b=b, groups=groups)
    is_misbehavior = labels_of(labels)
    n = len(is_misbehavior)
    index = groups_of(groups, n)
    kinds = are_answers(a, "a"), are_answers(b, "b")
    if kinds == (True, True):
        first, second = answers_of(a, "a", n), answers_of(b, "b", n)
        return _of_answers(is_misbehavior, first, second, index)
    for name, values, partner in (("a", a, "b"), ("b", b, "a")):
        if are_answers(values, name) and not are_numbers(values, name):
            raise ValueError(
                f"{name}: answers, but {partner}: scores; expected answers of both, or scores of both"
            )
    first, second = scores_of(a, "a", n), scores_of(b, "b", n)
    return _of_scores(is_misbehavior, first, second, index)


def _of_answers(flags: BoolArray, a: FloatArray, b: FloatArray, groups: IntArray) -> MonitorComparison:
    changes = significance.compare(a, b, flags, groups)
    both = ~np.isnan(a) & ~np.isnan(b)
    return MonitorComparison(
        miss_rate=_rate(changes.miss_rate, a, b, flags & both, 1.0),
        false_alarm_rate=_rate(changes.false_alarm_rate, a, b, ~flags & both, 0.0),
    )


def _rate(of: RateDifference, a: FloatArray, b: FloatArray, rows: BoolArray, right: float) -> Difference:
    first, second = (float(np.mean(answers[rows] != right)) if of.n else None for answers in (a, b))
    return Difference(first, second, Estimate(of.difference, of.interval), of.p_value, of.n, of.n_left_out)


def _of_scores(flags: BoolArray, a: FloatArray, b: FloatArray, groups: IntArray) -> MonitorComparison:
    need_both(flags, ~np.isnan(a) & ~np.isnan(b))
    change, p = auroc_change_test(a, b, flags, groups)
    difference = Estimate(change.difference, change.interval)
    return MonitorComparison(
        auroc=Difference(change.base, change.tuned, difference, p, change.n, len(flags) - change.n)
    )
