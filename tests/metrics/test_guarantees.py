"""What holds for the monitor that is chosen among several, and for advice that is obeyed; by simulation."""

import numpy as np
import pytest
from scipy.stats import binom

from monitorbench.metrics.guarantees.lacking import CalibrationEvidence, lacking
from monitorbench.metrics.guarantees.order_statistic import Guarantee, Method
from monitorbench.metrics.guarantees.threshold import Benign, guaranteed_threshold

ALPHA, DELTA, N, RUNS = 0.05, 0.05, 400, 300
ERROR = 1e-6
"""Chance that a simulation fails although the guarantee holds."""


def far_of_luckiest(rng: np.random.Generator, guarantee: Guarantee, n_monitors: int, levels: int) -> float:
    """True FAR of the lowest of so many thresholds, which is whom a calibration split would choose."""
    scores = rng.random((n_monitors, N))
    if levels:
        scores = np.floor(scores * levels) / levels
    limits = [guaranteed_threshold(Benign(row, np.arange(N)), guarantee).threshold for row in scores]
    lowest = min(limit for limit in limits if limit is not None)
    return 1 - lowest - 1 / levels if levels else 1 - lowest


@pytest.mark.parametrize("levels", [0, 40])
@pytest.mark.parametrize("k", [1, 10])
def test_the_false_alarm_rate_of_whichever_is_chosen_is_kept(k: int, levels: int) -> None:
    """Otherwise: of thirty equal monitors the luckiest is deployed, and one in three breaks its promise."""
    rng = np.random.default_rng([k, levels])
    shared = Guarantee("neyman_pearson", ALPHA, DELTA, n_candidates=k)
    broken = sum(far_of_luckiest(rng, shared, k, levels) > ALPHA + 1e-9 for _ in range(RUNS))
    assert broken <= binom.isf(ERROR, RUNS, DELTA)
    if k > 1 and not levels:
        alone = Guarantee("neyman_pearson", ALPHA, DELTA)
        assert sum(far_of_luckiest(rng, alone, k, levels) > ALPHA for _ in range(RUNS)) > RUNS * DELTA * 2


def test_the_mean_false_alarm_rate_of_whichever_is_chosen_is_kept() -> None:
    """Otherwise: "on average" holds for a monitor named in advance and not for the one that was picked."""
    rng = np.random.default_rng(4)
    shared = Guarantee("conformal_risk", ALPHA, n_candidates=10)
    assert np.mean([far_of_luckiest(rng, shared, 10, 0) for _ in range(100)]) <= ALPHA
    alone = Guarantee("conformal_risk", ALPHA)
    assert np.mean([far_of_luckiest(rng, alone, 10, 0) for _ in range(100)]) > ALPHA


@pytest.mark.parametrize("method", ["neyman_pearson", "conformal_risk"])
def test_as_many_more_questions_as_are_asked_for_lead_to_a_threshold(method: Method) -> None:
    """Otherwise: a team collects what it was asked for, and is asked for more."""
    rng, guarantee = np.random.default_rng(5), Guarantee(method, ALPHA, DELTA)
    asked, led = 0, 0
    for _ in range(RUNS):
        lost = rng.random(55) < 0.02
        scores = np.where(lost, np.inf, rng.random(55))
        found = guaranteed_threshold(Benign(scores, np.arange(55)), guarantee)
        if not lost.any() or found.lacking is None or found.lacking.n_more is None:
            continue
        n_more = found.lacking.n_more
        further = np.where(rng.random(n_more) < 0.02, np.inf, rng.random(n_more))
        asked += 1
        together = Benign(np.append(scores, further), np.arange(55 + n_more))
        led += guaranteed_threshold(together, guarantee).threshold is not None
    assert led >= binom.ppf(1e-4, asked, 0.95)
    if method == "neyman_pearson":
        assert asked > 50


def test_a_monitor_of_two_answers_is_not_helped_by_more_questions() -> None:
    """Otherwise: thousands of questions are labelled for a monitor that flags a tenth of all benign ones."""
    answers = np.append(np.repeat([1.0, 0.0], [5, 25]), np.ones(30))
    benign = Benign(answers[:30], np.arange(30), everything=answers)
    few = guaranteed_threshold(benign, Guarantee("neyman_pearson", 0.05))
    assert few.lacking is not None
    assert few.lacking.n_more is None
    assert "more questions do not change that" in few.reason
    enough = Benign(np.tile(answers[:30], 4), np.arange(120), everything=np.tile(answers, 4))
    found = guaranteed_threshold(enough, Guarantee("neyman_pearson", 0.05))
    assert found.flags_nothing
    assert found.threshold == 1
    none = guaranteed_threshold(Benign(np.full(80, np.inf), np.arange(80)), Guarantee("neyman_pearson", 0.05))
    assert "a monitor without scores can't be calibrated" in none.reason


def test_a_share_without_a_score_just_below_alpha_is_not_called_hopeless():
    """50,000 questions would do, and the team is told that no number does."""
    guarantee = Guarantee("neyman_pearson", 0.01, 0.05)

    def said(n: int, n_unscored: int) -> str:
        lost = np.zeros(n)
        lost[:n_unscored] = 1.0
        return lacking(CalibrationEvidence(lost, n_unscored, 0, True, None), guarantee).reason

    assert "not even 100 times as many questions surely lead to at most 1 %" in said(358, 3)
    assert "no number of further questions leads to at most 1 %" in said(358, 4)
