"""The unconditional exact test and the score interval, beside enumerations."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import binom, norm

from monitorbench.intervention.statistics.exact import score_interval, unconditional_test, worst_tail
from monitorbench.metrics.significance import group_swap_p


def changes(n: int, disrupted: int, recovered: int) -> np.ndarray:
    return np.repeat([-1, 1, 0], [disrupted, recovered, n - disrupted - recovered])


@pytest.mark.parametrize(("n", "sizes"), [(6, [1]), (5, [1, 1, 3]), (6, [2, 3])])
@pytest.mark.parametrize("z", [0.5, 1.2, 2.0])
def test_the_tail_is_the_share_of_all_pilots(n: int, sizes: list[int], z: float) -> None:
    """Every pilot of so many tasks, with its chance: the p stands for this enumeration."""
    one = np.array(sizes, dtype=np.int64)
    mean_square = np.mean(one.astype(float) ** 2)
    rate, expected = 0.37, 0.0
    values, counts = np.unique(one, return_counts=True)
    chances = {0: 1 - rate} | {
        sign * int(v): rate * c / len(one) / 2
        for v, c in zip(values, counts, strict=True)
        for sign in (1, -1)
    }
    for pilot in itertools.product(chances, repeat=n):
        k = np.count_nonzero(pilot)
        if k and sum(pilot) >= z * np.sqrt(k * mean_square) - 1e-9:
            expected += np.prod([chances[x] for x in pilot])
    assert worst_tail(z, n, one, rate, rate) == pytest.approx(expected, abs=1e-12)


def test_with_one_seed_it_is_suissa_and_shusters() -> None:
    """Reckoned from the multinomial by itself; the rates left out can only make p a little larger."""
    n, b, c = 30, 1, 8
    z = (c - b) / np.sqrt(b + c)
    either = np.arange(n + 1)

    def tail(rate: float) -> float:
        reached = [
            binom.sf(np.ceil((k + z * np.sqrt(k)) / 2 - 1e-9) - 1, k, 0.5) if k else 0.0 for k in either
        ]
        return float(binom.pmf(either, n, rate) @ np.array(reached))

    everywhere = max(2 * tail(rate) for rate in np.linspace(0.01, 1, 400))
    assert 2 * tail((b + c) / n) <= unconditional_test(changes(n, b, c)) <= everywhere + 1.1e-4


@pytest.mark.parametrize("n", [5, 12, 30, 80])
def test_it_never_errs_oftener_than_stated(n: int) -> None:
    """At every rate of change: all outcomes of all pilots, those with p of at most 5 % counted by chance."""
    rejected = [
        (b, c)
        for b, c in itertools.product(range(n + 1), repeat=2)
        if b + c <= n and c > b and unconditional_test(changes(n, b, c)) <= 0.05
    ]
    for rate in np.linspace(0.02, 1, 50):
        share = sum(binom.pmf(b + c, n, rate) * binom.pmf(c, b + c, 0.5) for b, c in rejected)
        assert share <= 0.025 + 1e-9


def test_it_finds_what_mcnemars_misses() -> None:
    """Four recoveries of thirty tasks and no disruption: one pilot without an effect in forty looks so."""
    assert unconditional_test(changes(30, 0, 4)) < 0.05 < group_swap_p(changes(30, 0, 4))
    assert unconditional_test(changes(5, 0, 5)) > 0.05
    assert unconditional_test(changes(30, 3, 3)) == unconditional_test(changes(30, 0, 0)) == 1.0


def test_whole_tasks_are_single_runs() -> None:
    """Copied seeds must not be evidence; nor may one task with a seed less change the p by much."""
    once = unconditional_test(changes(30, 2, 9))
    assert unconditional_test(3 * changes(30, 2, 9)) == pytest.approx(once, abs=1e-12)
    nearly = 3 * changes(30, 2, 9)
    nearly[np.flatnonzero(nearly > 0)[0]] = 2
    assert unconditional_test(nearly) == pytest.approx(once, abs=0.03)


@pytest.mark.parametrize(("n", "b", "c"), [(50, 1, 9), (30, 0, 4), (40, 7, 7), (397, 28, 14)])
def test_the_score_interval_is_tangos(n: int, b: int, c: int) -> None:
    """Each bound is where the score statistic, with the likeliest rates that have that effect, is 1.96."""
    one = np.repeat(np.eye(4, dtype=np.int64), [n - b - c, b, c, 0], axis=0)
    found = score_interval(one, 0.025, 0.025)
    assert found is not None
    for effect, sign in zip(found, (1, -1), strict=True):

        def unlikely(loss: float, effect: float = effect) -> float:
            gain, nothing = loss + effect, 1 - 2 * loss - effect
            return -(b * np.log(loss) + c * np.log(gain) + (n - b - c) * np.log(nothing))

        least, most = max(0.0, -effect), (1 - effect) / 2
        loss = minimize_scalar(unlikely, bounds=(least + 1e-9, most - 1e-9), method="bounded").x
        z = (c - b - n * effect) / np.sqrt(n * (2 * loss + effect * (1 - effect)))
        assert sign * z == pytest.approx(norm.ppf(0.975), abs=2e-3)


def test_no_score_interval_where_seeds_differ() -> None:
    """It takes a task's runs for one piece of evidence, which they are only where they end alike."""
    assert score_interval(np.array([[3, 0, 0, 0], [2, 0, 1, 0]]), 0.025, 0.025) is None
    assert score_interval(np.array([[3, 0, 0, 0], [2, 0, 0, 0]]), 0.025, 0.025) is None
    thrice = score_interval(3 * np.eye(4, dtype=np.int64), 0.025, 0.025)
    assert thrice == score_interval(np.eye(4, dtype=np.int64), 0.025, 0.025)
