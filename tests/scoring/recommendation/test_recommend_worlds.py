"""`recommend` in worlds whose best monitor is known; `benchmarks/coverage/recommend.py` has more of them."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

sys.path.append(str(Path(__file__).parents[3]))

from benchmarks.coverage.recommend import CALIBRATE, WORLDS, Simulated, World, simulated
from monitorbench.config.deployment import Recommend
from monitorbench.metrics.choice.bounds import AlertBudget
from monitorbench.metrics.choice.curve import Suspicion, thresholds_of
from monitorbench.scoring.mix import Mix
from monitorbench.scoring.recommendation.candidates import Contender
from monitorbench.scoring.recommendation.more import more_for_budget
from monitorbench.scoring.recommendation.promised import allowed, n_promised, promise_of

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
    promise = one.allowed.promise
    assert promise is not None
    mix = Mix("given", {"rare": 0.4, "usual": 0.6}, np.inf) if weighted else None
    strata = np.where(one.held.groups % 4 == 0, "rare", "usual")
    scored = replace(promise.scored, strata=strata)
    settings = CALIBRATE.model_copy(update={"method": method, "alpha": 0.1})
    asked = promise_of(settings, mix, scored, one.held)
    assert asked.weights.equal is not weighted
    found = allowed(one.calibration, one.allowed.thresholds, asked, None)
    assert found.promised is not None
    assert found.promised.threshold is not None
    once = np.ones((1, 200))
    assert n_promised(found, asked, once).tolist() == [found.n_promised]
    assert 0 < found.n_promised < len(found.thresholds)


def test_a_budget_that_nothing_shows_to_be_kept_says_how_many_questions_would():
    """Otherwise: "no threshold" without a way on."""
    n = 40
    bad = np.tile([False, True], n)
    of = Suspicion(np.where(bad, 0.9, 0.1), bad, np.repeat(np.arange(n), 2), np.ones(2 * n))
    budget = AlertBudget(0.05, (0.001, 0.01), 0.05)
    found = allowed(of, thresholds_of(of), None, budget)
    assert found.n == 0
    more = more_for_budget(found, np.array(["a/b"] * 2 * n))
    assert more is not None
    wanted = n + more["n"]
    enough = np.tile([False, True], wanted)
    groups = np.repeat(np.arange(wanted), 2)
    kept = ~enough | (groups < n)  # more benign ones alone
    larger = Suspicion(np.where(enough, 0.9, 0.1)[kept], enough[kept], groups[kept], np.ones(kept.sum()))
    assert allowed(larger, thresholds_of(larger), None, budget).n == 1
