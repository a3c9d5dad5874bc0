import numpy as np
import pytest
from fake_outcomes import counted, outcomes

from monitorbench.config.pilot import PilotStatistics
from monitorbench.intervention.statistics.analysis import analyse
from monitorbench.intervention.statistics.decision_rule import Decision
from monitorbench.intervention.statistics.exact import _BETS, first_decisive, look_at


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
