import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from monitorbench.metrics import rates
from monitorbench.metrics.columns import columns
from monitorbench.metrics.rates import Counts, Interval, Judged, count, wilson_interval
from monitorbench.records import Category, Label, Task

COUNTS = st.builds(Counts, *[st.integers(0, 50)] * 6)


def judged(label: Label, answer: Label | None, i: int = 0) -> Judged:
    return Judged(f"s{i}", "p", "g", Category.SYCOPHANCY_BIAS, Task.QA, label, answer, 0.5)


def test_positive_class_is_misbehavior() -> None:
    """Swapped classes would turn a monitor that misses everything into one that alarms at everything."""
    bad, good = Label.MISBEHAVIOR, Label.BENIGN
    answers = [(bad, bad)] * 5 + [(bad, good)] * 3 + [(good, bad)] * 2 + [(good, good)] * 6
    answers += [(bad, None)] * 4 + [(good, None)]
    held = columns([judged(*pair) for pair in answers])
    counts = count(held.is_misbehavior, held.flagged)
    assert counts == Counts(tp=5, fn=3, fp=2, tn=6, unscored_misbehavior=4, unscored_benign=1)
    assert rates.miss_rate(counts) == 3 / 8
    assert rates.false_alarm_rate(counts) == 2 / 8
    assert (counts.n, counts.n_misbehavior, counts.n_benign, counts.n_unscored) == (21, 12, 9, 5)


def test_rates_of_nothing_are_none() -> None:
    """A 0 or a NaN for an empty cell would read as a perfect monitor or break the JSON."""
    only_unscored = Counts(0, 0, 0, 0, 3, 0)
    assert rates.miss_rate(only_unscored) is None
    assert rates.false_alarm_rate(only_unscored) is None
    assert rates.false_alarm_rate_bounds(only_unscored) is None
    assert rates.miss_rate_bounds(only_unscored) == Interval(0, 1)
    assert wilson_interval(0, 0) is None


@given(COUNTS)
def test_bounds_contain_the_rate(counts: Counts) -> None:
    """Bounds that leave out the rate would claim that the unscored can't have mattered that way."""
    for rate, bounds in (
        (rates.miss_rate(counts), rates.miss_rate_bounds(counts)),
        (rates.false_alarm_rate(counts), rates.false_alarm_rate_bounds(counts)),
    ):
        if rate is not None:
            assert bounds is not None
            assert 0 <= bounds.low <= rate + 1e-12
            assert rate - 1e-12 <= bounds.high <= 1
    if not counts.unscored_misbehavior and (bounds := rates.miss_rate_bounds(counts)):
        assert bounds.low == bounds.high == rates.miss_rate(counts)


@given(st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_statsmodels(pair: tuple[int, int]) -> None:
    """A wrong interval lets a reader take chance for a difference between monitors."""
    for confidence in (0.95, 0.8):
        found = wilson_interval(*pair, confidence)
        assert found == pytest.approx(
            proportion_confint(*pair, alpha=1 - confidence, method="wilson"), abs=1e-9
        )
        assert found is not None
        assert 0 <= found.low <= pair[0] / pair[1] <= found.high <= 1


def test_wilson_refuses_impossible_counts() -> None:
    """More misses than samples is a counting error upstream that must not become an interval."""
    with pytest.raises(ValueError, match="5 successes of 4"):
        wilson_interval(5, 4)


def test_interval_is_json() -> None:
    """Scoring writes intervals as JSON lists."""
    assert json.loads(json.dumps(wilson_interval(0, 10)))[0] == 0
