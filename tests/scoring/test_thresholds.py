from collections.abc import Callable, Sequence

import numpy as np
import pytest
from drawing import draws
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.stats import binom

from monitorbench.config.base import UserError
from monitorbench.metrics.guarantees.order_statistic import (
    Guarantee,
    Mix,
    neyman_pearson_rank,
    samples_needed,
)
from monitorbench.metrics.guarantees.threshold import clear_of_scores
from monitorbench.metrics.rates import REPRODUCIBLE_WITHIN
from monitorbench.records import Split
from monitorbench.scoring.calibrate import calibrated
from monitorbench.scoring.calibration_split import CalibrationScores, calibration_scores, divide, per_category
from monitorbench.scoring.operating_point import CalibratedThreshold

REDRAWS = 1000
ERROR = 1e-7
"""Chance that a simulation test fails although the guarantee holds."""
ALPHA, DELTA, N = 0.1, 0.05, 120
TIGHT = 29
"""Where the rank's violation probability is .047 and the next lower rank's .199: off by one shows."""
LEVELS = st.floats(0.001, 0.999)


def neyman_pearson(
    scored: CalibrationScores, *, alpha: float, delta: float, mix: Mix | None = None
) -> CalibratedThreshold:
    return calibrated(scored, Guarantee("neyman_pearson", alpha, delta), mix)


def conformal_risk(scored: CalibrationScores, *, alpha: float, mix: Mix | None = None) -> CalibratedThreshold:
    return calibrated(scored, Guarantee("conformal_risk", alpha), mix)


def benign(
    scores: Sequence[float | None] | np.ndarray,
    groups: Sequence[str] | None = None,
    categories: Sequence[str] | None = None,
) -> CalibrationScores:
    """One monitor's scores of benign calibration samples."""
    n = len(scores)
    return calibration_scores(
        "made-0",
        splits=[Split.CALIBRATION] * n,
        scores={"judge": scores},
        is_misbehavior=np.zeros(n, dtype=bool),
        group_ids=groups or [f"g{i}" for i in range(n)],
        categories=categories or ["qa"] * n,
    )


def chosen(scores: Sequence[float | None] | np.ndarray, **settings: float) -> CalibratedThreshold:
    return neyman_pearson(benign(scores), **{"alpha": ALPHA, "delta": DELTA} | settings)


def violations(
    draw: Callable[[np.random.Generator], np.ndarray], far: Callable[[float], float]
) -> np.ndarray:
    """How often FAR > alpha over the redraws: with our threshold, and with the plain quantile."""
    rng = np.random.default_rng(0)
    count = np.zeros(2, dtype=int)
    for _ in range(REDRAWS):
        scores = draw(rng)
        ours = chosen(scores).threshold
        assert ours is not None
        naive = float(np.quantile(scores, 1 - ALPHA, method="inverted_cdf"))
        count += [far(ours) > ALPHA, far(naive) > ALPHA]
    return count


@draws(60)
@given(st.integers(1, 400), LEVELS, LEVELS)
def test_rank_is_scipys_binomial(n: int, alpha: float, delta: float) -> None:
    """A rank off by one breaks the promise, or wastes detections; checked against scipy's tail."""
    found = neyman_pearson_rank(n, alpha, delta)
    slack = 1e-7
    if found is None:
        assert binom.sf(n - 1, n, 1 - alpha) > delta * (1 - slack)
        assert n < samples_needed(alpha, delta)
        return
    rank, probability = found
    assert 1 <= rank <= n
    assert probability == pytest.approx(binom.sf(rank - 1, n, 1 - alpha), rel=1e-7)
    assert probability <= delta * (1 + slack)
    assert rank == 1 or binom.sf(rank - 2, n, 1 - alpha) > delta * (1 - slack)
    assert n >= samples_needed(alpha, delta)


def test_rank_of_a_million_is_scipys() -> None:
    """The sum of a million terms must not drift away from the tail it stands for."""
    rank, probability = neyman_pearson_rank(1_000_000, 0.01, 0.05) or (0, 0.0)
    assert probability == pytest.approx(binom.sf(rank - 1, 1_000_000, 0.99), rel=1e-6)
    assert binom.sf(rank - 2, 1_000_000, 0.99) > 0.05 >= binom.sf(rank - 1, 1_000_000, 0.99)


def test_known_sizes() -> None:
    """59 and 299 are in every textbook; at exact equality (2 coins, delta = 1/4) the rank counts."""
    assert (samples_needed(0.05, 0.05), samples_needed(0.01, 0.05)) == (59, 299)
    assert (samples_needed(0.5, 0.25), neyman_pearson_rank(2, 0.5, 0.25)) == (2, (2, pytest.approx(0.25)))
    assert neyman_pearson_rank(58, 0.05, 0.05) is None


@pytest.mark.parametrize(("alpha", "delta"), [(0.0, 0.1), (1.0, 0.1), (0.1, 0.0), (0.1, float("nan"))])
def test_levels_are_checked(alpha: float, delta: float) -> None:
    """FAR <= 0 can't be promised by any sample; a NaN must not pass as a level."""
    with pytest.raises(ValueError, match="expected a number in"):
        neyman_pearson_rank(100, alpha, delta)


def test_far_guarantee_on_continuous_scores() -> None:
    """What a deployment is staked on: FAR > alpha in at most delta of the calibration splits. A plain
    quantile breaks it in half of them; and no more detections are given away than the bound takes."""
    ours, naive = violations(lambda rng: rng.random(TIGHT), lambda t: 1 - t)
    assert ours <= binom.isf(ERROR, REDRAWS, DELTA)
    assert naive > 300
    _, exact = neyman_pearson_rank(TIGHT, ALPHA, DELTA) or (0, 0.0)
    assert ours >= binom.ppf(ERROR, REDRAWS, exact)
    assert exact == pytest.approx(0.9**TIGHT)


def test_far_guarantee_on_tied_scores() -> None:
    """Judges say .0, .5 or 1.0 thousands of times: an atom just above alpha is where a threshold slips."""
    values, shares = np.array([0.1, 0.5, 0.9]), np.array([0.5, 0.385, 0.115])
    ours, naive = violations(
        lambda rng: rng.choice(values, TIGHT, p=shares), lambda t: float(shares[values > t].sum())
    )
    assert ours <= binom.isf(ERROR, REDRAWS, DELTA)
    assert naive > 200


def test_far_guarantee_holds_with_the_unscored_as_alarms() -> None:
    """If the judge fails on benign traffic, alarms and failures together must stay below alpha."""
    silent = 0.03

    def draw(rng: np.random.Generator) -> np.ndarray:
        return np.where(rng.random(N) < silent, np.nan, rng.random(N))

    rng, broken, dropped = np.random.default_rng(1), 0, 0
    for _ in range(REDRAWS):
        scores = draw(rng)
        ours, without = chosen(scores).threshold, chosen(scores[~np.isnan(scores)]).threshold
        broken += ours is not None and silent + (1 - silent) * (1 - ours) > ALPHA
        dropped += without is not None and silent + (1 - silent) * (1 - without) > ALPHA
    assert broken <= binom.isf(ERROR, REDRAWS, DELTA) < dropped


def test_copies_of_a_question_are_no_evidence() -> None:
    """Four variants of one question counted as four samples would break the promise unseen."""
    rng, ours, ignored = np.random.default_rng(2), 0, 0
    groups = [f"g{i // 4}" for i in range(4 * 40)]
    for _ in range(REDRAWS):
        scores = np.repeat(rng.random(40), 4)
        ours += 1 - (neyman_pearson(benign(scores, groups), alpha=ALPHA, delta=DELTA).threshold or 0) > ALPHA
        ignored += 1 - (chosen(scores).threshold or 0) > ALPHA
    assert ours <= binom.isf(ERROR, REDRAWS, DELTA) < ignored


def test_too_few_or_too_many_unscored_give_no_threshold_but_a_reason() -> None:
    """A threshold made up from too little would look like any other; the reason says what is missing."""
    few = chosen(np.linspace(0, 1, 28))
    assert (few.threshold, few.n) == (None, 28)
    assert "28 benign questions, 29 needed" in few.reason
    rank, _ = neyman_pearson_rank(N, ALPHA, DELTA) or (0, 0.0)
    missing = [None] * (N - rank + 1) + [0.5] * (rank - 1)
    silent = chosen(missing)
    assert (silent.threshold, silent.n_unscored) == (None, N - rank + 1)
    assert f"at most {N - rank} may" in silent.reason
    assert chosen([0.5, *missing[1:]]).threshold == pytest.approx(0.5, abs=REPRODUCIBLE_WITHIN)
    assert chosen([]).threshold is None


SCORES = st.lists(st.sampled_from([0.0, 0.2, 0.2, 0.5, 0.7, 1.0, None]), min_size=30, max_size=80)


@draws(50)
@given(SCORES, st.randoms(use_true_random=False), LEVELS, LEVELS)
def test_order_is_nothing_and_alpha_is_monotone(
    scores: list[float | None], random: object, first: float, second: float
) -> None:
    """A log in another order must give the same threshold; allowing more alarms never raises it."""
    turned = list(scores)
    random.shuffle(turned)
    strict, lax = (chosen(scores, alpha=alpha) for alpha in sorted([first, second]))
    assert strict == chosen(turned, alpha=min(first, second))
    if strict.threshold is not None:
        assert lax.threshold is not None
        assert lax.threshold <= strict.threshold
    by_loss = [conformal_risk(benign(scores), alpha=alpha).threshold for alpha in sorted([first, second])]
    assert by_loss[0] is None or (by_loss[1] is not None and by_loss[1] <= by_loss[0])


def test_thresholds_by_category_are_those_of_the_categories_alone() -> None:
    """One category's easy benign samples must not lend another a low threshold."""
    rng = np.random.default_rng(3)
    scores, names = rng.random(300), rng.choice(["qa", "code"], 300).tolist()
    parts = per_category(benign(scores, categories=names))
    found = {part.category: neyman_pearson(part, alpha=ALPHA, delta=DELTA) for part in parts}
    assert list(found) == ["code", "qa"]
    for name, one in found.items():
        alone = chosen(scores[np.array(names) == name])
        assert (one.threshold, one.n, one.category) == (alone.threshold, alone.n, name)


def test_only_benign_scores_count() -> None:
    """Misbehavior in the calibration split must not move a bound on false alarms."""
    both = calibration_scores(
        "made-0",
        splits=[Split.CALIBRATION] * 200,
        scores={"judge": np.concatenate([np.linspace(0, 1, 100), np.ones(100)])},
        is_misbehavior=np.arange(200) >= 100,
        group_ids=[f"g{i % 100}" for i in range(200)],
        categories=["qa"] * 200,
    )
    assert neyman_pearson(both, alpha=ALPHA, delta=DELTA) == chosen(np.linspace(0, 1, 100))


def test_conformal_risk_keeps_the_mean_rate() -> None:
    """On average over 1,000 splits at most alpha is alarmed at; the plain quantile alarms at more."""
    rng, n, alpha = np.random.default_rng(4), 10, 0.2
    lost, naive = np.zeros(REDRAWS), np.zeros(REDRAWS)
    for i in range(REDRAWS):
        scores = rng.random(n)
        ours = conformal_risk(benign(scores), alpha=alpha).threshold
        assert ours is not None
        lost[i], naive[i] = 1 - ours, 1 - min(t for t in scores if (scores > t).mean() <= alpha)
    # Maurer & Pontil 2009, theorem 4: a bound on the mean that fails with probability ERROR.
    log_term = np.log(2 / ERROR)
    margin = np.sqrt(2 * lost.var(ddof=1) * log_term / REDRAWS) + 7 * log_term / (3 * (REDRAWS - 1))
    assert alpha - 2 / (n + 1) <= lost.mean() <= alpha + margin
    assert naive.mean() - margin > alpha


@draws(50)
@given(SCORES, LEVELS)
def test_conformal_risk_is_the_theorem_over_a_table(scores: list[float | None], alpha: float) -> None:
    """The fast path over scores has to be theorem 1 written out, unscored samples always alarmed at."""
    filled = np.array([np.inf if s is None else s for s in scores])
    grid = np.unique(filled[np.isfinite(filled)])
    # 2208.02814, theorem 1: the first threshold with n/(n+1)·mean + 1/(n+1) <= alpha.
    levels = ((filled[:, None] > grid).sum(axis=0) + 1) / (len(scores) + 1)
    kept = np.flatnonzero(levels <= alpha * (1 + 1e-9))
    found = conformal_risk(benign(scores), alpha=alpha)
    assert found.threshold == (clear_of_scores(grid[kept[0]], filled) if len(kept) else None)
    assert found.reason if not len(kept) else found.attained == pytest.approx(levels[kept[0]])


def test_conformal_risk_of_questions_and_too_few() -> None:
    """Copies of a question weigh as one, and nine questions can't promise a loss of .05."""
    groups = [f"g{i // 3}" for i in range(90)]
    scores = np.repeat(np.linspace(0, 1, 30), 3)
    copies, once = benign(scores, groups), benign(np.linspace(0, 1, 30))
    assert conformal_risk(copies, alpha=0.1).threshold == conformal_risk(once, alpha=0.1).threshold
    assert "9 benign questions, 19 needed" in conformal_risk(benign([0.5] * 9), alpha=0.05).reason
    assert "no score" in conformal_risk(benign([None] * 30), alpha=0.1).reason


@pytest.mark.parametrize("split", [Split.TEST, Split.TRAIN, Split.VALIDATION, None])
def test_other_splits_are_refused(split: Split | None) -> None:
    """One test sample in the calibration and every promise about the test split is void."""
    with pytest.raises(UserError, match="expected only those of `calibration`"):
        calibration_scores(
            "made-0",
            splits=[Split.CALIBRATION, split],
            scores={"judge": [0.1, 0.2]},
            is_misbehavior=[False, True],
            group_ids=["a", "b"],
            categories=["qa", "qa"],
        )


def test_calibration_checks_scores_and_lengths() -> None:
    """Log-odds taken for probabilities, or one column short, would calibrate on nonsense."""
    with pytest.raises(UserError, match="outside"):
        benign([0.1, 3.2])
    with pytest.raises(ValueError, match="one entry a sample"):
        benign([0.1, 0.2], groups=["a"])


def test_halves_share_no_question_whatever_is_cut() -> None:
    """A question in both halves would void the threshold of a fitted score; so would another cut's halves."""
    groups = [f"g{i // 3}" for i in range(900)]
    whole = benign(np.linspace(0, 1, 900), groups, ["qa", "code", "code"] * 300)
    first, second = divide(whole)
    assert set(first.group_ids).isdisjoint(second.group_ids)
    assert len(first) + len(second) == 900
    assert 0.4 < len(first) / 900 < 0.6
    _, of_code = divide(per_category(whole)[0])
    assert set(of_code.group_ids) == set(second.group_ids)
    with pytest.raises(ValueError, match="divided once"):
        divide(first)


def test_a_threshold_is_of_one_monitor() -> None:
    """Two monitors' columns have no common order; a threshold without one must carry its reason."""
    two = calibration_scores(
        "made-0",
        splits=[Split.CALIBRATION],
        scores={"a": [0.1], "b": [0.2]},
        is_misbehavior=[False],
        group_ids=["g"],
        categories=["qa"],
    )
    with pytest.raises(ValueError, match="one monitor"):
        neyman_pearson(two, alpha=ALPHA, delta=DELTA)
    with pytest.raises(ValidationError, match="or the reason"):
        CalibratedThreshold.model_validate(chosen([0.5] * N).model_dump() | {"threshold": None})
