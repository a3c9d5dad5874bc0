"""The exact test and the score interval beside enumerations, and intervals that hold at every look."""

import itertools

import numpy as np
import pytest
from fake_outcomes import counted, outcomes
from scipy.optimize import minimize_scalar
from scipy.stats import binom, norm

from monitorbench.config.pilot import PilotStatistics
from monitorbench.intervention.statistics.analysis import analyse
from monitorbench.intervention.statistics.decision_rule import Decision
from monitorbench.intervention.statistics.exact import (
    _BETS,
    first_decisive,
    look_at,
    score_interval,
    unconditional_test,
    worst_tail,
)
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


def test_no_more_than_the_stated_share_ever_errs() -> None:
    """Looking twenty times at a fixed interval errs far oftener than once in twenty: this one must not."""
    rng = np.random.default_rng(0)
    shares = np.array([0.06, 0.88, 0.06])
    erred = fixed = 0
    for _ in range(200):
        changes = rng.choice([-1.0, 0.0, 1.0], p=shares, size=200)
        erred += first_decisive(look_at(changes, 10, 0.05, 0.05), 0.0) is not None
        n = np.arange(10, 201, 10)
        mean = np.cumsum(changes)[n - 1] / n
        spread = np.sqrt(np.maximum(np.cumsum(changes**2)[n - 1] / n - mean**2, 1e-12) / n)
        fixed += bool((np.abs(mean) > 1.645 * spread).any())
    assert erred <= 0.1 * 200
    assert fixed > 0.2 * 200  # what the sequence is for


def test_skewed_seeds_do_not_fool_it() -> None:
    """Recoveries thin over many tasks against few whole disruptions: the mean is 0, most tasks gain."""
    rng = np.random.default_rng(1)
    changes = rng.choice([-1.0, 0.0, 1 / 3], p=[0.05, 0.8, 0.15], size=(200, 100))
    helped = sum(any(one.interval.low > 0 for one in look_at(row, 10, 0.025, 0.025)) for row in changes)
    assert helped <= 0.025 * 200


def test_harm_stops_early_and_a_gain_is_found() -> None:
    """A pilot that breaks one task in three must not run to its end."""
    rng = np.random.default_rng(2)
    stops = []
    for _ in range(20):
        changes = rng.choice([-1.0, 0.0, 1.0], p=[0.33, 0.65, 0.02], size=200)
        stop = first_decisive(look_at(changes, 10, 0.025, 0.025), 0.0)
        assert stop is not None
        assert stop.interval.high < 0
        stops.append(stop.n_tasks)
    assert np.median(stops) <= 40
    gain = first_decisive(look_at(np.ones(50), 10, 0.025, 0.025), 0.0)
    assert gain is not None
    assert gain.n_tasks == 10


def test_the_bound_is_where_the_capital_reaches_its_threshold() -> None:
    """Against the plain product of the bets, task by task."""
    changes = np.array([1, 0, 1, 1, -1 / 3, 1, 0, 1, 2 / 3, 1, 0])
    *_, last = look_at(changes, 4, 0.025, 0.025)
    assert [one.n_tasks for one in look_at(changes, 4, 0.025, 0.025)] == [4, 8, 11]

    def capital(mean: float, n: int) -> float:
        return float(np.mean([np.prod(1 + c * (changes[:n] - mean) / (1 + mean)) for c in _BETS]))

    best = max((4, 8, 11), key=lambda n: capital(last.interval.low, n))
    assert capital(last.interval.low, best) == pytest.approx(1 / 0.025, rel=1e-6)


def test_sequential_decisions() -> None:
    """The decision is that of the looks, at the margin asked for, and not of the fixed interval."""
    settings = PilotStatistics(sequential=True)
    rng = np.random.default_rng(3)
    cells = rng.permutation(counted(A=10, B=24, C=2, D=14)).tolist()
    found = analyse(outcomes(cells), settings)
    assert found.decision is Decision.DO_NOT_INTERVENE
    assert found.sequential is not None
    assert found.sequential.harm
    assert found.sequential.stopped_at in (20, 30, 40, 50)
    assert found.delta_success_ci == found.sequential.looks[-1].delta_success_ci
    fixed = analyse(outcomes(counted(A=146, C=10, B=1, D=7)), PilotStatistics())
    looked = analyse(outcomes(rng.permutation(counted(A=146, C=10, B=1, D=7)).tolist()), settings)
    assert (fixed.decision, looked.decision) == (Decision.INTERVENE, Decision.INCONCLUSIVE)
    assert looked.further_tasks == 10
    assert looked.p_minus_p_star_ci[0] <= 0
