import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests

from monitorbench.metrics import bootstrap
from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.columns import Columns, columns
from monitorbench.metrics.rates import Judged
from monitorbench.metrics.significance import compare, holm, mcnemar
from monitorbench.metrics.transfer import difference
from monitorbench.records import Category, Label, Task

DRAWS = {"resamples": 2000, "seed": 0}


def answers(n: int, seed: int, skill: float) -> np.ndarray:
    """Right with probability `skill`, some unscored; samples of a group of four go together somewhat."""
    rng = np.random.default_rng(seed)
    right = rng.random(n) * 0.5 + rng.random(n)[np.arange(n) // 4] * 0.5 < skill
    found = np.where(np.arange(n) % 2 == 0, right, ~right).astype(float)
    found[rng.random(n) < 0.05] = np.nan
    return found


@given(st.integers(0, 600), st.integers(0, 600))
def test_mcnemar_is_statsmodels(only_first: int, only_second: int) -> None:
    """This p decides whether one monitor is called better; also at counts where n over k is past a float."""
    theirs = statsmodels_mcnemar([[5, only_first], [only_second, 5]], exact=True).pvalue
    assert mcnemar(only_first, only_second) == pytest.approx(theirs, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(("first", "second"), [(100_000, 101_000), (1, 3000), (250_000, 250_000), (0, 0)])
def test_mcnemar_at_the_ends(first: int, second: int) -> None:
    """A million verdicts have counts at which a naive binomial gives NaN, or 2 for equal counts."""
    theirs = statsmodels_mcnemar([[0, first], [second, 0]], exact=True).pvalue
    assert mcnemar(first, second) == mcnemar(second, first) == pytest.approx(theirs, rel=1e-7)
    with pytest.raises(ValueError, match="none below 0"):
        mcnemar(-1, 3)


def test_mcnemar_on_the_papers_pilot() -> None:
    """2602.03338's 16 recoveries against 9 disruptions: one-sided .115, no evidence, whatever p* says."""
    assert mcnemar(16, 9) / 2 == pytest.approx(0.115, abs=0.0005)


def test_holm_is_statsmodels() -> None:
    """Uncorrected, one of twenty equal monitors comes out better; ties and order must not matter."""
    rng = np.random.default_rng(0)
    p_values = np.round(np.append(rng.random(30), rng.random(40) ** 4), 3)  # with ties, zeros and small ones
    assert len(set(p_values)) < 70
    assert holm(p_values.tolist()) == pytest.approx(
        list(multipletests(p_values, method="holm")[1]), abs=1e-15
    )


@given(st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.01, 0.01, 0.04])), max_size=12))
def test_holm_is_its_definition(p_values: list[float]) -> None:
    """Each p is judged by the strictest step up to its own: one that skips a step would claim too much."""
    ranked = sorted(p_values)
    steps = [max((len(ranked) - j) * ranked[j] for j in range(i + 1)) for i in range(len(ranked))]
    expected = [min(1, steps[ranked.index(p) + ranked.count(p) - 1]) for p in p_values]
    assert holm(p_values) == pytest.approx(expected, abs=1e-15)


def test_holm_on_the_papers_four_conditions() -> None:
    """PAPERS.md, B: p = .014 as the smallest of four conditions fails at .05 once corrected."""
    assert holm([0.014, 0.2, 0.4, 0.9])[0] == pytest.approx(0.056)
    assert holm([]) == []
    for bad in (float("nan"), -0.1, 1.1):
        with pytest.raises(ValueError, match="expected numbers in"):
            holm([0.5, bad])


def test_it_agrees_with_the_probes_difference() -> None:
    """Two tables of one report must not show two differences between the same two monitors."""
    flags, groups = np.arange(240) % 2 == 0, np.arange(240) // 4
    first, second = answers(240, 0, 0.6), answers(240, 1, 0.75)
    label = {1.0: Label.MISBEHAVIOR, 0.0: Label.BENIGN}
    cell = (Category.SYCOPHANCY_BIAS, Task.QA)

    def judged(some: np.ndarray) -> Columns:
        return columns(
            [
                Judged(str(i), "", f"{groups[i]:03}", *cell, label[float(flags[i])], label.get(one), None)
                for i, one in enumerate(some.tolist())
            ]
        )

    found = compare(first, second, flags, groups, **DRAWS)
    probe = difference(judged(first), judged(second), **DRAWS)
    assert found.miss_rate.n + found.false_alarm_rate.n == probe["n_both_answered"] < 240
    for ours, rate in ((found.miss_rate, "miss_rate"), (found.false_alarm_rate, "false_alarm_rate")):
        assert ours.difference == probe[f"{rate}_difference"]
        assert list(ours.interval or ()) == probe[f"{rate}_difference_ci"]


def test_the_intervals_are_the_plain_cluster_bootstraps() -> None:
    """The interval by kinds of group must be the one from drawing groups one by one."""
    flags, groups = np.arange(240) % 2 == 0, np.arange(240) // 4
    first, second = answers(240, 0, 0.6), answers(240, 1, 0.75)
    kept = ~np.isnan(first) & ~np.isnan(second)
    change = (second != flags).astype(int) - (first != flags)
    found = compare(first, second, flags, groups, resamples=20_000, seed=0)
    for ours, label in ((found.miss_rate, flags), (found.false_alarm_rate, ~flags)):

        def plain(weights: IntArray, inside: np.ndarray = (label & kept)[kept]) -> FloatArray:
            return (weights @ (change[kept] * inside)) / (weights @ inside)

        slow = bootstrap.interval(plain, groups[kept], resamples=20_000, seed=1)
        assert slow is not None
        assert ours.interval == pytest.approx(slow, abs=0.04 * (slow.high - slow.low))


def test_counts_and_p_are_of_the_right_label() -> None:
    """Misses of one monitor against alarms of the other would be no comparison at all."""
    flags = np.arange(200) % 2 == 0
    first, second = answers(200, 2, 0.6), answers(200, 3, 0.7)
    found = compare(first, second, flags, np.arange(200), **DRAWS)
    both = ~np.isnan(first) & ~np.isnan(second)
    for rate, inside in ((found.miss_rate, flags), (found.false_alarm_rate, ~flags)):
        wrong = [
            (some != inside if inside is flags else some != flags)[both & inside] for some in (first, second)
        ]
        table = [[np.sum(a & b) for b in (wrong[1], ~wrong[1])] for a in (wrong[0], ~wrong[0])]
        assert (rate.n, rate.n_left_out) == (np.sum(both & inside), np.sum(~both & inside))
        assert (rate.only_first_wrong, rate.only_second_wrong) == (table[0][1], table[1][0])
        assert rate.p_value == pytest.approx(statsmodels_mcnemar(table, exact=True).pvalue)
        assert rate.difference == pytest.approx(np.mean(wrong[1]) - np.mean(wrong[0]))


def test_a_monitor_beside_itself_and_one_that_improves() -> None:
    """No change must be exactly none, and a planted one must come out with its sign and on its own rate."""
    flags, groups = np.arange(400) % 2 == 0, np.arange(400) // 2
    base = answers(400, 4, 0.6)
    same = compare(base, base, flags, groups, **DRAWS).miss_rate
    assert (same.difference, same.interval, same.p_value) == (0, (0, 0), 1)
    better = np.where(flags & (np.arange(400) % 5 == 0), 1.0, base)
    found = compare(base, better, flags, groups, **DRAWS)
    assert found.miss_rate.interval is not None
    assert found.miss_rate.interval.high < 0
    assert found.miss_rate.p_value is not None
    assert found.miss_rate.p_value < 0.001
    assert found.false_alarm_rate.difference == 0


def test_nothing_in_common_is_undefined() -> None:
    """Two monitors that never answered the same sample have no difference, and the JSON still holds."""
    found = compare([True, None], [None, False], [True, False], np.arange(2), **DRAWS)
    assert found.miss_rate == (0, 1, 0, 0, None, None, None)
    assert found.false_alarm_rate == (0, 1, 0, 0, None, None, None)
    json.dumps(found, allow_nan=False)
    with pytest.raises(ValueError, match="expected 2 values"):
        compare([True], [None, False], [True, False], np.arange(2), **DRAWS)
