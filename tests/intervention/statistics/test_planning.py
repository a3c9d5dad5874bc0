from math import sqrt

import numpy as np
import pytest
from statsmodels.stats.power import NormalIndPower

from monitorbench.intervention.statistics.planning import (
    Spread,
    expected_spread,
    minimum_detectable_effect,
    observed_spread,
    power,
    tasks_needed,
)


@pytest.mark.parametrize(("effect", "n"), [(0.05, 50), (0.1, 150), (-0.08, 400)])
def test_power_is_statsmodels(effect: float, n: int) -> None:
    """A team plans its budget by this figure."""
    spread = Spread(0.17, 0.4)
    theirs = NormalIndPower(ddof=0).power(
        abs(effect) / sqrt(spread.of_task(3)), n, 0.05, ratio=0, alternative="two-sided"
    )
    assert power(effect, n, 3, spread) == pytest.approx(theirs, abs=2e-3)


def test_the_three_functions_are_one() -> None:
    """The tasks asked for have to be those at which the effect is found with the power asked for."""
    spread = expected_spread(p=0.9, r=0.12, d=0.56, correlation=0.5)
    assert spread.variance == pytest.approx(0.9 * 0.12 + 0.1 * 0.56 - (0.9 * 0.12 - 0.1 * 0.56) ** 2)
    n = tasks_needed(0.05, 3, spread, power=0.9, margin=0.01)
    assert n is not None
    assert power(0.05, n, 3, spread, margin=0.01) >= 0.9 > power(0.05, n - 1, 3, spread, margin=0.01)
    assert minimum_detectable_effect(n, 3, spread, power=0.9) == pytest.approx(0.04, rel=1e-2)


def test_nothing_tells_an_effect_from_itself() -> None:
    """An effect that is the margin would ask for infinitely many tasks, or crash."""
    assert tasks_needed(0.02, 1, Spread(0.1, 1.0), margin=0.02) is None
    assert tasks_needed(1e-9, 1, Spread(0.1, 1.0)) is None


def test_planned_power_comes_out_in_a_simulation() -> None:
    """Seeds of a task count only as far as they differ: else a pilot would be planned too small."""
    rng = np.random.default_rng(0)
    n_tasks, seeds, effect = 120, 3, 0.07
    leaning = rng.choice([0.0, 0.4, -0.2], p=[0.45, 0.35, 0.2], size=(4000, n_tasks))
    leaning += effect - (0.35 * 0.4 - 0.2 * 0.2)
    runs = np.where(rng.random((seeds, 4000, n_tasks)) < np.abs(leaning), np.sign(leaning), 0)
    between, whole = leaning[0].var(), runs.var()
    spread = Spread(float(whole), float(leaning.var() / whole))
    assert between > 0
    means = runs.mean(axis=0)
    shift = means.mean(axis=1) / (means.std(axis=1, ddof=1) / sqrt(n_tasks))
    assert power(effect, n_tasks, seeds, spread) == pytest.approx((shift > 1.96).mean(), abs=0.04)


def test_the_spread_is_found_again_in_the_runs() -> None:
    """The correlation of a task's seeds decides between more seeds and more tasks."""
    rng = np.random.default_rng(1)
    share = rng.beta(0.5, 3, size=4000)
    recovered = rng.binomial(4, share)
    cells = np.stack([4 - recovered, 0 * recovered, recovered, 0 * recovered], axis=1)
    found = observed_spread(cells, prior_tasks=0)
    mean = 0.5 / 3.5
    assert found.variance == pytest.approx(mean * (1 - mean), rel=0.05)
    assert found.correlation == pytest.approx(1 / (0.5 + 3 + 1), abs=0.03)
    task_means = recovered / 4
    assert found.of_task(4) == pytest.approx(task_means.var(), rel=0.05)


def test_one_seed_can_not_show_what_more_would_bring() -> None:
    """With one seed a task further seeds must be taken to bring nothing, and no runs' change no certainty."""
    one = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    assert observed_spread(one, prior_tasks=1).correlation == 1.0
    unchanged = np.array([[3, 0, 0, 0]] * 40)
    assert observed_spread(unchanged, prior_tasks=1).variance > 0
