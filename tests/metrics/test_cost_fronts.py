"""What a verdict costs, and who judges best for it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import pearsonr

from monitorbench.metrics.cost_fronts import (
    COSTS,
    cost_fronts,
    cost_per_verdict,
    loss,
    pareto_front,
    pearson,
    tokens_of,
    usage,
)
from monitorbench.metrics.registry import from_json
from monitorbench.metrics.table import Place, Table

MAYBE = st.one_of(st.none(), st.sampled_from([0.0, 1.0, 2.0, 3.0]))
SHARE = st.one_of(st.none(), st.sampled_from([0.2, 0.5, 0.8]))


def numbers(auroc: float | None, miss_rate: float | None) -> Any:
    return from_json({"auroc": auroc, "miss_rate_at_far_5": miss_rate})


def test_the_mean_says_what_a_cascade_takes() -> None:
    """Its median is the cheap judge's, and hides the dear one that takes most of the time."""
    seconds = np.array([0.01] * 94 + [2.0] * 6)
    tokens = np.where(seconds > 1, 300.0, 0.0)
    taken = usage(seconds, tokens, np.where(seconds > 1, 1.0, 0.0), np.zeros(100))
    assert taken["seconds_p50"] == 0.01
    assert np.isclose(taken["seconds"], 0.94 * 0.01 + 0.06 * 2)
    assert np.isclose(tokens_of(taken), 0.06 * 301)
    assert cost_per_verdict(taken, is_baseline=False) == {
        "tokens": tokens_of(taken),
        "seconds": taken["seconds"],
    }


def test_what_was_not_measured_is_not_free() -> None:
    """Recorded labels without token counts would stand at the left edge as the cheapest of all."""
    zeros = np.zeros(3)
    unknown = {"tokens": None, "seconds": None}
    assert cost_per_verdict(usage(zeros, zeros, zeros, zeros), is_baseline=False) == unknown
    assert cost_per_verdict(None, is_baseline=False) == unknown
    assert cost_per_verdict(None, is_baseline=True) == {"tokens": 0.0, "seconds": 0.0}
    untimed = usage(zeros, zeros + 5, zeros, zeros)
    assert cost_per_verdict(untimed, is_baseline=False) == {"tokens": 5.0, "seconds": None}


@given(st.lists(st.tuples(MAYBE, MAYBE, SHARE, SHARE), max_size=8))
def test_nothing_on_a_front_is_beaten(rows: list[tuple[float | None, ...]]) -> None:
    """A front with a monitor that another beats at its price, or without the best, sells the wrong one."""
    judged = [(f"m{i}", "direct", numbers(*row[2:])) for i, row in enumerate(rows)]
    costs = {
        (name, prompt): dict(zip(COSTS, row[:2], strict=True))
        for (name, prompt, _), row in zip(judged, rows, strict=True)
    }
    table, usages = Table(), dict[str, Any]()
    for name, prompt, of in judged:
        table.add(Place(name, prompt), of)
        tokens, seconds = costs[name, prompt].values()
        usages[name] = {prompt: {"prompt_tokens": tokens, "completion_tokens": 0, "seconds": seconds}}
    found = cost_fronts(table, usages)
    for cost in COSTS:
        for quality, front in found[cost].items():
            points = {
                (name, prompt): (costs[name, prompt][cost], loss(of[quality].value, quality))
                for name, prompt, of in judged
                if costs[name, prompt][cost] is not None and of[quality].value is not None
            }
            expected = [
                [name, prompt]
                for (name, prompt), (price, bad) in points.items()
                if not any(a <= price and b <= bad and (a, b) != (price, bad) for a, b in points.values())
            ]
            assert front == expected


RATE = st.integers(0, 1000).map(lambda n: n / 1000)
DIRECT = [(0.36, 0.32), (0.17, 0.41), (0.15, 0.36), (0.30, 0.39)]
"""Overall (MR, FAR) of 2601.05752's four printed monitors under the direct prompt."""


@given(st.lists(st.tuples(RATE, RATE), min_size=4, max_size=30))
def test_it_is_scipy(points: list[tuple[float, float]]) -> None:
    """Whether MR and FAR trade off over monitors is read off this number and its interval."""
    x, y = zip(*points, strict=True)
    assume(len(set(x)) > 1 and len(set(y)) > 1)
    theirs = pearsonr(x, y)
    found = pearson(x, y)
    assert found["r"] == pytest.approx(theirs.statistic, abs=1e-12)
    assume(abs(theirs.statistic) < 1 - 1e-9)  # past it, rounding alone decides how near 1 the ends are
    assert found["r_ci"] == pytest.approx(list(theirs.confidence_interval()), abs=1e-9)


def test_on_the_printed_points() -> None:
    """Four printed monitors can't show the paper's trade-off: the interval says so where r alone wouldn't."""
    x, y = zip(*DIRECT, strict=True)
    found = pearson(x, y)
    assert found["r"] == pytest.approx(pearsonr(x, y).statistic)
    low, high = found["r_ci"] or (0, 0)
    assert low < -0.9 < 0.8 < high


def test_the_papers_r_over_its_22_monitors() -> None:
    """r(MR, FAR) = −.54 with one point per monitor: by Fisher's formula 0 is outside, though not by much."""
    theirs = np.tanh(np.arctanh(-0.54) + np.array([-1, 1]) * 1.959963984540054 / np.sqrt(19))
    x, y = np.linalg.qr(np.column_stack([np.ones(22), np.arange(22), np.arange(22) ** 2]))[0].T[1:]
    found = pearson(x, -0.54 * x + np.sqrt(1 - 0.54**2) * y)
    assert found["r"] == pytest.approx(-0.54)
    assert found["r_ci"] == pytest.approx(list(theirs))
    assert -0.16 < theirs[1] < -0.14


def test_where_it_is_undefined() -> None:
    """A monitor that flags everything, or three monitors, must not yield a NaN or a false certainty."""
    assert tuple(pearson([], []).values()) == (None, None, 0)
    assert tuple(pearson([0.1, 0.1, 0.1, 0.1], [0.1, 0.2, 0.3, 0.4]).values()) == (None, None, 4)
    assert tuple(pearson([0.1, 0.2, 0.4], [0.1, 0.3, 0.3]).values())[1:] == (None, 3)
    assert pearson([0.1, 0.2, 0.3, 0.4], [0.5, 0.4, 0.3, 0.2])["r"] == pytest.approx(-1)
    assert pearson(range(9), range(9, 0, -1))["r_ci"] == pytest.approx([-1, -1])
    with pytest.raises(ValueError, match="one length"):
        pearson([0.1], [0.1, 0.2])


def test_a_monitor_without_a_rate_is_left_out() -> None:
    """One that answered nothing has no MR: counted as 0 it would be the best of all."""
    x, y = [0.1, None, 0.5, 0.3, 0.9, 0.2], [0.4, 0.1, float("nan"), 0.2, 0.1, 0.3]
    found = pearson(x, y)
    assert found["n"] == 4
    assert found == pearson([0.1, 0.3, 0.9, 0.2], [0.4, 0.2, 0.1, 0.3])


COARSE_RATE = st.one_of(st.none(), st.sampled_from([0.0, 0.1, 0.2, 0.5, 0.7, 1.0]))
PUBLISHED = {
    "GPT-4o-mini": ((0.36, 0.32), (0.25, 0.50)),
    "DeepSeek-V3": ((0.17, 0.41), (0.13, 0.53)),
    "Gemini-2.5-Flash": ((0.15, 0.36), (0.07, 0.58)),
    "Qwen3-14B": ((0.30, 0.39), (0.20, 0.36)),
}
"""Overall (MR, FAR) of 2601.05752 under the direct and the evidence prompt."""


def dominates(p: tuple[float, float], q: tuple[float, float]) -> bool:
    return p[0] <= q[0] and p[1] <= q[1] and p != q


@given(st.lists(st.tuples(COARSE_RATE, COARSE_RATE), max_size=25))
def test_front_is_what_brute_force_finds(points: list[tuple[float | None, float | None]]) -> None:
    """A monitor wrongly left off the front is one a team never considers."""
    known = [p for p in points if None not in p]
    expected = [i for i, p in enumerate(points) if None not in p and not any(dominates(q, p) for q in known)]
    assert pareto_front(points) == expected


def test_front_of_the_published_points() -> None:
    """On the paper's figures: each prompt's front, read off its table by hand."""
    names = list(PUBLISHED)
    direct = pareto_front([points[0] for points in PUBLISHED.values()])
    evidence = pareto_front([points[1] for points in PUBLISHED.values()])
    assert [names[i] for i in direct] == ["GPT-4o-mini", "Gemini-2.5-Flash"]
    assert [names[i] for i in evidence] == ["DeepSeek-V3", "Gemini-2.5-Flash", "Qwen3-14B"]


def test_ties_are_kept_and_missing_rates_are_not() -> None:
    """Two equal monitors are both a choice; one that answered nothing is none."""
    assert pareto_front([(0.2, 0.2), (0.2, 0.2), (None, 0.0), (0.0, float("nan"))]) == [0, 1]
    assert pareto_front([]) == []
