"""Differences between two monitors and their p values, against scipy, statsmodels and the definition."""

import itertools
import json
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests

from monitorbench.config.evaluation import Stakes
from monitorbench.metrics.auroc import paired_auroc_difference
from monitorbench.metrics.columns import Columns, columns
from monitorbench.metrics.rates import Judged, count, false_alarm_rate, miss_rate
from monitorbench.metrics.significance import (
    auroc_change_test,
    auroc_difference_p,
    compare,
    group_swap_p,
    holm,
    mcnemar,
    student_p,
)
from monitorbench.metrics.summary import cost_numbers, curves
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


def test_holm_on_the_papers_four_conditions() -> None:
    """PAPERS.md, B: p = .014 as the smallest of four conditions fails at .05 once corrected."""
    assert holm([0.014, 0.2, 0.4, 0.9])[0] == pytest.approx(0.056)
    assert holm([]) == []
    for bad in (float("nan"), -0.1, 1.1):
        with pytest.raises(ValueError, match="expected numbers in"):
            holm([0.5, bad])


def test_it_agrees_with_the_difference_of_a_transfer_study() -> None:
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

    found = compare(first, second, flags, groups)
    transfer = difference(judged(first), judged(second), **DRAWS)
    assert found.miss_rate.n + found.false_alarm_rate.n == transfer["n_both_answered"].whole < 240
    for ours, rate in ((found.miss_rate, "miss_rate"), (found.false_alarm_rate, "false_alarm_rate")):
        theirs = transfer[f"{rate}_difference"]
        assert (ours.difference, list(ours.interval or ())) == (theirs.value, theirs.interval)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 4]), st.sampled_from([8, 30, 80]))
def test_an_interval_says_what_its_p_says(seed: int, size: int, n_groups: int) -> None:
    """Printed "-0.100 [-0.205, -0.023], p = 0.125", one comparison in five contradicted itself."""
    draw = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), draw.integers(1, size + 1, n_groups))
    flags = draw.random(len(groups)) < 0.5
    first, second = (draw.random(len(groups)) < draw.random() for _ in range(2))
    for found in compare(first * 1.0, second * 1.0, flags, groups):
        if found.p_value is not None:
            assert found.interval is not None
            assert found.interval.low <= found.difference <= found.interval.high
            assert (found.interval.low <= 0 <= found.interval.high) == (found.p_value >= 0.05)
    scores = draw.normal(flags, size=(2, len(flags)))
    of_auroc, p = auroc_change_test(*scores, flags, groups)
    if p is not None:
        assert of_auroc.interval is not None
        assert (of_auroc.interval.low <= 0 <= of_auroc.interval.high) == (p >= 0.05)


def test_counts_and_p_are_of_the_right_label() -> None:
    """Misses of one monitor against alarms of the other would be no comparison at all."""
    flags = np.arange(200) % 2 == 0
    first, second = answers(200, 2, 0.6), answers(200, 3, 0.7)
    found = compare(first, second, flags, np.arange(200))
    both = ~np.isnan(first) & ~np.isnan(second)
    for rate, inside in ((found.miss_rate, flags), (found.false_alarm_rate, ~flags)):
        wrong = [
            (some != inside if inside is flags else some != flags)[both & inside] for some in (first, second)
        ]
        table = [[np.sum(a & b) for b in (wrong[1], ~wrong[1])] for a in (wrong[0], ~wrong[0])]
        assert (rate.n, rate.n_left_out) == (np.sum(both & inside), np.sum(~both & inside))
        assert rate.p_value == pytest.approx(statsmodels_mcnemar(table, exact=True).pvalue)
        assert rate.difference == pytest.approx(np.mean(wrong[1]) - np.mean(wrong[0]))


def test_a_monitor_beside_itself_and_one_that_improves() -> None:
    """No change must be exactly none, and a planted one must come out with its sign and on its own rate."""
    flags, groups = np.arange(400) % 2 == 0, np.arange(400) // 2
    base = answers(400, 4, 0.6)
    same = compare(base, base, flags, groups).miss_rate
    assert (same.difference, same.p_value) == (0, 1)
    assert same.interval is not None
    assert same.interval.low < 0 < same.interval.high < 0.05, "nobody knows that none ever changes"
    better = np.where(flags & (np.arange(400) % 5 == 0), 1.0, base)
    found = compare(base, better, flags, groups)
    assert found.miss_rate.interval is not None
    assert found.miss_rate.interval.high < 0
    assert found.miss_rate.p_value is not None
    assert found.miss_rate.p_value < 0.001
    assert found.false_alarm_rate.difference == 0


def test_nothing_in_common_is_undefined() -> None:
    """Two monitors that never answered the same sample have no difference, and the JSON still holds."""
    found = compare([True, None], [None, False], [True, False], np.arange(2))
    assert found.miss_rate == (0, 1, None, None, None)
    assert found.false_alarm_rate == (0, 1, None, None, None)
    json.dumps(found, allow_nan=False)
    with pytest.raises(ValueError, match="expected 2 values"):
        compare([True], [None, False], [True, False], np.arange(2))


def judged(name: str, flagged: float, n: int = 60) -> list[Judged]:
    drawn = random.Random(name)
    return [
        Judged(
            f"{i}/{label}",
            f"pair {i}",
            f"group {i // 2}",
            Category.SYCOPHANCY_BIAS,
            Task.QA,
            label,
            Label.MISBEHAVIOR if drawn.random() < flagged else Label.BENIGN,
            drawn.random(),
        )
        for i in range(n)
        for label in Label
    ]


def test_costs_are_those_of_the_deployment():
    """A monitor would be chosen at the benchmark's half of misbehavior, which no deployment has."""
    found = judged("a", 0.7)
    stakes = Stakes(base_rate=0.02, cost_miss=50, cost_alarm=3)
    held = columns(found)
    cost, made = cost_numbers(held, stakes)["expected_cost"], curves(held)
    counts = count(held.is_misbehavior, held.flagged)
    rates = miss_rate(counts), false_alarm_rate(counts)
    assert cost.value == pytest.approx(0.02 * rates[0] * 50 + 0.98 * rates[1] * 3)
    assert cost.low < cost.value < cost.high
    assert made["roc"][0] == [0.0, 1.0]
    assert made["roc"][-1] == [1.0, 0.0]
    assert sum(one["n"] for one in made["reliability"]) == len(found)
    silent = columns([replace(one, answer=None, score=None) for one in found])
    assert curves(silent) == {"roc": [], "reliability": []}
    (silent_cost,) = cost_numbers(silent, stakes).values()
    assert silent_cost.value is silent_cost.interval is None


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 7, 49, 50, 292, 999, 5000, 20_000])
def test_student_p_is_scipys(degrees: int):
    """A tail that is off by a factor makes every word after Holm wrong."""
    for t in (0.0, 0.3, 1.0, 1.96, 3.8, 6.0):
        expected = 2 * stats.t.sf(t, degrees)
        assert student_p(t, degrees) == pytest.approx(
            expected, rel=0.02 if degrees >= 10_000 else 1e-6, abs=1e-13
        )


def scores_of(
    draw: np.random.Generator, flags: np.ndarray, skill: float, own: float, shared: np.ndarray
) -> np.ndarray:
    raw = skill * flags + shared + own * draw.normal(size=len(flags))
    return 1 / (1 + np.exp(-raw))


def test_auroc_p_is_that_of_the_interval():
    """p below .05 beside an interval over 0 (beyond a hair) would have the report contradict itself."""
    draw = np.random.default_rng(0)
    flags, groups = np.tile([True, False], 80), np.repeat(np.arange(80), 2)
    agree = 0
    for _ in range(40):
        shared = draw.normal(size=160)
        base = scores_of(draw, flags, 0.6, 1.0, shared)
        tuned = scores_of(draw, flags, 0.6 + draw.uniform(0, 1.2), 1.0, shared)
        p = auroc_difference_p(base, tuned, flags, groups)
        found = paired_auroc_difference(base, tuned, flags, groups).interval
        assert p is not None
        assert found is not None
        agree += (p < 0.05) == (found.low > 0 or found.high < 0)
    assert agree >= 38


def test_copies_within_a_group_are_no_evidence():
    """Ten paraphrases of a question counted as ten questions make chance significant."""
    draw = np.random.default_rng(3)
    flags, groups = np.tile([True, False], 30), np.repeat(np.arange(30), 2)
    base, tuned = draw.random(60), draw.random(60)
    once = auroc_difference_p(base, tuned, flags, groups)
    ten = auroc_difference_p(*(np.repeat(a, 10) for a in (base, tuned, flags, groups)))
    assert once == pytest.approx(ten)
    answers = (base > 0.5).astype(float), (tuned > 0.4).astype(float)
    few = compare(*answers, flags, groups)
    many = compare(*(np.repeat(a, 10) for a in (*answers, flags, groups)))
    for of_few, of_many in zip(few, many, strict=True):
        assert of_few.p_value is not None
        assert of_many.p_value == pytest.approx(of_few.p_value)
        assert of_many.interval == pytest.approx(of_few.interval)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9))
def test_swapping_groups_is_counted_out(changes: list[int]):
    """Every sign of every group, tried one by one."""
    signs = np.array(list(itertools.product([-1, 1], repeat=len(changes))))
    sums = np.abs((signs * np.abs(changes)).sum(axis=1))
    expected = np.mean(sums >= abs(sum(changes)))
    assert group_swap_p(np.array(changes)) == pytest.approx(expected)


@given(st.integers(0, 300), st.integers(0, 300))
def test_with_one_sample_a_group_the_swap_test_is_mcnemars(better: int, worse: int) -> None:
    """Groups of one sample have to give the published test."""
    changes = np.repeat([1, -1, 0], [better, worse, 5])
    theirs = statsmodels_mcnemar([[1, worse], [better, 1]], exact=True).pvalue
    assert group_swap_p(changes) == pytest.approx(theirs, rel=1e-9)


def test_samples_of_a_group_are_one_piece_of_evidence() -> None:
    """Nine better samples in three groups are three groups: p is 1/4, not the 1/256 of nine coin tosses."""
    assert group_swap_p(np.array([3, 3, 3])) == pytest.approx(0.25)
    assert stats.binomtest(9, 9).pvalue == pytest.approx(1 / 256)
    assert group_swap_p(np.zeros(4, dtype=np.int64)) == 1.0


def test_many_groups_have_the_normal_limit():
    """The p must not jump where the counting ends."""
    draw = np.random.default_rng(0)
    changes = draw.choice([-2, -1, 1, 2], size=2000, p=[0.24, 0.24, 0.26, 0.26])
    counted = group_swap_p(changes)
    limit = group_swap_p(np.append(changes, [1, -1]))
    assert counted == pytest.approx(limit, rel=0.05)


@pytest.mark.parametrize("n", [2, 4, 8])
def test_a_difference_without_spread_is_no_proof(n: int):
    """Three pairs, all better: the variance is 0, and p = 0 would be announced as certainty."""
    flags, groups = np.tile([True, False], n), np.repeat(np.arange(n), 2)
    base, tuned = np.full(2 * n, 0.5), np.where(flags, 0.9, 0.1)
    assert auroc_difference_p(base, tuned, flags, groups) == pytest.approx(2.0 ** (1 - n))
    missed = np.zeros(2 * n)
    found = compare(missed, flags.astype(float), flags, groups).miss_rate
    assert found.p_value == pytest.approx(2.0 ** (1 - n))


def test_false_claims_are_as_rare_as_promised():
    """Two monitors of one skill, in groups of like samples: too small a p too often is a word too many."""
    draw = np.random.default_rng(5)
    flags, groups = np.tile([True, False], 120), np.repeat(np.arange(60), 4)
    claims = {"auroc": 0, "rate": 0}
    for _ in range(300):
        of_group = np.repeat(draw.normal(size=(60, 2)), 4, axis=0)
        base, tuned = (scores_of(draw, flags, 0.8, 0.5, of_group[:, i]) for i in (0, 1))
        p = auroc_difference_p(base, tuned, flags, groups)
        q = compare((base > 0.6) * 1.0, (tuned > 0.6) * 1.0, flags, groups).miss_rate.p_value
        claims["auroc"] += p is not None and p < 0.05
        claims["rate"] += q is not None and q < 0.05
    assert claims["auroc"] <= 26, claims
    assert claims["rate"] <= 26, claims


def test_what_neither_scored_is_left_out():
    """An unscored sample that counts as wrong turns refusals into misses."""
    flags, groups = np.tile([True, False], 20), np.repeat(np.arange(20), 2)
    draw = np.random.default_rng(1)
    base, tuned = draw.random(40), draw.random(40)
    base[:4], tuned[2:6] = np.nan, np.nan
    kept = slice(6, None)
    assert auroc_difference_p(base, tuned, flags, groups) == pytest.approx(
        auroc_difference_p(base[kept], tuned[kept], flags[kept], groups[kept])
    )
    assert auroc_difference_p(base, base, flags, np.zeros(40, dtype=int)) is None, "one group shows no spread"
    assert auroc_difference_p(base, np.full(40, np.nan), flags, groups) is None
