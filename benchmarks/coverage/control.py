"""Audit budgets: does the threshold keep them, and does the interval of safety hold what it claims?"""

from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from benchmarks.coverage import Cell, Table, given
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.control.safety import Attacks, at_this_threshold, is_safe, safety_with_interval
from monitorbench.metrics.guarantees import threshold as threshold_module
from monitorbench.metrics.guarantees.order_statistic import Guarantee, Method
from monitorbench.metrics.guarantees.threshold import Benign, guaranteed_threshold, threshold_draws

BUDGETS = (0.003, 0.01, 0.03)
TASKS = (50, 200, 1000)
N_ATTACKS, SHIFT, SUCCEED, DELTA = 200, 2.5, 0.8, 0.05
"""Attacks, how much higher their latent scores lie, the share that would succeed; 1 - confidence."""


class World(NamedTuple):
    """Honest and attack scores whose distribution is known, from normal latent scores."""

    name: str
    score: Callable[[FloatArray], FloatArray]
    """Makes a latent score the score that a monitor gives."""
    lowest: Callable[[float], float]
    """The latent score from which on the score is above a threshold."""


def _rounded(name: str, decimals: int, slope: float, offset: float) -> World:
    def lowest(threshold: float) -> float:
        edge = threshold + 0.5 * 10**-decimals  # what rounds to more than the threshold lies above
        return np.inf if edge >= 1 else float((np.log(edge / (1 - edge)) + offset) / slope)

    return World(name, lambda latent: np.round(expit(slope * latent - offset), decimals), lowest)


def _latent(threshold: float) -> float:
    return float(np.log(threshold / (1 - threshold)) / 1.7)


WORLDS = (
    World("continuous", lambda latent: expit(1.7 * latent), _latent),
    _rounded("2 decimals", 2, 1.7, 3),
    _rounded("0 to 10", 1, 1.2, 1),
)
"""Continuous scores, scores with a fifth of all honest ones at 0, and whole numbers from 0 to 10."""


def tables(seed: int, effort: float) -> Iterator[Table]:
    """One table a promise: every world, budget and number of honest tasks."""
    threshold_module._MOST_DRAWN = 0  # the same distribution, drawn at once
    promises: tuple[Method, Method] = ("neyman_pearson", "conformal_risk")
    for i, promise in enumerate(promises):
        rng, n = np.random.default_rng([seed, 20, i]), round(400 * effort)
        rows = [
            [world.name, f"{100 * budget:g} %", n_tasks, *_row(world, promise, budget, n_tasks, rng, n)]
            for world, budget, n_tasks in product(WORLDS, BUDGETS, TASKS)
        ]
        claim = "mean FAR <= budget" if i else f"FAR <= budget in {1 - DELTA:g} of calibrations"
        yield Table(
            f"Safety at an audit budget, {promise.replace('_', ' ')}",
            "scores | budget | honest tasks | has a threshold | FAR <= budget | mean FAR | mean safety | "
            "this threshold | the procedure | procedure, attacks alone | mean width",
            rows,
            f"{n:,} data sets each, {N_ATTACKS} attacks of which {SUCCEED:.0%} would succeed, 300 draws, "
            f"nominal .95; claimed: {claim}. *This threshold*: the share of intervals that hold the true "
            "safety at the threshold chosen; *the procedure*: its mean over calibrations of so many tasks. "
            "*Attacks alone*: the interval that takes the threshold for given. A budget that the data can't "
            "keep has no threshold in any data set.",
        )


def _row(
    world: World, promise: Method, budget: float, n_tasks: int, rng: np.random.Generator, n: int
) -> list[Cell]:
    drawn = [_simulate(world, promise, budget, n_tasks, rng) for _ in range(n)]
    kept = [figures for figures in drawn if figures is not None]
    if not kept:
        return [0.0, *[None] * 7]
    far, truth, low, high, plain_low, plain_high = np.array(kept).T
    mean = truth.mean()
    shares = [far <= budget * (1 + 1e-9), (low <= truth) & (truth <= high)]
    shares += [(low <= mean) & (mean <= high), (plain_low <= mean) & (mean <= plain_high)]
    keeps, *covers = (float(share.mean()) for share in shares)
    return [len(kept) / n, keeps, f"{far.mean():.4f}", float(mean), *covers, float((high - low).mean())]


def _simulate(
    world: World, promise: Method, budget: float, n_tasks: int, rng: np.random.Generator
) -> tuple[float, ...] | None:
    """True FAR and safety at the threshold of one data set, and both intervals; None: no threshold."""
    honest = Benign(world.score(rng.normal(size=n_tasks)), np.arange(n_tasks))
    guarantee = Guarantee(promise, budget, DELTA)
    threshold = guaranteed_threshold(honest, guarantee).threshold
    if threshold is None:
        return None
    latent = rng.normal(SHIFT, size=N_ATTACKS)
    attacks = Attacks(world.score(latent), rng.random(N_ATTACKS) < SUCCEED, np.arange(N_ATTACKS))
    seed = int(rng.integers(2**31))
    anew = threshold_draws(honest, guarantee, resamples=300, seed=seed)
    bounds = given(safety_with_interval(attacks, threshold, anew, seed=seed + 1).interval)
    plain = given(at_this_threshold(is_safe(attacks, threshold), attacks.groups))
    cut = world.lowest(threshold)
    far, caught = float(norm.sf(cut)), float(norm.sf(cut - SHIFT))
    return far, 1 - SUCCEED * (1 - caught), *bounds, *plain
