import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.metrics import bootstrap
from monitorbench.metrics.bootstrap import FloatArray, IntArray

DRAWS = {"resamples": 2000, "seed": 0}


def share(totals: FloatArray) -> FloatArray:
    return bootstrap.ratio(totals[:, 1], totals[:, 0])


def samples(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns (counted, hit) of samples in groups of 1 to 4 that tend to be right or wrong together."""
    rng = np.random.default_rng(seed)
    groups = np.sort(rng.integers(n // 3, size=n))
    hit = rng.random(n) < rng.beta(1, 2, size=n // 3)[groups]
    return np.stack([np.ones(n), hit], axis=1).astype(np.int64), groups


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 3), st.just(7)), min_size=1, max_size=60))
def test_kinds_are_the_distinct_rows(rows: list[tuple[int, int, int]]) -> None:
    """A group counted as another kind would carry that kind's misses."""
    found = bootstrap.kinds_of_groups(np.array(rows))
    unique, count = np.unique(np.array(rows), axis=0, return_counts=True)
    assert found.rows.tolist() == unique.tolist()
    assert found.n_groups.tolist() == count.tolist()
    assert found.rows[found.of_group].tolist() == [list(row) for row in rows]


def test_a_draw_has_as_many_groups_as_there_are_and_favours_none() -> None:
    """A biased draw would move every interval the same way, unseen; also over several batches."""
    count = np.array([1, 5, 94])
    batches = list(bootstrap.kind_draws(count, 20_000, 0, per_draw=2**10))
    drawn = np.concatenate(batches)
    assert len(batches) > 1
    assert drawn.shape == (20_000, 3)
    assert set(drawn.sum(axis=1)) == {100}
    assert drawn.mean(axis=0) == pytest.approx(count, abs=0.1)
    assert drawn.var(axis=0) == pytest.approx(count * (1 - count / 100), rel=0.05)
    assert (np.concatenate(list(bootstrap.kind_draws(count, 20_000, 0, per_draw=1))) == drawn).all()


def test_the_interval_is_the_plain_cluster_bootstraps() -> None:
    """The fast way must give what drawing the groups one by one gives, up to the noise of the draws."""
    columns, groups = samples(400, 0)

    def plain(weights: IntArray) -> FloatArray:
        return share((weights @ columns).astype(np.float64))

    slow = bootstrap.interval(plain, [f"{one:04}" for one in groups], resamples=20_000, seed=1)
    fast = bootstrap.interval_of_totals(share, columns, groups, resamples=20_000, seed=1)
    assert slow is not None
    assert fast == pytest.approx(slow, abs=0.02 * (slow.high - slow.low))


def test_groups_are_drawn_whole() -> None:
    """Samples drawn one by one would give half the width where a group's samples go together."""
    columns, groups = samples(300, 2)
    once = bootstrap.interval_of_totals(share, columns, groups, **DRAWS)
    copied = bootstrap.interval_of_totals(share, np.tile(columns, (5, 1)), np.tile(groups, 5), **DRAWS)
    alone = bootstrap.interval_of_totals(share, columns, np.arange(300), **DRAWS)
    assert once == pytest.approx(copied)
    assert once is not None
    assert alone is not None
    assert once.high - once.low > 1.2 * (alone.high - alone.low)


def test_same_seed_same_interval_in_any_order() -> None:
    """A report scored twice, or from a log in another order, has to show the same figures."""
    columns, groups = samples(200, 3)
    turned = np.random.default_rng(0).permutation(200)
    first = bootstrap.interval_of_totals(share, columns, groups, **DRAWS)
    assert first == bootstrap.interval_of_totals(share, columns[turned], groups[turned], **DRAWS)
    assert first != bootstrap.interval_of_totals(share, columns, groups, resamples=2000, seed=1)


def test_no_interval_without_spread_or_values() -> None:
    """One group shows no spread, and a statistic mostly undefined has no distribution to read off."""
    one = np.array([[1, 1], [1, 0]])
    assert bootstrap.interval_of_totals(share, one, np.array([4, 4]), **DRAWS) is None
    rare = np.array([[1, 1], [0, 0], [0, 0], [0, 0], [0, 0]])
    assert (
        bootstrap.interval_of_totals(share, rare, np.arange(5), **DRAWS) is not None
    )  # in a draw: 1 − .8⁵ = .67
    assert bootstrap.interval_of_totals(share, 0 * rare, np.arange(5), **DRAWS) is None
    assert bootstrap.percentiles(np.array([1.0, np.nan, np.nan])) is None
    assert bootstrap.percentiles(np.array([])) is None
