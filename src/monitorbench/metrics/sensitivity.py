"""Sensitivity of a comparison: the smallest difference it would find, and whether it shows equality.

Not finding a difference says little where none could have been found; so beside it stands the smallest one
that would have been. Equality is a claim of its own, with a test of its own.
"""

from math import sqrt

import numpy as np
from scipy.special import nctdtrinc, stdtr, stdtrit

from monitorbench.metrics.auroc import independent_variance
from monitorbench.metrics.bootstrap import FloatArray

POWER = 0.8


def least_standard_error(n_groups: int) -> float:
    """A floor of the standard error of a mean change of groups, each in [−1, 1]: √(2/((G + 2)·G)).

    What the G groups would have with one further group that gained everything and one that lost it (the two
    added pairs of Bonett & Price 2012, Journal of Educational and Behavioral Statistics 37:479): groups none
    of which changed have no spread, and show no more than their number allows.
    """
    return sqrt(2 / ((n_groups + 2) * n_groups))


def smallest_p(n_groups: int) -> float:
    """2^(1 − G): the smallest two-sided p of swapping two monitors group by group."""
    return 2.0 ** (1 - min(n_groups, 1000))


def detectable_fall(
    auroc: float, standard_error: float, degrees: float, n_groups: int, n_tests: int, *, level: float
) -> float | None:
    """The smallest fall of an AUROC that a test would find with `POWER`; None where it would find none.

    The least δ with δ >= λ·SE(δ): with the noncentrality λ Student's t of `degrees` is above t₁₋ₐ in `POWER`
    of samples, and a = level/(2·n_tests), the level that the smallest of `n_tests` p values has to keep by
    Holm's correction. `standard_error` is that of no difference; `errors_of_falls` says how it grows. A fall,
    since a rise has less variance and is found sooner. None also where so few groups can't give as small a p
    as that.
    """
    tail = level / (2 * n_tests)
    if n_groups < 2 or smallest_p(n_groups) > 2 * tail:
        return None
    falls, errors = errors_of_falls(auroc, standard_error, n_groups)
    is_detected = falls >= nctdtrinc(degrees, 1 - POWER, stdtrit(degrees, 1 - tail)) * errors
    return float(falls[is_detected.argmax()]) if is_detected.any() else None


def errors_of_falls(auroc: float, standard_error: float, n_groups: int) -> tuple[FloatArray, FloatArray]:
    """Return a thousand falls of an AUROC, ascending, and the standard error of the difference at each.

    `standard_error` is that of no difference: √(2v(1 − c)), with v the variance of one AUROC and c the
    correlation of both. At a fall to a variance of g·v it is √(v(1 + g − 2c√g)); v and g are those of
    independent samples.
    """
    falls = np.arange(1, 1001) / 1000 * auroc
    # Perfect separation has no variance by the formula; that of one inversion stands for it.
    highest = min(auroc, 1 - 1 / (n_groups + 1))
    before = independent_variance(highest, n_groups, n_groups)
    fallen = independent_variance(np.clip(auroc - falls, 0.5, highest), n_groups, n_groups)
    grown = np.maximum.accumulate(fallen / before)
    least = max(standard_error, least_standard_error(n_groups))
    correlation = max(0.0, 1 - least**2 / (2 * before))
    errors = least * np.sqrt((1 + grown - 2 * correlation * np.sqrt(grown)) / (2 * (1 - correlation)))
    return falls, errors


def equivalence_p(
    difference: float, standard_error: float, degrees: float, n_groups: int, margin: float
) -> float:
    """P of a difference of at least `margin` in size: two one-sided tests, the larger of their p values.

    Schuirmann 1987, Journal of Pharmacokinetics and Biopharmaceutics 15:657.
    """
    return no_worse_p(abs(difference), standard_error, degrees, n_groups, margin)


def no_worse_p(worse: float, standard_error: float, degrees: float, n_groups: int, margin: float) -> float:
    """P of being worse by at least `margin`, where `worse` was seen (below 0: better); one-sided.

    Student's t; never below (1 − margin)^G, the chance that not one of G groups is changed where a share of
    `margin` of them would be: that is the floor on their number, 59 for a margin of .05 at 5 %.
    """
    error = max(standard_error, least_standard_error(n_groups))
    tested = float(stdtr(degrees, -(margin - worse) / error))
    return max(tested, (1 - margin) ** n_groups)
