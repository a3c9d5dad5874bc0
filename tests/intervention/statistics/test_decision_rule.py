"""The decision rule by itself: where the interval lies, and what each guard takes back."""

import pytest

from monitorbench.config.pilot import PilotStatistics
from monitorbench.intervention.statistics.decision_rule import (
    Decision,
    Evidence,
    decide,
    decide_elsewhere,
    either_way,
    side_of_margin,
)
from monitorbench.intervention.statistics.intervals import EffectIntervals
from monitorbench.metrics.rates import Interval

SETTINGS = PilotStatistics()
GAIN = EffectIntervals(Interval(0.05, 0.2), Interval(0.02, 0.3))
LOSS = EffectIntervals(Interval(-0.2, -0.05), Interval(-0.3, -0.02))


def evidence(drawn: EffectIntervals = GAIN, **other: object) -> Evidence:
    """Evidence that every guard lets pass, but for what is given."""
    plain = Evidence(drawn=drawn, exact_p=0.001, n_tasks=50, n_changed=20)
    return plain._replace(**other)


@pytest.mark.parametrize(
    ("interval", "margin", "expected"),
    [
        ((0.01, 0.2), 0.0, Decision.INTERVENE),
        ((0.0, 0.2), 0.0, Decision.INCONCLUSIVE),
        ((-0.2, 0.0), 0.0, Decision.INCONCLUSIVE),
        ((-0.2, -0.01), 0.0, Decision.DO_NOT_INTERVENE),
        ((0.01, 0.2), 0.02, Decision.INCONCLUSIVE),
        ((0.03, 0.2), 0.02, Decision.INTERVENE),
        ((0.001, 0.01), 0.02, Decision.DO_NOT_INTERVENE),
    ],
)
def test_the_decision_is_where_the_interval_lies(
    interval: tuple[float, float], margin: float, expected: Decision
) -> None:
    """A bound on the margin itself decides nothing."""
    assert side_of_margin(Interval(*interval), margin) is expected


def test_without_a_guard_in_the_way_the_interval_decides() -> None:
    """A guard that always fires would make every pilot inconclusive, and seem prudent."""
    assert decide(evidence(), SETTINGS) == (Decision.INTERVENE, GAIN, [])
    assert decide(evidence(LOSS), SETTINGS) == (Decision.DO_NOT_INTERVENE, LOSS, [])
    assert decide(evidence(), PilotStatistics(margin=30.0)).decision is Decision.DO_NOT_INTERVENE


@pytest.mark.parametrize("drawn", [GAIN, LOSS])
def test_the_exact_test_takes_a_decision_back(drawn: EffectIntervals) -> None:
    """Five lucky tasks must switch nothing on; and the printed interval must not contradict the decision."""
    found = decide(evidence(drawn, exact_p=0.06), SETTINGS)
    assert found.decision is Decision.INCONCLUSIVE
    assert 0 in found.intervals.delta_success
    assert 0 in found.intervals.p_minus_p_star
    assert found.notes == ["the exact test does not bear out the draws: the interval is widened to 0"]


def test_looks_are_decided_by_the_last_of_them() -> None:
    """The interval of one look at the end errs oftener than stated where one has looked before."""
    found = decide(evidence(last_look=Interval(-0.01, 0.2)), SETTINGS)
    assert (found.decision, found.notes) == (Decision.INCONCLUSIVE, [])
    assert found.intervals == (Interval(-0.01, 0.2), Interval(0.0, 0.3))
    assert decide(evidence(last_look=Interval(0.01, 0.2)), SETTINGS).decision is Decision.INTERVENE


@pytest.mark.parametrize(
    ("known", "notes"),
    [({"n_tasks": 1}, ["no decision can come of one task"]), ({"n_changed": 0}, [])],
)
@pytest.mark.parametrize("drawn", [GAIN, LOSS])
def test_one_task_or_no_change_decides_nothing(
    drawn: EffectIntervals, known: dict[str, int], notes: list[str]
) -> None:
    """What is added before drawing would decide by itself, with a large margin for instance."""
    found = decide(evidence(drawn, **known), SETTINGS)
    assert (found.decision, found.notes) == (Decision.INCONCLUSIVE, notes)


@pytest.mark.parametrize("one", Decision)
@pytest.mark.parametrize("other", Decision)
def test_a_decision_that_hangs_on_broken_runs_is_none(one: Decision, other: Decision) -> None:
    """A flaky endpoint would be credited to the intervention, or held against it."""
    assert either_way(one, other) is (one if one is other else Decision.INCONCLUSIVE)


@pytest.mark.parametrize(("score", "side"), [((0.004, 0.3), 0), ((-0.01, 0.3), 0), ((-0.3, -0.004), 1)])
def test_the_exact_test_finds_what_the_draws_miss(score: tuple[float, float], side: int) -> None:
    """Five recoveries and no disruption in 30 tasks: what is added before drawing must not hide them."""
    unsure = EffectIntervals(Interval(-0.02, 0.03), Interval(-0.1, 0.2))
    found = decide(evidence(unsure, exact_p=0.03, score=Interval(*score)), SETTINGS)
    assert found.decision is (Decision.INTERVENE, Decision.DO_NOT_INTERVENE)[side]
    assert abs(found.intervals.delta_success[side]) == pytest.approx(
        max(0.0, (1, -1)[side] * score[side]), abs=1e-5
    )
    assert found.intervals.delta_success[1 - side] == unsure.delta_success[1 - side]
    assert found.notes == []
    for without in (evidence(unsure, exact_p=0.03), evidence(unsure, exact_p=0.06, score=Interval(*score))):
        assert decide(without, SETTINGS) == (Decision.INCONCLUSIVE, unsure, [])


def test_another_deployment_is_decided_only_where_its_effect_is_known() -> None:
    """An interval of what is undefined is the widest, but one end of it may still lie on a margin's side."""
    gain = Interval(0.05, 0.2)
    assert decide_elsewhere(0.1, gain, evidence(), SETTINGS) is Decision.INTERVENE
    assert decide_elsewhere(None, gain, evidence(), SETTINGS) is Decision.INCONCLUSIVE
    assert decide_elsewhere(0.1, gain, evidence(n_changed=0), SETTINGS) is Decision.INCONCLUSIVE
    looks = PilotStatistics(sequential=True)
    assert decide_elsewhere(0.1, gain, evidence(), looks) is Decision.INCONCLUSIVE
