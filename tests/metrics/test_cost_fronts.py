"""What a verdict costs, and who judges best for it."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.metrics.cost_fronts import COSTS, cost_fronts, cost_per_verdict, loss, tokens_of, usage
from monitorbench.metrics.registry import from_json

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
    found = cost_fronts(judged, costs)
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
