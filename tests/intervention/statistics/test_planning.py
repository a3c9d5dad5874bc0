"""Plans by the power of the rule itself, beside the rule."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from monitorbench.config.pilot import PilotStatistics
from monitorbench.intervention.statistics.exact import unconditional_test
from monitorbench.intervention.statistics.planning import (
    DecisionSettings,
    expected_changes,
    further_tasks,
    minimum_detectable_effect,
    observed_changes,
    simulate_power,
    tasks_needed,
)


@pytest.mark.parametrize(
    ("p", "r", "d", "n"), [(0.3, 0.1, 0.4143, 30), (0.5, 0.32, 0.0, 30), (0.8, 0.3, 0.1, 50)]
)
@pytest.mark.parametrize("n_tried", [1, 4])
def test_the_power_is_the_exact_tests(p: float, r: float, d: float, n: int, n_tried: int) -> None:
    """With one seed the exact test decides: its power is a sum over all pilots."""
    changes = expected_changes(p, r, d)
    sign = 1 if changes.effect > 0 else -1
    lost, won = (1 - p) * d, p * r
    alpha = 2 * PilotStatistics().error / (n_tried if sign > 0 else 1)
    expected = 0.0
    for b in range(n + 1):
        for c in range(n + 1 - b):
            chance = binom.pmf(b, n, lost) * binom.pmf(c, n - b, won / (1 - lost))
            if sign * (c - b) > 0 and chance > 1e-6:
                signs = np.repeat([-1, 1, 0], [b, c, n - b - c])
                expected += chance * (unconditional_test(signs) <= alpha)
    assert simulate_power(n, changes, DecisionSettings(n_tried=n_tried)) == pytest.approx(expected, abs=0.025)


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("margin", [0.0, 0.02])
def test_the_three_functions_are_one(seeds: int, margin: float) -> None:
    """The tasks asked for have to be those at which the effect is found with the power asked for."""
    changes = expected_changes(p=0.9, r=0.2, d=0.56, seeds=seeds, correlation=0.5)
    rule = DecisionSettings(margin=margin)
    n = tasks_needed(changes.effect, changes, rule, power=0.9)
    assert n is not None
    assert simulate_power(n, changes, rule) >= 0.9 > simulate_power(int(0.96 * n) - 1, changes, rule) - 0.02
    found = minimum_detectable_effect(n, changes, rule, power=0.9)
    assert found == pytest.approx(changes.effect - margin, rel=0.06)


def test_a_margin_is_found_by_the_draws() -> None:
    """A margin makes the decision the interval's: its power has to be that of an interval."""
    changes = expected_changes(p=0.8, r=0.3, d=0.1)
    shift = (changes.effect - 0.05) / np.sqrt((0.26 - 0.22**2) / 120)
    assert simulate_power(120, changes, DecisionSettings(margin=0.05)) == pytest.approx(
        norm.cdf(shift - 1.96), abs=0.05
    )


def test_nothing_tells_an_effect_from_itself() -> None:
    """An effect that is the margin would ask for infinitely many tasks, or crash."""
    changes = expected_changes(0.5, 0.1, 0.1)
    assert tasks_needed(0.02, changes, DecisionSettings(margin=0.02)) is None
    assert tasks_needed(1e-9, changes) is None
    assert tasks_needed(2e-5, changes) is None
    assert minimum_detectable_effect(3, changes) is None
    assert minimum_detectable_effect(100, changes, DecisionSettings(margin=0.9999)) is None


def test_seeds_count_as_far_as_they_differ() -> None:
    """Copied seeds bring nothing, independent ones nearly as much as tasks do."""
    effect = expected_changes(0.9, 0.2, 0.56).effect
    alone, alike, apart = (
        tasks_needed(effect, expected_changes(0.9, 0.2, 0.56, seeds, correlation))
        for seeds, correlation in ((1, 1.0), (3, 1.0), (3, 0.0))
    )
    assert alike == alone
    assert 0.3 < apart / alone < 0.5


def test_expected_changes_have_the_rates_and_the_correlation() -> None:
    """A plan before any run is by the rates that were typed."""
    one = expected_changes(p=0.7, r=0.2, d=0.3, seeds=2, correlation=0.4)
    mean, square = 0.7 * 0.2 - 0.3 * 0.3, 0.7 * 0.2 + 0.3 * 0.3
    assert one.effect == pytest.approx(mean)
    of_sum = float(one.chances @ one.values**2) - (2 * mean) ** 2
    assert of_sum == pytest.approx(2 * (square - mean**2) * (1 + 0.4))
    assert one.tilted(0.2).effect == pytest.approx(0.2, abs=1e-6)


def test_an_unseen_side_may_still_come() -> None:
    """No disruption in twenty tasks must not be planned with as if there could be none."""
    found = observed_changes(np.array([[0, 0, 1, 0]] * 4 + [[1, 0, 0, 0]] * 16))
    shares = dict(zip(found.values.tolist(), found.chances.tolist(), strict=True))
    assert shares == pytest.approx({-1: 0.5 / 20.5, 0: 16 / 20.5, 1: 4 / 20.5})
    unchanged = observed_changes(np.array([[3, 0, 0, 0]] * 40))
    assert minimum_detectable_effect(40, unchanged) == pytest.approx(0.14, abs=0.03)


def test_the_plan_is_the_same_each_time() -> None:
    """Two reports of one pilot must not ask for different numbers of tasks."""
    cells = np.repeat(np.eye(4, dtype=np.int64), [118, 9, 16, 7], axis=0)
    first, again, other = (
        further_tasks(cells, 7 / 150, 3, PilotStatistics(seed=seed)).n_tasks for seed in (1, 1, 2)
    )
    assert first == again
    assert other == pytest.approx(first, rel=0.1)
