import numpy as np
import pytest

from monitorbench.metrics import bootstrap
from monitorbench.metrics.bootstrap import FloatArray, IntArray

DRAWS = {"resamples": 2000, "seed": 0}


def samples(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Hits of samples in groups of 1 to 4 that tend to be right or wrong together."""
    rng = np.random.default_rng(seed)
    groups = np.sort(rng.integers(n // 3, size=n))
    hit = rng.random(n) < rng.beta(1, 2, size=n // 3)[groups]
    return hit, groups


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


def test_groups_are_drawn_whole() -> None:
    """Samples drawn one by one would give half the width where a group's samples go together."""
    hits, groups = samples(300, 2)

    def share(weights: IntArray) -> FloatArray:
        return bootstrap.ratio((weights @ hits).astype(np.float64), weights.sum(axis=1).astype(np.float64))

    once = bootstrap.interval(share, groups, **DRAWS)
    alone = bootstrap.interval(share, np.arange(300), **DRAWS)
    assert once is not None
    assert alone is not None
    assert once.high - once.low > 1.2 * (alone.high - alone.low)
    assert once != bootstrap.interval(share, groups, resamples=2000, seed=1)
    assert bootstrap.interval(share, 0 * groups, **DRAWS) is None, "one group shows no spread"


def test_no_interval_without_values() -> None:
    """A statistic mostly undefined has no distribution to read off."""
    assert bootstrap.percentiles(np.array([1.0, np.nan, np.nan])) is None
    assert bootstrap.percentiles(np.array([])) is None
