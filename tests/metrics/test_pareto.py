from hypothesis import given
from hypothesis import strategies as st

from monitorbench.metrics.trade_off import pareto_front

RATE = st.one_of(st.none(), st.sampled_from([0.0, 0.1, 0.2, 0.5, 0.7, 1.0]))
PUBLISHED = {
    "GPT-4o-mini": ((0.36, 0.32), (0.25, 0.50)),
    "DeepSeek-V3": ((0.17, 0.41), (0.13, 0.53)),
    "Gemini-2.5-Flash": ((0.15, 0.36), (0.07, 0.58)),
    "Qwen3-14B": ((0.30, 0.39), (0.20, 0.36)),
}
"""Overall (MR, FAR) of 2601.05752 under the direct and the evidence prompt."""


def dominates(p: tuple[float, float], q: tuple[float, float]) -> bool:
    return p[0] <= q[0] and p[1] <= q[1] and p != q


@given(st.lists(st.tuples(RATE, RATE), max_size=25))
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
