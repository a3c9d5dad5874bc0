import numpy as np
import pytest
from scipy.stats import bootstrap as scipy_bootstrap

from monitorbench.intervention.statistics.decision_rule import borne_out
from monitorbench.intervention.statistics.effect import TaskTable, rates
from monitorbench.intervention.statistics.intervals import (
    bounds,
    draw_cells,
    draw_rates,
    effect_intervals,
    effect_tails,
    simultaneous_tails,
)


def table(n: int, seed: int, shares: tuple[float, ...] = (0.4, 0.1, 0.2, 0.3), seeds: int = 3) -> TaskTable:
    rng = np.random.default_rng(seed)
    return TaskTable(tuple(f"t{i:03}" for i in range(n)), rng.multinomial(seeds, shares, size=n))


def test_without_added_tasks_it_is_scipys_percentile_bootstrap() -> None:
    """The fast draws have to be the plain ones: tasks with all their seeds, drawn with replacement."""
    one = table(80, 0)
    drawn = rates(draw_cells([one], draws=20_000, seed=1, prior_tasks=0)).delta_success
    ours = bounds(drawn[:, 0], simultaneous_tails(drawn, 0.95, -1.0, 1.0), -1.0, 1.0)
    theirs = scipy_bootstrap(
        (one.changes / 3,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    assert ours == pytest.approx(tuple(theirs), abs=0.006)


def test_added_tasks_are_one_in_each_cell() -> None:
    """The stated prior: a task recovered, one disrupted, one that fails and one that succeeds either way."""
    one = TaskTable(("t", "u"), np.array([[2, 0, 0, 0], [4, 0, 0, 0]]))
    drawn = draw_cells([one], draws=60_000, seed=0, prior_tasks=1)[:, 0]
    assert drawn.mean(axis=0) == pytest.approx([6 + 3, 3, 3, 3], rel=0.03)
    assert set(draw_cells([one], draws=1000, seed=0, prior_tasks=0)[:, 0, 1:].ravel()) == {0}


def test_added_tasks_leave_the_effect_where_it_is() -> None:
    """A large gain must not be drawn towards 0 by the prior."""
    one = table(30, 0, (0.1, 0.0, 0.8, 0.1))
    drawn = draw_rates([one], draws=20_000, seed=0, prior_tasks=1).delta_success
    assert drawn.mean() == pytest.approx(one.changes.mean() / 3, abs=0.005)
    assert drawn.max() <= 1


def test_conditions_are_drawn_on_the_same_tasks() -> None:
    """Drawn apart, the difference of two conditions would seem far less certain than it is."""
    one = table(100, 0)
    first, second = rates(draw_cells([one, one], draws=2000, seed=0, prior_tasks=0)).delta_success.T
    assert np.array_equal(first, second)
    apart = rates(draw_cells([one, table(100, 5)], draws=2000, seed=0, prior_tasks=0)).delta_success
    assert abs(np.corrcoef(apart.T)[0, 1]) < 0.3


def test_the_order_of_the_tasks_does_not_matter() -> None:
    """The same pilot from a shuffled file has to give the same figures."""
    one = table(60, 3)
    turned = np.random.default_rng(0).permutation(60)
    other = TaskTable(tuple(one.tasks[i] for i in turned), one.cells[turned])
    first, second = (draw_cells([some], draws=500, seed=7, prior_tasks=1) for some in (one, other))
    assert np.array_equal(first, second)


def test_a_condition_without_pairs_and_one_with_few_of_the_tasks() -> None:
    """A condition that ran on some tasks only must not get the others' runs, nor crash the rest."""
    few, none = table(3, 1), TaskTable((), np.zeros((0, 4), dtype=np.int64))
    drawn = draw_cells([table(50, 0), few, none], draws=500, seed=0, prior_tasks=1)
    assert np.isnan(drawn[:, 2]).all()
    assert not np.isnan(drawn[:, :2]).any()
    assert drawn[:, 1].sum(axis=1).mean() == pytest.approx(3 * 7, rel=0.1)


def test_a_share_of_the_draws_lies_outside_for_any_condition() -> None:
    """Five intervals of 95 % each for itself would announce a false gain at five times the stated rate."""
    values = np.random.default_rng(0).normal(size=(20_000, 5))
    tails = simultaneous_tails(values, 0.9, -9.0, 9.0)
    found = [bounds(column, tails, -9.0, 9.0) for column in values.T]
    below = (values < [one.low for one in found]).any(axis=1).mean()
    above = (values > [one.high for one in found]).any(axis=1).mean()
    assert below == pytest.approx(0.05, abs=0.002)
    assert below <= 0.05
    assert above == pytest.approx(0.05, abs=0.002)
    assert above <= 0.05
    alone = bounds(values[:, 0], simultaneous_tails(values[:, :1], 0.9, -9.0, 9.0), -9.0, 9.0)
    assert alone == pytest.approx(np.quantile(values[:, 0], [0.05, 0.95]), abs=0.002)
    assert found[0].low < alone.low
    assert alone.high < found[0].high


def test_undefined_draws_widen_the_interval() -> None:
    """A rate that a tenth of the draws can't tell is not known to within the other nine tenths."""
    values = np.linspace(0.4, 0.6, 1000)
    values[::10] = np.nan
    tails = simultaneous_tails(values[:, None], 0.95, 0.0, 1.0)
    assert bounds(values, tails, 0.0, 1.0) == (0.0, 1.0)


@pytest.mark.parametrize("seed", range(12))
def test_p_minus_p_star_excludes_zero_only_with_delta(seed: int) -> None:
    """One statement in two forms: a report in which only p > p* is certain would contradict itself."""
    shares = tuple(np.random.default_rng(seed).dirichlet([1, 0.3, 0.3, 0.3]))
    drawn = rates(draw_cells([table(30, seed, shares)], draws=2000, seed=0, prior_tasks=1))
    found = effect_intervals(drawn, 0, effect_tails(drawn, [0], 0.95))
    assert found.p_minus_p_star.low <= 0 or found.delta_success.low > 0
    assert found.p_minus_p_star.high >= 0 or found.delta_success.high < 0


def test_the_exact_test_has_the_last_word() -> None:
    """Five recoveries of five tasks: the draws exclude 0, a fair coin does that once in 32."""
    five = TaskTable(tuple("abcde"), np.array([[0, 0, 1, 0]] * 5))
    drawn = rates(draw_cells([five], draws=5000, seed=0, prior_tasks=0))
    plain = effect_intervals(drawn, 0, effect_tails(drawn, [0], 0.95))
    sure = borne_out(plain, 0.01, 0.025)
    assert sure.delta_success.low > 0
    assert sure == plain
    unsure = borne_out(plain, 2 / 32, 0.025)
    assert unsure != plain
    assert unsure.delta_success.low == 0 == unsure.p_minus_p_star.low
