import numpy as np
import pytest
from scipy.stats import norm

from monitorbench.config.evaluation import Stakes
from monitorbench.metrics import bootstrap
from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.cost import expected_cost, expected_cost_interval
from monitorbench.metrics.rates import wilson_interval


def made(base_rate: float, cost_miss: float, cost_alarm: float) -> Stakes:
    return Stakes(base_rate=base_rate, cost_miss=cost_miss, cost_alarm=cost_alarm)


def test_it_is_the_mean_cost_of_judged_samples() -> None:
    """By counting: of 1,000 samples 20 are misbehavior, 5 of them missed at 100 each, 98 alarms at 1."""
    assert expected_cost(0.25, 0.1, made(0.02, 100, 1)) == pytest.approx((5 * 100 + 98 * 1) / 1000)
    assert expected_cost(None, 0.1, made(0.02, 100, 1)) is None
    assert expected_cost(0.25, None, made(0.02, 100, 1)) is None


def test_with_many_groups_of_a_size_the_interval_is_the_plain_cluster_bootstraps() -> None:
    """The interval must take groups whole and leave unscored answers out, as the rates beside it do."""
    rng = np.random.default_rng(0)
    flags, groups = np.arange(4000) % 2 == 0, np.arange(4000) // 4
    flagged = (rng.random(4000) + rng.random(4000)[groups] + flags > 1.3).astype(float)
    flagged[rng.random(4000) < 0.1] = np.nan
    stakes = made(0.1, 20, 1)
    kept = ~np.isnan(flagged)
    bad, alarm = flags[kept], flagged[kept] == 1

    def plain(weights: IntArray) -> FloatArray:
        missed = weights @ (bad & ~alarm) / (weights @ bad)
        alarms = weights @ (~bad & alarm) / (weights @ ~bad)
        return 0.1 * missed * 20 + 0.9 * alarms

    slow = bootstrap.interval(plain, [f"{one:04}" for one in groups[kept]], resamples=4000, seed=0)
    fast = expected_cost_interval(flagged, flags, groups, stakes)
    assert slow is not None
    assert fast == pytest.approx(slow, abs=0.1 * (slow.high - slow.low))
    point = expected_cost(np.mean(~alarm[bad]), np.mean(alarm[~bad]), stakes)
    assert point is not None
    assert slow.low < point < slow.high


def test_no_interval_without_a_class_or_with_one_group() -> None:
    """A cell of one class has no cost, and one question no spread."""
    stakes = made(0.5, 1, 1)
    assert expected_cost_interval([True, None], [True, False], np.arange(2), stakes) is None
    assert expected_cost_interval([True, True], [True, False], np.zeros(2, int), stakes) is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((1.5, 1, 1), r"base_rate\n"),
        ((float("nan"), 1, 1), r"base_rate\n"),
        ((0.5, -1, 1), r"cost_miss\n"),
        ((0.5, 1, float("inf")), r"cost_alarm\n"),
    ],
)
def test_impossible_stakes_are_refused(values: tuple[float, float, float], message: str) -> None:
    """A base rate of 2 for 2 % would make the cheapest monitor the dearest, without a word."""
    with pytest.raises(ValueError, match=message):
        made(*values)


def test_impossible_rates_are_refused() -> None:
    """Rates in percent would be costs a hundred times too high."""
    with pytest.raises(ValueError, match="miss_rate: got 36"):
        expected_cost(36, 0.3, made(0.5, 1, 1))
    with pytest.raises(ValueError, match=r"false_alarm_rate: got -0\.1"):
        expected_cost(0.1, -0.1, made(0.5, 1, 1))


def test_no_error_among_ten_questions_is_not_certain() -> None:
    """`0 [0–0]` beside MR .00 [.00–.28] is certainty that neither rate has."""
    flags, groups = np.tile([True, False], 10), np.repeat(np.arange(10), 2)
    found = expected_cost_interval(flags.astype(float), flags, groups, made(0.1, 20, 1))
    assert found is not None
    assert found.low == 0
    highest = wilson_interval(0, 10)
    assert highest is not None
    assert found.high == pytest.approx(np.hypot(2 * highest.high, 0.9 * highest.high))


@pytest.mark.parametrize("together", [-1, 1])
def test_it_covers_the_cost_where_groups_differ(together: int) -> None:
    """Percentiles of a bootstrap held the truth in 86 to 92 % of data sets whose groups differ in size."""
    rng, stakes = np.random.default_rng(0), made(0.01, 100, 1)
    sizes = [20] * 3 + [1] * 40
    groups = np.tile(np.repeat(np.arange(len(sizes)), sizes), 2)
    flags = np.arange(len(groups)) < len(groups) // 2
    truth, covered = expected_cost(0.2, 0.05, stakes), 0
    for _ in range(300):
        of_group = rng.normal(size=len(sizes))[groups] * np.where(flags, 1, together)
        noise = np.sqrt(0.6) * of_group + np.sqrt(0.4) * rng.normal(size=len(groups))
        wrong = noise < norm.ppf(np.where(flags, 0.2, 0.05))
        found = expected_cost_interval((flags ^ wrong) * 1.0, flags, groups, stakes)
        assert found is not None
        assert truth is not None
        covered += found.low <= truth <= found.high
    assert covered >= 0.93 * 300
