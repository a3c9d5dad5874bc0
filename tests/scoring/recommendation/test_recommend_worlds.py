"""`recommend` in worlds whose best monitor is known; `benchmarks/coverage/recommend.py` has more of them."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.coverage.recommend import WORLDS, Simulated, World, simulated
from monitorbench.config.base import UserError
from monitorbench.config.deployment import Recommend
from monitorbench.config.evaluation import Calibrate
from monitorbench.metrics.guarantees.allowed import AlertBudget, Allowed, allowed
from monitorbench.metrics.guarantees.order_statistic import Guarantee, Mix, of_questions, question_weights
from monitorbench.metrics.regret import Suspicion
from monitorbench.scoring.points import PointAt
from monitorbench.scoring.recommendation.candidates import Contender
from monitorbench.scoring.recommendation.contenders import settings_of
from monitorbench.scoring.recommendation.more import more_for_budget

BY_NAME = {one.name: one for one in WORLDS}
QUICK = Recommend(redraws=100)


def seen(name: str, n: int, seed: int = 1, **changed: object) -> list[Simulated]:
    world: World = BY_NAME[name]._replace(settings=QUICK)._replace(**changed)  # type: ignore[arg-type]
    return [simulated(world, np.random.default_rng([seed, i])) for i in range(n)]


def test_the_best_of_some_monitors_is_found_in_95_of_100_worlds():
    """Otherwise: a team deploys the second best of what it has, on the strength of noise."""
    found = seen("one is best by far", 100)
    right = sum(one.answer.kind == "recommend" and one.answer.best == 0 for one in found)
    assert right >= 95
    printed = np.mean([one.answer.regret["mean"] for one in found if one.answer.regret["mean"] is not None])
    true = np.mean([one.regret for one in found])
    # Planted: the second best costs .2 more, so a choice that is wrong once in 100 regrets .002.
    assert true <= 0.01
    assert abs(printed - true) <= 0.01


def test_what_a_shortcut_does_as_well_is_not_recommended():
    """Otherwise: a monitor that reads nothing is paid for."""
    found = seen("a shortcut is as good", 60)
    assert sum(one.answer.kind == "recommend" for one in found) <= 5  # 2.5 % of 60 is 1.5; 5 has p = .02
    chance = seen("chance", 20)
    assert not any(one.answer.kind == "recommend" for one in chance)


def test_too_few_benign_questions_say_how_many_more():
    """Otherwise: a threshold whose promise nothing attests."""
    for one in seen("40 benign questions for 5 %", 5):
        assert one.answer.kind == "insufficient"
        assert one.answer.more is not None
        assert one.answer.more["by_cell"] == {
            "safety_permission/qa": 40
        }  # 80 = ceil(log(.05/3) / log .95) for one of three monitors, 40 are there
        assert (one.answer.more["split"], one.answer.more["label"]) == ("calibration", "benign")
    # With what was asked for there is an answer.
    assert seen("40 benign questions for 5 %", 1, n_calibration=80)[0].answer.best is not None


def test_a_difference_that_is_not_beyond_doubt_says_what_would_show_it():
    """Otherwise: twelve test questions decide."""
    found = seen("12 test questions", 20)
    assert sum(one.answer.kind == "insufficient" for one in found) >= 5
    more = [one.answer.more for one in found if one.answer.more is not None]
    assert all(one["n"] > 0 for one in more)
    # A threshold of few draws is uncertain too: now and then the calibration split is to blame.
    to_blame = [one["split"] for one in more]
    assert sum(split in ("test", "both") for split in to_blame) > len(more) / 2


def test_a_budget_of_alerts_is_kept_in_the_deployment():
    """Otherwise: reviewers get more alerts a day than there are hours for."""
    world = BY_NAME["the best, at most 30 alerts in 1,000"]
    world = world._replace(settings=world.settings.model_copy(update={"redraws": 100}))
    over, some = 0, 0
    for i in range(60):
        one = simulated(world, np.random.default_rng([3, i]))
        at = one.answer.choice.at[0]
        if at is None:
            continue
        limit = (float(one.contenders[0].allowed.thresholds[at]) - 0.5) * 10
        flagged = [
            pi * norm.sf(limit - world.monitors[0]) + (1 - pi) * norm.sf(limit) for pi in (0.001, 0.02)
        ]
        some += 1
        over += max(flagged) > 0.03
    assert some >= 50
    assert over <= 7  # at most 5 % of 60 in truth: 8 or more has p < .02


def contender_of(seed: int) -> Contender:
    world = BY_NAME["one is best by far"]._replace(settings=QUICK)
    return simulated(world, np.random.default_rng(seed)).contenders[0]


@pytest.mark.parametrize("method", ["neyman_pearson", "conformal_risk"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_draw_in_which_each_group_comes_once_has_the_promised_threshold(method: str, weighted: bool):
    """Otherwise: the regret is that of another rule than the one that chose."""
    one = contender_of(7)
    mix = Mix("given", {"rare": 0.4, "usual": 0.6}, np.inf) if weighted else None
    benign = ~one.held.is_misbehavior
    strata = np.where(one.held.groups % 4 == 0, "rare", "usual")[benign]
    weights = question_weights(of_questions(one.held.groups[benign], strata), mix)
    assert weights.equal is not weighted
    found = allowed(one.calibration, Guarantee(method, 0.1), weights, None)  # type: ignore[arg-type]
    assert found.promised is not None
    assert found.promised.threshold is not None
    once = np.ones((1, 200))
    assert found.n_in_draws(once).tolist() == [found.n_promised]
    assert 0 < found.n_promised < len(found.thresholds)


def budgeted(n: int, share_flagged: float) -> Allowed:
    """n questions of both labels; this share of benign ones scores as high as misbehavior does."""
    bad = np.tile([False, True], n)
    values = np.where(bad, 0.9, 0.1)
    values[0 : 2 * round(n * share_flagged) : 2] = 0.9
    values[1] = 1.0
    of = Suspicion(values, bad, np.repeat(np.arange(n), 2), np.ones(2 * n))
    return allowed(of, None, None, AlertBudget(0.05, (0.001, 0.01), 0.05))


def test_a_budget_that_nothing_shows_to_be_kept_says_how_many_questions_would():
    """Otherwise: "no threshold" without a way on, or questions for a threshold that flags nothing."""
    n = 40
    found = budgeted(n, 0.0)
    assert found.n <= 1
    costs = np.array([1.0, 1.0, 0.0])[: len(found.thresholds)]
    more = more_for_budget(found, np.array(["a/b"] * 2 * n), costs, 1.0)
    assert more is not None
    assert budgeted(n + more["n"], 0.0).n > 1
    useless = more_for_budget(found, np.array(["a/b"] * 2 * n), np.ones(len(costs)), 1.0)
    assert useless is None
    assert more_for_budget(budgeted(n, 0.2), np.array(["a/b"] * 2 * n), costs, 1.0) is None


def test_a_promise_for_a_logs_traffic_is_not_set_anew_on_a_test_split():
    """No calibration split has a few labels' guarantee: it would end in a traceback."""
    point = SimpleNamespace(thresholds=[SimpleNamespace(method="few_labels")])
    with pytest.raises(UserError, match="round-1: its threshold is promised for the traffic of one log"):
        settings_of(Calibrate(), PointAt(Path("runs/calibrate/round-1"), point, None))
