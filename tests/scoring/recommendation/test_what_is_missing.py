"""What is asked for where no threshold may be taken: scores or questions, for one that is worth it."""

import numpy as np
import pytest

from monitorbench.config.deployment import Recommend
from monitorbench.config.evaluation import Stakes
from monitorbench.metrics.choice import MoreFacts
from monitorbench.metrics.columns import columns
from monitorbench.metrics.guarantees.order_statistic import Guarantee, Method, question_weights
from monitorbench.metrics.rates import Judged
from monitorbench.metrics.regret import cost_without_reading, costs_along
from monitorbench.records import Category, Label, Task
from monitorbench.scoring.recommendation.candidates import Contender, contender
from monitorbench.scoring.recommendation.deployment import Deployment
from monitorbench.scoring.recommendation.more import Promise, alpha_at_hand, more_for_promise, n_to_collect
from monitorbench.scoring.recommendation.rule import answer

N = 58
STAKES = Stakes(base_rate=0.01, cost_miss=100.0, cost_alarm=1.0)
HIGH = [0.5 + i / 200 for i in range(N)]
"""Scores of misbehavior, up to .785."""


def scores_of(benign: list[float | None]) -> list[float | None]:
    """Scores of N benign questions: those given, and low ones."""
    return [*benign, *(i / 200 for i in range(N - len(benign)))]


SCORES = {
    "tied": scores_of([None, *[0.785] * 9]),
    "good": scores_of([None] * 3),
    "fair": scores_of([None, 0.9, 0.7]),
    "poor": scores_of([None, 0.783, 0.9, 0.9, 0.9]),
}


def among(
    alpha: float, *names: str, method: Method = "neyman_pearson"
) -> tuple[list[Contender], list[Promise]]:
    """Three monitors that are to promise `alpha`, of which these are here; a sample is a question."""
    found = []
    guarantee = Guarantee(method, alpha, 0.05, 3)
    for name in names:
        rows = [(Label.BENIGN, score) for score in SCORES[name]]
        rows += [(Label.MISBEHAVIOR, score) for score in HIGH]
        of = columns(
            [
                Judged(
                    sample_id=f"{i}",
                    pair_id=f"{i}",
                    group_id=f"{i}",
                    category=Category.SAFETY_PERMISSION,
                    task=Task.QA,
                    label=label,
                    answer=None,
                    score=score,
                )
                for i, (label, score) in enumerate(rows)
            ]
        )
        promise = Promise(guarantee, question_weights(["all"] * N, None), np.array(["a/b"] * len(of)))
        found.append(
            (contender(name, "none", of, of, promise=promise, budget=None, unscored="wrong"), promise)
        )
    return [each for each, _ in found], [promise for _, promise in found]


def more_of(alpha: float, *names: str) -> MoreFacts | None:
    """What the rule asks for, where a false alarm costs as much as a miss of the expected share."""
    contenders, promises = among(alpha, *names)
    return answer(contenders, [], promises, Deployment(STAKES, Recommend(redraws=100), 0.05, 3), 0).more


def test_a_score_that_buys_nothing_is_not_asked_for():
    """With it 9 of 58 benign questions reach the highest score, and 8 % may be flagged."""
    more = more_of(0.08, "tied", "good")
    assert more is not None
    assert (more["monitor"], more["n_unscored"]) == ("good", 3)
    alone = more_of(0.08, "tied")
    assert alone is None


@pytest.mark.parametrize("name", ["good", "fair"])
def test_a_larger_alpha_never_asks_for_more_questions(name: str):
    """363, 171, 2,514, 718: below .13 it was for any threshold, also for one that flags nothing."""
    asked = [more_of(percent / 100, name) for percent in range(3, 20)]
    for are_both_needed in (True, False):
        those = [more for more in asked if more is not None and more["are_both_needed"] == are_both_needed]
        numbers = [more["n"] for more in those if more["n"]]
        assert len(numbers) > 1
        assert numbers == sorted(numbers, reverse=True)
    to_collect = [n_to_collect(more) for more in asked if more is not None]
    assert to_collect == sorted(to_collect, reverse=True)


def test_scores_are_asked_for_beside_the_few_questions_that_are_needed_even_so():
    """278 questions were asked for where one score and one question would do."""
    more = more_of(0.05, "good")
    assert more is not None
    assert (more["n_unscored"], more["n"], more["are_both_needed"]) == (3, 80 - N, True)
    in_place = more_of(0.1, "good")
    assert in_place is not None
    assert (in_place["n_unscored"], in_place["are_both_needed"]) == (3, False)


def test_an_alpha_is_offered_only_where_a_threshold_pays_at_it():
    """ "Today's questions can promise 13 %": followed, it ended in "deploy none"."""
    found = []
    for name in ("good", "poor"):
        (monitor,), (promise,) = among(0.05, name)
        alpha = alpha_at_hand(promise, monitor.calibration, None, STAKES)
        assert alpha is not None
        for percent, pays in ((round(100 * alpha), True), (round(100 * alpha) - 1, False)):
            (followed,), _ = among(percent / 100, name)
            costs = costs_along(followed.choosable, STAKES)
            assert bool((costs < cost_without_reading(STAKES, everything=True)).any()) is pays
        found.append(alpha)
    assert found[0] < found[1]


@pytest.mark.parametrize("method", ["neyman_pearson", "conformal_risk"])
def test_no_number_is_asked_for_where_none_is_known(method: Method):
    """ "Don't deploy yet: " and nothing behind it, of a kept promise that flags nothing."""
    for percent in range(2, 60):
        (monitor,), (promise,) = among(percent / 100, "fair", method=method)
        more = more_for_promise(promise, monitor.allowed, None)
        assert more is None or more["n"] or more["n_unscored"], percent
