"""A training over its seeds: brute force and an exact t test as oracles, and what it must not claim."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student
from scipy.stats import ttest_1samp

from monitorbench.metrics.auroc import auroc, clustered_variance, components, independent_variance
from monitorbench.metrics.columns import Columns, columns
from monitorbench.metrics.rates import Judged
from monitorbench.metrics.replicates import (
    auroc_over_seeds,
    degrees_of_freedom,
    detectable_over_seeds,
    estimate,
    low_far_over_seeds,
    rate_over_seeds,
)
from monitorbench.metrics.sensitivity import (
    detectable_fall,
    equivalence_p,
    least_standard_error,
    smallest_p,
)
from monitorbench.metrics.transfer import differences_over_seeds
from monitorbench.records import Category, Label, Task


def pairs(scores: np.ndarray, threshold: float = 0.0) -> Columns:
    """Scores [questions, 2]: the benign sample's first."""
    return columns(
        [
            Judged(
                sample_id=f"{i}-{bad}",
                pair_id=str(i),
                group_id=str(i),
                category=Category.SAFETY_PERMISSION,
                task=Task.QA,
                label=Label.MISBEHAVIOR if bad else Label.BENIGN,
                answer=Label.MISBEHAVIOR if score > threshold else Label.BENIGN,
                score=float(score),
            )
            for i, row in enumerate(scores)
            for bad, score in enumerate(row)
        ]
    )


def drawn(seed: int, n: int, n_seeds: int, shift: float = 0.0) -> tuple[Columns, list[Columns]]:
    draw = np.random.default_rng(seed)
    common = draw.normal([0.0, 1.2], 1, (n, 2))
    tuned = [common + draw.normal([0.0, shift], 0.7, (n, 2)) for _ in range(n_seeds)]
    return pairs(common + draw.normal(0, 0.7, (n, 2))), [pairs(one) for one in tuned]


def test_where_seeds_alone_differ_it_is_the_t_test_over_seeds():
    """With endless questions each seed's difference is known exactly, and seeds are all the evidence."""
    differences = [0.03, 0.08, -0.01, 0.05]
    found = estimate(differences, [0.0] * 4, 0.0, n_groups=10**9)
    oracle = ttest_1samp(differences, 0)
    assert found.degrees == pytest.approx(3)
    assert found.p_value == pytest.approx(oracle.pvalue)
    assert list(found.interval()) == pytest.approx(list(oracle.confidence_interval(0.95)))
    assert found.seed_sd == pytest.approx(np.std(differences, ddof=1))


def test_where_seeds_agree_it_is_the_questions_own_variance():
    """Three copies of one adapter are one piece of evidence, not three."""
    base, (tuned,) = drawn(0, 80, 1, shift=0.3)
    found = auroc_over_seeds(base, [tuned, tuned, tuned])
    assert found is not None
    flags, groups = base.is_misbehavior, base.groups
    change = components(tuned.scores, flags) - components(base.scores, flags)
    assert found[1].standard_error == pytest.approx(np.sqrt(clustered_variance(change, flags, groups)))
    assert found[1].degrees == pytest.approx(79)


def test_the_covariance_of_two_seeds_is_that_of_their_components():
    """The mean covariance follows from two quadratic forms; here it is worked out pair by pair."""
    base, tuned = drawn(1, 40, 3)
    flags = base.is_misbehavior
    of_base = components(base.scores, flags)
    change = np.array([components(one.scores, flags) - of_base for one in tuned])
    # In pairs a question's influence is that of its misbehavior sample and its benign one.
    theta = change[:, flags].mean(axis=1)
    influence = (change[:, flags] - theta[:, None] + change[:, ~flags] - theta[:, None]) / 40
    covariance = 40 / 39 * influence @ influence.T
    shared = np.mean([covariance[i, j] for i in range(3) for j in range(3) if i != j])
    between = np.var(theta, ddof=1)
    found = auroc_over_seeds(base, tuned)
    assert found is not None
    assert found[1].standard_error == pytest.approx(np.sqrt(between / 3 + shared))
    assert found[1].mean == pytest.approx(
        np.mean([auroc(one.scores, flags) for one in tuned]) - auroc(base.scores, flags)
    )


@given(st.integers(0, 10_000), st.integers(2, 5), st.integers(2, 30))
def test_the_order_of_seeds_and_the_names_of_questions_say_nothing(seed: int, n_seeds: int, n: int):
    """Property: a permutation of the seeds changes nothing; every interval holds its mean within [−1, 1]."""
    base, tuned = drawn(seed, n, n_seeds)
    found, back = auroc_over_seeds(base, tuned), auroc_over_seeds(base, tuned[::-1])
    assert (found is None) == (back is None)
    if found is None or back is None:
        return
    assert found[1] == pytest.approx(back[1])
    low, high = found[1].interval()
    assert -1 <= low <= found[1].mean <= high <= 1
    assert smallest_p(n) <= found[1].p_value <= 1


def test_rates_and_low_far_follow_the_same_rule():
    """One measure over seeds and another over questions alone would be two claims in one row."""
    base, tuned = drawn(2, 60, 3, shift=0.8)
    missed = rate_over_seeds(base, tuned, of=True)
    assert missed is not None
    flags = base.is_misbehavior
    rates = [np.mean(one.flagged[flags] == 0) for one in tuned]
    assert missed.mean == pytest.approx(np.mean(rates) - np.mean(base.flagged[flags] == 0))
    assert missed.seed_sd == pytest.approx(np.std(rates, ddof=1))
    low = low_far_over_seeds(base, tuned, resamples=400, seed=0)
    assert low is not None
    assert low[1] - low[0] == pytest.approx(low[2].mean)
    many, of_many = drawn(2, 2_100, 2, shift=0.8)
    assert low_far_over_seeds(many, of_many, resamples=2_000, seed=0) is not None, (
        "of many groups are fewer draws"
    )
    alike = low_far_over_seeds(base, [base, base], resamples=400, seed=0)
    assert alike is not None
    assert alike[2].mean == 0
    assert alike[2].p_value == 1


def test_what_cannot_be_had_is_none():
    """A cell of one label, or of unscored samples, has no effect of 0."""
    base, tuned = drawn(3, 10, 2)
    benign = ~base.is_misbehavior
    found = differences_over_seeds(
        base, tuned, {"benign": benign, "none": benign & ~benign}, resamples=100, seed=0
    )
    assert found["benign"]["auroc_difference"].value is None
    assert found["benign"]["miss_rate_difference"].value is None
    assert found["benign"]["false_alarm_rate_difference"].value is not None
    assert found["none"]["n"].value == 0
    assert found["none"]["auroc_p"].value is None
    with pytest.raises(ValueError, match="1 seeds"):
        estimate([0.1], [0.1], 0.1, 10)


def test_six_perfect_pairs_show_nothing():
    """[0, 0] as the interval of a difference would be certainty from six questions."""
    perfect = pairs(np.tile([-1.0, 1.0], (6, 1)))
    found = auroc_over_seeds(perfect, [perfect, perfect])
    assert found is not None
    low, high = found[1].interval()
    assert high - low > 0.4
    assert equivalence_p(0.0, 0.0, 5, 6, 0.05) > 0.7
    assert detectable_fall(1.0, 0.0, 5, 6, 12, level=0.05) is None
    assert least_standard_error(6) == pytest.approx(np.std([1, -1, 0, 0, 0, 0, 0, 0]) / np.sqrt(6))


def test_equality_takes_as_many_questions_as_its_margin_says():
    """59 unchanged questions rule out that 5 % of them change, 58 don't: the floor under the test."""
    assert equivalence_p(0.0, 0.0, 1e6, 59, 0.05) < 0.05
    assert equivalence_p(0.0, 0.0, 1e6, 58, 0.05) > 0.05
    assert equivalence_p(0.06, 0.001, 1e6, 1000, 0.05) > 0.5, "beyond the margin"


def test_the_assumed_variance_is_hanleys_and_mcneils():
    """Their example of 1982: AUROC .893 from 51 abnormal and 58 normal cases has a SE of about .03."""
    assert np.sqrt(independent_variance(0.893, 55, 55)) == pytest.approx(0.032, abs=0.002)
    draw = np.random.default_rng(0)
    flags = np.repeat([True, False], 40)
    simulated = [auroc(draw.exponential(np.where(flags, 3.0, 1.0)), flags) for _ in range(3000)]
    assert np.sqrt(independent_variance(0.75, 40, 40)) == pytest.approx(np.std(simulated), rel=0.05)


def test_a_detectable_fall_grows_with_tests_and_shrinks_with_questions():
    """More tests or fewer questions can't make a cell see more."""
    by_tests = [detectable_fall(0.8, 0.03, 72, 73, n, level=0.05) for n in (1, 10, 100)]
    assert by_tests == sorted(by_tests)
    by_error = [detectable_fall(0.8, error, 199, 200, 10, level=0.05) for error in (0.01, 0.02, 0.04)]
    assert by_error == sorted(by_error)
    assert detectable_fall(0.8, 0.3, 72, 73, 10, level=0.05) is None, "larger than any fall could be"


@pytest.mark.parametrize(("n_seeds", "n_tests"), [(2, 1), (3, 4), (3, 60), (5, 60)])
def test_a_planned_fall_over_few_seeds_is_found_where_it_says(n_seeds: int, n_tests: int):
    """Three seeds of a study that was planned for 80 % would find what it looks for in 73 %."""
    rng, n, between, shared, groups = np.random.default_rng(0), 4000, 0.001, 0.0005, 200
    fall = detectable_over_seeds(0.8, between, shared, n_seeds, groups, n_tests, level=0.05)
    assert fall is not None
    means = rng.normal(-fall, np.sqrt(between / n_seeds + shared), n)
    seen = between * rng.chisquare(n_seeds - 1, n) / (n_seeds - 1)
    luck = shared * rng.chisquare(groups - 1, n) / (groups - 1)
    degrees = degrees_of_freedom(seen, luck, n_seeds, groups)
    ps = 2 * student.sf(np.abs(means) / np.sqrt(seen / n_seeds + luck), degrees)
    assert 0.78 < np.mean(ps < 0.05 / n_tests) < 0.95
