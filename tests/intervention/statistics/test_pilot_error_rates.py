"""The decision's error rates in simulated pilots; `benchmarks/coverage/pilot.py` does more of them."""

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import multinomial

from monitorbench.intervention.statistics.decision_rule import borne_out
from monitorbench.intervention.statistics.effect import TaskTable
from monitorbench.intervention.statistics.exact import score_interval, unconditional_test
from monitorbench.intervention.statistics.intervals import draw_rates, effect_intervals, effect_tails
from monitorbench.metrics.rates import Interval
from monitorbench.metrics.significance import holm

N_TASKS, N_PILOTS = 50, 2000
NAMES = tuple(f"{i:03}" for i in range(N_TASKS))
ONE_SEED = np.eye(4, dtype=np.int64)
"""The cells of a task: A, B, C, D."""


def pilots(kinds: np.ndarray, shares: Sequence[float], seed: int, n: int = N_PILOTS) -> np.ndarray:
    """Cells [pilots, tasks, 4]: each task is of one of `kinds` [kinds, 4]."""
    return kinds[np.random.default_rng(seed).choice(len(kinds), p=shares, size=(n, N_TASKS))]


def intervals(found: np.ndarray, n_conditions: int = 1, plain: bool = False) -> list[Interval]:
    """ΔSuccess's interval of each of `found`; each `n_conditions` after one another are one pilot."""
    tables = [TaskTable(NAMES, cells) for cells in found]
    drawn = draw_rates(tables, draws=1000, seed=0, prior_tasks=0 if plain else 1)
    tests = [0.0 if plain else unconditional_test(one.changes) for one in tables]
    made = []
    for start in range(0, len(tables), n_conditions):
        family = range(start, start + n_conditions)
        tails = effect_tails(drawn, family, 0.95)
        for i, p in zip(family, holm(tests[start : start + n_conditions]), strict=True):
            score = None if plain else score_interval(tables[i].cells, 0.025 / n_conditions, 0.025)
            made.append(borne_out(effect_intervals(drawn, i, tails), p, 0.025, score).delta_success)
    return made


def share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags)


@pytest.mark.parametrize(("r", "d", "seeds"), [(0.12, 0.56, 1), (0.3, 0.3, 1), (0.2, 0.6, 3)])
def test_a_false_intervene_is_as_rare_as_stated(r: float, d: float, seeds: int) -> None:
    """At p = p* the intervention gains nothing: "intervene" in at most 2.5 % of all pilots of 50 tasks.

    With several seeds a task's runs all change or none does; 1,200 simulated pilots may show .026 there.
    """
    p = d / (r + d)
    counts = [(N_TASKS - b - c, b, c) for b in range(30) for c in range(30) if b + c <= N_TASKS]
    chances = multinomial.pmf(counts, N_TASKS, [1 - 2 * p * r, (1 - p) * d, p * r])
    likely = [i for i in range(len(counts)) if chances[i] > 1e-6]
    found = intervals(np.stack([np.repeat(seeds * ONE_SEED[:3], counts[i], axis=0) for i in likely]))
    assert chances[likely].sum() > 0.999
    assert 0.015 < chances[likely] @ [one.low > 0 for one in found] <= 0.025
    assert 0.015 < chances[likely] @ [one.high < 0 for one in found] <= 0.025


def test_why_tasks_are_added() -> None:
    """The plain percentiles: no change is certainty, and four recoveries a gain, which a coin gives."""
    unchanged, lucky = np.zeros((N_TASKS, 4), dtype=np.int64), np.zeros((N_TASKS, 4), dtype=np.int64)
    unchanged[:, 0] = lucky[:46, 0] = lucky[46:, 2] = 1
    both = np.stack([unchanged, lucky])
    plain, ours = intervals(both, plain=True), intervals(both)
    assert plain[0] == (0, 0)
    assert plain[1].low > 0
    assert ours[0].low <= -0.04 < 0.04 <= ours[0].high
    assert 0 < ours[1].low < 0.01


@pytest.mark.parametrize("delta", [0.04, -0.3])
def test_the_interval_covers_an_effect(delta: float) -> None:
    """A true gain or loss has to lie in the interval 95 times in 100."""
    changed = max(0.1, abs(delta) + 0.04)
    shares = [1 - changed, (changed - delta) / 2, (changed + delta) / 2, 0]
    found = intervals(pilots(ONE_SEED, shares, seed=1, n=1000))
    assert share([one.low <= delta <= one.high for one in found]) >= 0.945


def test_three_seeds_of_a_task() -> None:
    """Thin recoveries against whole disruptions, the hardest mean of 0 for three seeds."""
    kinds = np.array([[3, 0, 0, 0], [2, 0, 1, 0], [0, 3, 0, 0]])
    found = intervals(pilots(kinds, [0.76, 0.18, 0.06], seed=2, n=1000))
    assert share([one.low > 0 for one in found]) <= 0.025
    assert share([one.low <= 0 <= one.high for one in found]) >= 0.945
    plain = intervals(pilots(kinds, [0.76, 0.18, 0.06], seed=2, n=1000), plain=True)
    assert share([one.low > 0 for one in plain]) > 0.04


def test_four_conditions_none_of_which_helps() -> None:
    """Trying four and picking the best must not err four times as often."""
    rng = np.random.default_rng(3)
    failed = rng.random((250, 1, N_TASKS)) < 0.5
    changes = rng.random((250, 4, N_TASKS)) < 0.3
    cells = np.where(failed, 2 * changes, np.where(changes, 1, 3)).reshape(-1, N_TASKS)
    together, apart = intervals(ONE_SEED[cells], 4), intervals(ONE_SEED[cells], 1)
    errs = [
        share([any(one.low > 0 for one in found[i : i + 4]) for i in range(0, 1000, 4)])
        for found in (together, apart)
    ]
    assert errs[0] <= 0.025 < errs[1]
