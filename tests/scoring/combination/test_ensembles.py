from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from monitorbench.config.base import UserError
from monitorbench.metrics.guarantees.order_statistic import Guarantee
from monitorbench.records import Split
from monitorbench.scoring.calibrate import calibrated
from monitorbench.scoring.calibration_split import (
    CalibrationScores,
    calibration_scores,
    divide,
    refuse_fitted_samples,
)
from monitorbench.scoring.combination.ensembles import (
    Ensemble,
    choose_members,
    combine,
    fit_stack,
    pessimistic_auroc,
)

SCORE = st.one_of(st.none(), st.floats(0, 1))


def made(n: int = 400, skills: Sequence[float] = (1.0, 0.5, 0.0), seed: int = 0) -> CalibrationScores:
    """Judges `a`, `b`, `c` … of given skill, independent but for the label."""
    rng = np.random.default_rng(seed)
    flags = np.arange(n) % 2 == 0
    scores = {
        name: 1 / (1 + np.exp(-rng.normal(flags * skill)))
        for name, skill in zip("abcdef", skills, strict=False)
    }
    return calibration_scores(
        "made-0",
        splits=[Split.CALIBRATION] * n,
        scores=scores,
        is_misbehavior=flags,
        group_ids=[f"g{i // 2}" for i in range(n)],
        categories=["qa"] * n,
    )


def columns(scored: CalibrationScores) -> dict[str, np.ndarray]:
    return {name: scored.member(name) for name in scored.members}


def logit(p: np.ndarray) -> np.ndarray:
    return np.log(p / (1 - p))


def test_the_stack_is_sklearns() -> None:
    """The stack has to be the regression everybody knows, also after a trip through JSON."""
    fitted, fresh = made(), made(seed=9)
    oracle = make_pipeline(StandardScaler(), LogisticRegression(C=1 / 0.3, tol=1e-10, max_iter=10_000))
    oracle.fit(logit(fitted.scores), fitted.is_misbehavior)
    stack = Ensemble.model_validate_json(fit_stack(fitted, penalty=0.3).model_dump_json())
    expected = oracle.predict_proba(logit(fresh.scores))[:, 1]
    assert combine(stack, columns(fresh)) == pytest.approx(expected, abs=1e-6)


def test_the_stack_leans_on_the_better_judge_and_beats_it() -> None:
    """A stack that ignores skill would be a mean with more trouble."""
    stack, fresh = fit_stack(made(2000)), made(4000, seed=1)
    assert stack.weights[0] > stack.weights[1] > abs(stack.weights[2])
    alone = pessimistic_auroc(fresh.member("a"), fresh.is_misbehavior)
    assert pessimistic_auroc(combine(stack, columns(fresh)), fresh.is_misbehavior) > alone + 0.02


@pytest.mark.parametrize("rule", ["mean", "max", "stacked"])
def test_order_of_samples_is_nothing(rule: str) -> None:
    """Two logs of one evaluation, in another order, have to give one ensemble."""
    fitted = made()
    turn = np.random.default_rng(5).permutation(len(fitted))
    turned = replace(
        fitted,
        scores=fitted.scores[turn],
        is_misbehavior=fitted.is_misbehavior[turn],
        group_ids=fitted.group_ids[turn],
    )
    first, second = (choose_members(held, rule, size=2) for held in (fitted, turned))
    assert first.members == second.members
    assert first.weights == pytest.approx(second.weights, abs=1e-8)
    assert first.intercept == pytest.approx(second.intercept, abs=1e-8)
    assert fit_stack(fitted) == fit_stack(fitted)


@given(st.lists(st.tuples(SCORE, SCORE, SCORE), min_size=1, max_size=20))
def test_mean_and_max_are_over_those_who_scored(rows: list[tuple[float | None, ...]]) -> None:
    """A judge without a score must not count as 0 in the mean; nobody's score is no score."""
    scores = dict(zip("abc", zip(*rows, strict=True), strict=True))
    for rule, function in (("mean", np.mean), ("max", np.max)):
        found = combine(Ensemble(rule=rule, members=tuple("abc")), scores)
        for row, value in zip(rows, found, strict=True):
            present = [score for score in row if score is not None]
            assert value == pytest.approx(function(present)) if present else np.isnan(value)
            assert not present or 0 <= value <= 1


def test_equal_means_of_members_are_one_score() -> None:
    """A threshold would part two samples by the last digit of a sum."""
    scores = {"a": [0.2, 0.0, 0.2], "b": [0.2, 0.3, None], "c": [0.2, 0.3, 0.2]}
    assert combine(Ensemble(rule="mean", members=("a", "b", "c")), scores).tolist() == [0.2] * 3


def test_a_missing_member_says_nothing_in_the_stack() -> None:
    """A judge that failed must neither condemn nor clear: it stands at its calibration mean."""
    stack = fit_stack(made())
    mean = float(1 / (1 + np.exp(-stack.centres[0])))
    silent = combine(stack, {"a": [None, mean, None], "b": [0.3, 0.3, None], "c": [0.6, 0.6, None]})
    assert silent[0] == pytest.approx(silent[1], abs=1e-12)
    assert np.isnan(silent[2])


def test_certain_scores_stay_finite_and_a_constant_judge_is_ignored() -> None:
    """Judges do say exactly 0 and 1, and some always the same: neither may end in NaN."""
    fitted = made()
    hard = replace(
        fitted,
        scores=np.column_stack([np.round(fitted.scores[:, 0]), np.full(400, 0.7), fitted.scores[:, 2]]),
    )
    stack = fit_stack(hard)
    assert stack.weights[1] == pytest.approx(0, abs=1e-9)
    assert np.isfinite(combine(stack, {"a": [0.0, 1.0], "b": [0.7, 0.0], "c": [1.0, 0.0]})).all()


def test_members_are_chosen_by_what_they_add() -> None:
    """A worthless judge, or a copy of one, only costs; one that scores the easy samples only doesn't win."""
    fitted = made(4000, (1.2, 1.0, 0.0))
    assert choose_members(fitted, "mean", size=3).members == ("a", "b")
    assert choose_members(fitted, "mean", size=1).members == ("a",)
    copied = replace(fitted, members=("a", "b", "copy_of_a"), scores=fitted.scores[:, [0, 1, 0]])
    assert choose_members(copied, "max", size=3).members == ("a", "b")
    sure = np.where(np.abs(logit(fitted.scores[:, 1])) > 2, fitted.scores[:, 1], np.nan)
    picky = replace(fitted, scores=np.column_stack([fitted.scores[:, 0], sure, fitted.scores[:, 2]]))
    assert choose_members(picky, "mean", size=1).members == ("a",)


def test_a_fitted_score_gets_its_threshold_on_other_questions() -> None:
    """Fit and threshold on the same samples, and the promised FAR does not hold; the halves are enforced."""
    whole = made()
    fit, rest = divide(whole)
    stack = fit_stack(fit)
    refuse_fitted_samples(stack.fitted_on, rest)
    combined = replace(rest, members=(stack.name,), scores=combine(stack, columns(rest))[:, None])
    point = calibrated(combined, Guarantee("neyman_pearson", 0.1, 0.05))
    assert (point.monitor, point.part) == (stack.name, "threshold") == ("stacked(a,b,c)", "threshold")
    assert point.threshold is not None
    for ensemble, wrong in (
        (stack, whole),
        (stack, fit),
        (fit_stack(whole), rest),
        (fit_stack(whole), whole),
    ):
        with pytest.raises(ValueError, match="halves"):
            refuse_fitted_samples(ensemble.fitted_on, wrong)
    with pytest.raises(ValueError, match="first half"):
        fit_stack(rest)
    with pytest.raises(ValueError, match="first half"):
        choose_members(rest, "mean", size=1)
    given_mean = Ensemble(rule="mean", members=("a", "b"))
    refuse_fitted_samples(given_mean.fitted_on, whole)  # nothing was fitted: all of it may serve
    refuse_fitted_samples(stack.fitted_on, replace(whole, data="other-1"))


def test_what_can_not_be_fitted_is_said() -> None:
    """One label, a judge that never scored, an unknown name: a line that says so, no NaN weights."""
    fitted = made()
    with pytest.raises(UserError, match="one label only"):
        fit_stack(replace(fitted, is_misbehavior=np.ones(400, dtype=bool)))
    with pytest.raises(UserError, match="b scored no sample"):
        fit_stack(replace(fitted, scores=np.where([False, True, False], np.nan, fitted.scores)))
    with pytest.raises(UserError, match="no scores of 'z'"):
        fit_stack(fitted, ["a", "z"])
    with pytest.raises(UserError, match="no scores of c"):
        combine(fit_stack(fitted), {"a": [0.1], "b": [0.1]})
    with pytest.raises(UserError, match="outside"):
        combine(Ensemble(rule="max", members=("a",)), {"a": [1.5]})
    with pytest.raises(ValidationError, match="expected 2 centres"):
        Ensemble(rule="stacked", members=("a", "b"), weights=(1.0,))
    with pytest.raises(ValidationError, match="twice"):
        Ensemble(rule="mean", members=("a", "a"))
