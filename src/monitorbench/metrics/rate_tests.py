"""Adapters against their bases in both rates, as one family of tests.

Promises: every comparison that was made is in the family that Holm's correction is over, whether it came
out well or not.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypedDict

from monitorbench.metrics.columns import Columns
from monitorbench.metrics.compare import RateDifference, compare, holm
from monitorbench.metrics.summary import as_list


class Match(NamedTuple):
    """Two monitors' answers to the same samples, in the same order; `where` names the samples."""

    first: str
    second: str
    prompt: str
    where: str
    of_first: Columns
    of_second: Columns


class RateTest(TypedDict):
    """One rate of the second monitor minus the first's."""

    first: str
    second: str
    prompt: str
    where: str
    rate: str
    """`miss_rate` or `false_alarm_rate`."""
    n: int
    """Samples of the rate's label that both answered."""
    only_first_wrong: int
    only_second_wrong: int
    difference: float | None
    difference_ci: list[float] | None
    """Cluster bootstrap by group, percentile, 95 %."""
    p: float | None
    """McNemar's exact test, two-sided."""
    p_holm: float | None
    """The same, corrected for all tests of this list."""


def rate_tests(matches: Sequence[Match], *, resamples: int, seed: int) -> list[RateTest]:
    """Two tests for each match: its miss rates and its false alarm rates.

    Raises ValueError where the two monitors' samples differ.
    """
    found: list[RateTest] = []
    for match in matches:
        ours, theirs = match.of_first, match.of_second
        if not ours.sample_ids.equals(theirs.sample_ids):
            raise ValueError(f"{match.first} and {match.second} were not asked about the same samples")
        both = compare(
            ours.flagged, theirs.flagged, ours.is_misbehavior, ours.groups, resamples=resamples, seed=seed
        )
        found += [_test(match, name, getattr(both, name)) for name in both._fields]
    adjusted = iter(holm([test["p"] for test in found if test["p"] is not None]))
    for test in found:
        if test["p"] is not None:
            test["p_holm"] = next(adjusted)
    return found


def _test(match: Match, rate: str, difference: RateDifference) -> RateTest:
    return RateTest(
        first=match.first,
        second=match.second,
        prompt=match.prompt,
        where=match.where,
        rate=rate,
        n=difference.n,
        only_first_wrong=difference.only_first_wrong,
        only_second_wrong=difference.only_second_wrong,
        difference=difference.difference,
        difference_ci=as_list(difference.interval),
        p=difference.p_value,
        p_holm=None,
    )
