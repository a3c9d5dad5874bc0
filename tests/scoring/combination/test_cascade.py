from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.special import logit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
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
from monitorbench.scoring.combination.cascade import (
    Band,
    Cascade,
    Scale,
    fit_cascade,
    run_cascade,
    sent_on,
)
from monitorbench.scoring.combination.ensembles import pessimistic_auroc

SCORE = st.floats(0, 1)
MAYBE = st.one_of(st.none(), SCORE)
ROWS = st.lists(st.tuples(MAYBE, MAYBE), min_size=1, max_size=30)


def cascade(band: Band | None) -> Cascade:
    return Cascade(cheap="small", strong="large", band=band)


def made(n: int = 1000, *, digits: int = 12, seed: int = 0) -> CalibrationScores:
    """A weak cheap judge and a good strong one."""
    rng = np.random.default_rng(seed)
    flags = np.arange(n) % 2 == 0
    small, large = (1 / (1 + np.exp(-rng.normal(flags * skill))) for skill in (0.8, 3.0))
    return calibration_scores(
        "made-0",
        splits=[Split.CALIBRATION] * n,
        scores={"small": small.round(digits), "large": large},
        is_misbehavior=flags,
        group_ids=[f"g{i // 2}" for i in range(n)],
        categories=["qa"] * n,
    )


@given(ROWS)
def test_empty_and_full_bands_are_the_two_monitors(rows: list[tuple[float | None, float | None]]) -> None:
    """The two ends of the trade have to be the monitors themselves to the bit: nothing sent on, and all."""
    small, large = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    nobody = run_cascade(cascade(None), small, large)
    everybody = run_cascade(cascade(Band(0, 1)), small, large)
    np.testing.assert_array_equal(nobody.scores, small)
    np.testing.assert_array_equal(everybody.scores, large)
    assert not nobody.sent.any()
    assert everybody.sent.all()


@given(st.tuples(SCORE, SCORE), st.lists(st.tuples(SCORE, SCORE), min_size=2, max_size=2))
def test_combined_score_is_monotone(ends: tuple[float, float], pair: list[tuple[float, float]]) -> None:
    """A rise in suspicion of either monitor that lowered the combined score would make AUROC nonsense."""
    if ends[0] == ends[1]:
        return
    made_of = cascade(Band(min(ends), max(ends)))
    low, high = np.minimum(*pair), np.maximum(*pair)
    scores = run_cascade(made_of, np.array([low[0], high[0]]), np.array([low[1], high[1]])).scores
    assert 0 <= scores[0] <= scores[1] <= 1


def test_what_was_sent_on_stays_in_the_band() -> None:
    """The strong monitor decides among the uncertain; it must not overtake a sure answer of the cheap one."""
    cheap, strong = [0.1, 0.3, 0.5, 0.6, 0.9], [1.0, 0.0, 1.0, 0.5, 0.0]
    found = run_cascade(cascade(Band(0.3, 0.6)), cheap, strong)
    assert found.scores == pytest.approx([0.1, 0.3, 0.6, 0.45, 0.9])
    assert found.sent.tolist() == [False, True, True, True, False]
    assert found.sent.mean() == 0.6


def test_missing_scores_on_the_scale_of_probability() -> None:
    """The same as below: a sample without the answer it was sent on for has no score to be ranked by."""
    chosen = fit_cascade(made(), cheap="small", strong="large", budget=0.3)
    assert chosen.band is not None
    inside = sum(chosen.band) / 2
    found = run_cascade(chosen, [None, inside, 0.999, None], [0.9, None, None, None])
    assert found.sent.tolist() == [True, True, False, True]
    assert np.isnan(found.scores).tolist() == [False, True, False, True]
    assert found.scores[0] > 0.5


def test_missing_scores() -> None:
    """What the cheap monitor can't score is uncertain; what the strong one then can't score is unscored."""
    found = run_cascade(cascade(Band(0.4, 0.6)), [None, 0.5, 0.9, None], [0.5, None, None, None])
    np.testing.assert_array_equal(found.scores, [0.5, np.nan, 0.9, np.nan])
    assert found.sent.tolist() == [True, True, False, True]
    assert sent_on(cascade(Band(0.4, 0.6)), [None, 0.1]).tolist() == [True, False]


@pytest.mark.parametrize("scale", ["probability", "band"])
@pytest.mark.parametrize("digits", [12, 1])
@pytest.mark.parametrize("budget", [0.0, 0.05, 0.3, 1.0])
def test_the_budget_is_kept_and_spent(budget: float, digits: int, scale: Scale) -> None:
    """A budget overdrawn is money lost; one left unspent loses detections. Ties go together."""
    fitted = made(digits=digits)
    chosen = fit_cascade(fitted, cheap="small", strong="large", budget=budget, scale=scale)
    sent = sent_on(chosen, fitted.member("small"))
    assert sent.mean() == chosen.calibration_share
    assert sent.mean() <= budget
    if digits == 12:
        assert sent.mean() >= budget - 0.01
    alone = pessimistic_auroc(fitted.member("small"), fitted.is_misbehavior)
    found = run_cascade(chosen, fitted.member("small"), fitted.member("large"))
    value = pessimistic_auroc(found.scores, fitted.is_misbehavior)
    assert value > alone if budget >= 0.3 else value >= alone


@pytest.mark.parametrize("scale", ["probability", "band"])
def test_a_larger_budget_lifts_fresh_samples_too(scale: Scale) -> None:
    """The band is chosen on one split and used on another: the gain must carry over."""
    fresh = made(4000, seed=1)
    values = []
    for budget in (0.0, 0.3, 0.6, 1.0):
        chosen = fit_cascade(made(), cheap="small", strong="large", budget=budget, scale=scale)
        scores = run_cascade(chosen, fresh.member("small"), fresh.member("large")).scores
        values.append(pessimistic_auroc(scores, fresh.is_misbehavior))
    assert values == sorted(values)
    strong = pessimistic_auroc(fresh.member("large"), fresh.is_misbehavior)
    assert values[-1] == strong if scale == "band" else values[-1] > strong


def test_few_calls_pay_on_the_scale_of_probability() -> None:
    """6 % of the calls would buy nothing if what they say could not overtake what was not sent on."""
    fresh = made(4000, seed=1)
    alone = pessimistic_auroc(fresh.member("small"), fresh.is_misbehavior)
    gains = {}
    for scale in ("band", "probability"):
        chosen = fit_cascade(made(), cheap="small", strong="large", budget=0.06, scale=scale)
        found = run_cascade(chosen, fresh.member("small"), fresh.member("large"))
        assert 0.04 < found.sent.mean() < 0.08
        gains[scale] = pessimistic_auroc(found.scores, fresh.is_misbehavior) - alone
    assert gains["probability"] > 0.03 > 0.004 > gains["band"] > 0


def test_a_tenth_sent_to_a_judge_that_is_always_right() -> None:
    """The one case whose answer is known: each of the tenth stands below, or above, all that was not sent."""
    whole, n = made(), 1000
    flags = whole.is_misbehavior
    perfect = replace(whole, scores=np.column_stack([whole.member("small"), flags.astype(float)]))
    chosen = fit_cascade(perfect, cheap="small", strong="large", budget=0.1)
    fresh = made(n, seed=1)
    small, right = fresh.member("small"), fresh.is_misbehavior
    found = run_cascade(chosen, small, right.astype(float))
    assert chosen.band is not None
    sent = (small >= chosen.band.low) & (small <= chosen.band.high)
    np.testing.assert_array_equal(found.sent, sent)
    ends = np.where(right, 2.0, -1.0)
    expected = roc_auc_score(right, np.where(sent, ends, small))
    assert roc_auc_score(right, found.scores) == pytest.approx(expected, abs=1e-12)
    share = float(sent.mean())
    others = roc_auc_score(right[~sent], small[~sent])
    # Pairs of one class each: those without a sent sample keep the cheap judge's AUROC, all others are right.
    sent_bad, sent_good = sent[right].mean(), sent[~right].mean()
    kept = (1 - sent_bad) * (1 - sent_good)
    assert expected == pytest.approx(1 - kept * (1 - others))
    assert 0.07 < share < 0.13
    assert expected > roc_auc_score(right, small) + 0.04


def test_the_regressions_are_those_of_scikit_learn() -> None:
    """Off by a scale, the two parts of the score would not be of one kind, and their order means nothing."""
    fitted, fresh = made(), made(500, seed=1)
    chosen = fit_cascade(fitted, cheap="small", strong="large", budget=0.3)
    found = run_cascade(chosen, fresh.member("small"), fresh.member("large"))

    def predicted(columns: list[int]) -> np.ndarray:
        oracle = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10, max_iter=10_000))
        oracle.fit(logit(fitted.scores[:, columns]), fitted.is_misbehavior)
        return oracle.predict_proba(logit(fresh.scores[:, columns]))[:, 1]

    expected = np.where(found.sent, predicted([0, 1]), predicted([0]))
    np.testing.assert_allclose(found.scores, expected, atol=1e-6)
    assert 0 < found.sent.mean() < 1


def test_the_aim_decides_which_samples_are_sent_on() -> None:
    """At 5 % false alarms only the top of the scores matters: calls at the middle would be wasted."""
    fresh = made(4000, seed=1)
    flags = fresh.is_misbehavior
    chosen, values = {}, {}
    for aim in ("auroc", "low_far"):
        chosen[aim] = fit_cascade(made(), cheap="small", strong="large", budget=0.3, aim=aim)
        scores = run_cascade(chosen[aim], fresh.member("small"), fresh.member("large")).scores
        values[aim] = [roc_auc_score(flags, scores), roc_auc_score(flags, scores, max_fpr=0.05)]
    assert chosen["low_far"].band.low > chosen["auroc"].band.low
    assert values["auroc"][0] > values["low_far"][0]
    assert values["low_far"][1] > values["auroc"][1] + 0.02


def test_a_band_around_one_tied_score_leaves_the_strong_monitor_room() -> None:
    """A cheap monitor that says 0, .5 or 1: with a band of no width its doubts would stay one tie."""
    fitted = made()
    three = np.select([fitted.scores[:, 0] < 0.4, fitted.scores[:, 0] > 0.7], [0.0, 1.0], 0.5)
    tied = replace(fitted, scores=np.column_stack([three, fitted.scores[:, 1]]))
    share = float((three == 0.5).mean())
    chosen = fit_cascade(tied, cheap="small", strong="large", budget=share, scale="band")
    assert chosen.band == (0.25, 0.75)
    scores = run_cascade(chosen, three, fitted.member("large")).scores
    assert len(np.unique(scores[three == 0.5])) == (three == 0.5).sum()


@given(
    st.lists(
        st.sampled_from([0.0, 5e-324, 0.5, 0.5000000000000001, 1 - 2**-53, 1.0]), min_size=4, max_size=30
    ),
    SCORE,
)
def test_no_band_overdraws_between_neighbouring_floats(scores: list[float], budget: float) -> None:
    """Between two adjacent floats there is no middle: rounding must not let a block of ties into the band."""
    n = len(scores)
    fitted = replace(made(n), scores=np.column_stack([scores, np.arange(n) % 2 == 0]).astype(float))
    chosen = fit_cascade(fitted, cheap="small", strong="large", budget=budget)
    assert sent_on(chosen, scores).mean() <= budget + 1e-9


def test_a_strong_monitor_that_is_worse_is_not_asked() -> None:
    """Money for nothing: where no band helps there is none."""
    fitted = made()
    large = fitted.member("large")
    turned_round = replace(fitted, members=("large", "liar"), scores=np.column_stack([large, 1 - large]))
    for scale in ("probability", "band"):
        chosen = fit_cascade(turned_round, cheap="large", strong="liar", budget=0.9, scale=scale)
        assert chosen.band is None


def test_unscored_samples_use_up_the_budget() -> None:
    """What the cheap monitor can't score is sent on too, and must be paid from the same purse."""
    fitted = made()
    scores = fitted.scores.copy()
    scores[:100, 0] = np.nan
    holes = replace(fitted, scores=scores)
    chosen = fit_cascade(holes, cheap="small", strong="large", budget=0.3)
    assert 0.28 < sent_on(chosen, scores[:, 0]).mean() <= 0.3
    assert fit_cascade(holes, cheap="small", strong="large", budget=0.05).band is None


def test_order_of_samples_is_nothing_and_json_keeps_all() -> None:
    """One evaluation, one band, whatever order the log is in; and the file says all of it."""
    fitted = made(digits=2)
    turn = np.random.default_rng(5).permutation(len(fitted))
    turned = replace(fitted, scores=fitted.scores[turn], is_misbehavior=fitted.is_misbehavior[turn])
    first, second = (
        fit_cascade(held, cheap="small", strong="large", budget=0.3) for held in (fitted, turned)
    )
    assert first == second == Cascade.model_validate_json(first.model_dump_json())
    assert first.band is not None
    assert first.both is not None
    with pytest.raises(ValidationError, match="or neither"):
        Cascade(cheap="small", strong="large", band=first.band, both=first.both)


def test_the_threshold_is_set_on_the_other_half() -> None:
    """A band chosen on the threshold's own samples would void the promised FAR."""
    whole = made()
    fit, rest = divide(whole)
    chosen = fit_cascade(fit, cheap="small", strong="large", budget=0.3)
    refuse_fitted_samples(chosen.fitted_on, rest)
    for wrong in (whole, fit):
        with pytest.raises(ValueError, match="halves"):
            refuse_fitted_samples(chosen.fitted_on, wrong)
    scores = run_cascade(chosen, rest.member("small"), rest.member("large")).scores
    fitted = replace(rest, members=(chosen.name,), scores=scores[:, None])
    point = calibrated(fitted, Guarantee("neyman_pearson", 0.05, 0.05))
    assert (point.monitor, point.part) == ("cascade(small,large)", "threshold")
    assert point.threshold is not None
    with pytest.raises(ValueError, match="first half"):
        fit_cascade(rest, cheap="small", strong="large", budget=0.3)


def test_bad_input_is_refused() -> None:
    """A band turned round, log-odds, a wrong length, one label: each would run on and mislead."""
    with pytest.raises(ValidationError, match="low < high"):
        cascade(Band(0.6, 0.4))
    with pytest.raises(ValidationError):
        cascade(Band(0.5, 1.5))
    with pytest.raises(UserError, match="outside"):
        run_cascade(cascade(None), [2.0], [0.5])
    with pytest.raises(ValueError, match="expected as many"):
        run_cascade(cascade(None), [0.2], [0.5, 0.5])
    with pytest.raises(ValueError, match="and some"):
        run_cascade(cascade(None), [], [])
    with pytest.raises(ValueError, match="budget"):
        fit_cascade(made(), cheap="small", strong="large", budget=1.2)
    with pytest.raises(UserError, match="one label"):
        fit_cascade(
            replace(made(), is_misbehavior=np.ones(1000, bool)), cheap="small", strong="large", budget=0.5
        )
