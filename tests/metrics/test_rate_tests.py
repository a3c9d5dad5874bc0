"""Tests between monitors: counted once, corrected for all of them, over the same samples."""

import random
from dataclasses import replace

import pytest
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from monitorbench.metrics.columns import columns
from monitorbench.metrics.cost import Stakes
from monitorbench.metrics.rates import Judged, count, false_alarm_rate, miss_rate
from monitorbench.metrics.significance import Match, rate_tests
from monitorbench.metrics.summary import overall
from monitorbench.records import Category, Label, Task

DRAWS = {"resamples": 300, "seed": 0}


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


def test_each_match_gives_both_rates_and_holm_covers_them_all():
    """The best of many adapters would be called better by luck alone."""
    base = judged("base", 0.5)
    tuned = {name: judged(name, share) for name, share in (("a", 0.6), ("b", 0.9), ("c", 0.5))}
    found = rate_tests(
        [Match("base", n, "direct", "overall", columns(base), columns(t)) for n, t in tuned.items()], **DRAWS
    )
    assert [(test["second"], test["rate"]) for test in found] == [
        (name, rate) for name in "abc" for rate in ("miss_rate", "false_alarm_rate")
    ]
    for test in found:
        label = Label.MISBEHAVIOR if test["rate"] == "miss_rate" else Label.BENIGN
        table = [[0, 0], [0, 0]]
        for one, other in zip(base, tuned[test["second"]], strict=True):
            if one.label is label:
                table[one.answer is not label][other.answer is not label] += 1
        assert test["p"] == pytest.approx(mcnemar(table, exact=True).pvalue)
        assert test["difference"] == pytest.approx((table[0][1] - table[1][0]) / 60)
        low, high = test["difference_ci"]
        assert low <= test["difference"] <= high
    adjusted = multipletests([test["p"] for test in found], method="holm")[1]
    assert [test["p_holm"] for test in found] == pytest.approx(list(adjusted))


def test_an_unscored_match_has_no_p_and_is_not_counted():
    """A comparison that could not be made would make the others look worse, or be called significant."""
    base, tuned = columns(judged("base", 0.5)), columns(judged("a", 0.9))
    silent = columns([replace(one, answer=None) for one in judged("a", 0.9)])
    alone = rate_tests([Match("base", "a", "direct", "overall", base, tuned)], **DRAWS)
    both = rate_tests(
        [
            Match("base", "silent", "direct", "overall", base, silent),
            Match("base", "a", "direct", "overall", base, tuned),
        ],
        **DRAWS,
    )
    assert [test["p"] for test in both[:2]] == [test["p_holm"] for test in both[:2]] == [None, None]
    assert both[2:] == alone


def test_other_samples_are_refused():
    """Answers to different questions would be compared as if they were one monitor's slips."""
    ours, theirs = columns(judged("x", 0.5)), columns(judged("y", 0.5)[::-1])
    with pytest.raises(ValueError, match="not asked about the same samples"):
        rate_tests([Match("x", "y", "direct", "overall", ours, theirs)], **DRAWS)


def test_costs_are_those_of_the_deployment():
    """A monitor would be chosen at the benchmark's half of misbehavior, which no deployment has."""
    found = judged("a", 0.7)
    stakes = Stakes(base_rate=0.02, cost_miss=50, cost_alarm=3)
    held = columns(found)
    made = overall(held, stakes, **DRAWS)
    counts = count(held.is_misbehavior, held.flagged)
    rates = miss_rate(counts), false_alarm_rate(counts)
    assert made["expected_cost"] == pytest.approx(0.02 * rates[0] * 50 + 0.98 * rates[1] * 3)
    low, high = made["expected_cost_ci"]
    assert low < made["expected_cost"] < high
    assert made["roc"][0] == [0.0, 1.0]
    assert made["roc"][-1] == [1.0, 0.0]
    assert sum(one["n"] for one in made["reliability"]) == len(found)
    silent = overall(columns([replace(one, answer=None, score=None) for one in found]), stakes, **DRAWS)
    assert silent == {"roc": [], "reliability": [], "expected_cost": None, "expected_cost_ci": None}
