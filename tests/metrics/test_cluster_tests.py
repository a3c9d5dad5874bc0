"""p values of tuned against base: scipy's and statsmodels' where they apply, simulation where not."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as sm_mcnemar

from monitorbench.metrics.auroc import paired_auroc_difference
from monitorbench.metrics.significance import auroc_difference_p, rate_difference_p, student_p


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 7, 49, 50, 292, 999, 5000, 20_000])
def test_student_p_is_scipys(degrees: int):
    """A tail that is off by a factor makes every word after Holm wrong."""
    for t in (0.0, 0.3, 1.0, 1.96, 3.8, 6.0):
        expected = 2 * stats.t.sf(t, degrees)
        assert student_p(t, degrees) == pytest.approx(
            expected, rel=0.02 if degrees >= 10_000 else 1e-6, abs=1e-13
        )


def scores_of(
    draw: np.random.Generator, flags: np.ndarray, skill: float, own: float, shared: np.ndarray
) -> np.ndarray:
    raw = skill * flags + shared + own * draw.normal(size=len(flags))
    return 1 / (1 + np.exp(-raw))


def test_auroc_p_is_that_of_the_interval():
    """p below .05 beside an interval over 0 (beyond a hair) would have the report contradict itself."""
    draw = np.random.default_rng(0)
    flags, groups = np.tile([True, False], 80), np.repeat(np.arange(80), 2)
    agree = 0
    for _ in range(40):
        shared = draw.normal(size=160)
        base = scores_of(draw, flags, 0.6, 1.0, shared)
        tuned = scores_of(draw, flags, 0.6 + draw.uniform(0, 1.2), 1.0, shared)
        p = auroc_difference_p(base, tuned, flags, groups)
        found = paired_auroc_difference(base, tuned, flags, groups, resamples=1000, seed=1).interval
        assert p is not None
        assert found is not None
        agree += (p < 0.05) == (found.low > 0 or found.high < 0)
    assert agree >= 38


def test_copies_within_a_group_are_no_evidence():
    """Ten paraphrases of a question counted as ten questions make chance significant."""
    draw = np.random.default_rng(3)
    flags, groups = np.tile([True, False], 30), np.repeat(np.arange(30), 2)
    base, tuned = draw.random(60), draw.random(60)
    once = auroc_difference_p(base, tuned, flags, groups)
    ten = auroc_difference_p(*(np.repeat(a, 10) for a in (base, tuned, flags, groups)))
    assert once == pytest.approx(ten)
    answers = (base > 0.5).astype(float), (tuned > 0.4).astype(float)
    for of in (True, False):
        few = rate_difference_p(*answers, flags, groups, of=of)
        many = rate_difference_p(*(np.repeat(a, 10) for a in (*answers, flags, groups)), of=of)
        assert few is not None
        assert many is not None
        assert many <= few, "McNemar's part falls"
        change = (answers[1] != flags).astype(int)[flags == of] - (answers[0] != flags)[flags == of]
        t = stats.ttest_1samp(change, 0)
        assert many == pytest.approx(t.pvalue, rel=1e-6), "and what is left is the test on the groups' sums"


def test_the_rates_p_is_the_larger_of_two():
    """The smaller one would claim what one of the two tests does not bear out."""
    flags, groups = np.ones(60, bool), np.arange(60)
    base = np.array([1.0] * 40 + [0.0] * 20)
    tuned = np.array([1.0] * 38 + [0.0] * 2 + [1.0] * 9 + [0.0] * 11)
    exact = sm_mcnemar([[0, 2], [9, 0]], exact=True).pvalue
    t = stats.ttest_1samp(base - tuned, 0).pvalue
    assert rate_difference_p(base, tuned, flags, groups, of=True) == pytest.approx(max(exact, t), rel=1e-6)
    assert rate_difference_p(base, tuned, flags, groups, of=False) is None, "no benign sample"


@pytest.mark.parametrize("n", [2, 4, 8])
def test_a_difference_without_spread_is_no_proof(n: int):
    """Three pairs, all better: the variance is 0, and p = 0 would be announced as certainty."""
    flags, groups = np.tile([True, False], n), np.repeat(np.arange(n), 2)
    base, tuned = np.full(2 * n, 0.5), np.where(flags, 0.9, 0.1)
    assert auroc_difference_p(base, tuned, flags, groups) == pytest.approx(2.0 ** (1 - n))
    missed = np.zeros(2 * n)
    assert rate_difference_p(missed, flags.astype(float), flags, groups, of=True) == pytest.approx(
        2.0 ** (1 - n)
    )


def test_false_claims_are_as_rare_as_promised():
    """Two monitors of one skill, in groups of like samples: too small a p too often is a word too many."""
    draw = np.random.default_rng(5)
    flags, groups = np.tile([True, False], 120), np.repeat(np.arange(60), 4)
    claims = {"auroc": 0, "rate": 0}
    for _ in range(300):
        of_group = np.repeat(draw.normal(size=(60, 2)), 4, axis=0)
        base, tuned = (scores_of(draw, flags, 0.8, 0.5, of_group[:, i]) for i in (0, 1))
        p = auroc_difference_p(base, tuned, flags, groups)
        q = rate_difference_p((base > 0.6) * 1.0, (tuned > 0.6) * 1.0, flags, groups, of=True)
        claims["auroc"] += p is not None and p < 0.05
        claims["rate"] += q is not None and q < 0.05
    assert claims["auroc"] <= 26, claims
    assert claims["rate"] <= 26, claims


def test_what_neither_scored_is_left_out():
    """An unscored sample that counts as wrong turns refusals into misses."""
    flags, groups = np.tile([True, False], 20), np.repeat(np.arange(20), 2)
    draw = np.random.default_rng(1)
    base, tuned = draw.random(40), draw.random(40)
    base[:4], tuned[2:6] = np.nan, np.nan
    kept = slice(6, None)
    assert auroc_difference_p(base, tuned, flags, groups) == pytest.approx(
        auroc_difference_p(base[kept], tuned[kept], flags[kept], groups[kept])
    )
    assert auroc_difference_p(base, base, flags, np.zeros(40, dtype=int)) is None, "one group shows no spread"
    assert auroc_difference_p(base, np.full(40, np.nan), flags, groups) is None
