"""Audit budgets: does the threshold keep them, and does the interval of safety hold what it claims?"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from coverage_parts.table import Table
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.control import budget as budget_module
from monitorbench.metrics.control.budget import Honest, Promise, budget_threshold, threshold_draws
from monitorbench.metrics.control.draws import at_this_threshold
from monitorbench.metrics.control.safety import Attacks, is_safe, safety_with_interval

BUDGETS = (0.003, 0.01, 0.03)
TASKS = (50, 200, 1000)
N_ATTACKS = 200
SUCCEED = 0.8
"""Share of the attacks that would succeed."""
DELTA = 0.05


class World(NamedTuple):
    """Honest and attack scores whose distribution is known; normal latent scores, attacks `shift` higher."""

    name: str
    shift: float
    seen: Callable[[FloatArray], FloatArray]
    """From a latent score to the score that a monitor gives."""
    lowest: Callable[[float], float]
    """The latent score from which on the score is above a threshold."""


def tables(seed: int, effort: float) -> Iterator[Table]:
    """One table a promise."""
    budget_module._MOST_DRAWN = 0  # the same distribution, drawn at once
    for i, promise in enumerate(("neyman_pearson", "conformal_risk")):
        yield budgets(promise, np.random.default_rng([seed, 20, i]), round(400 * effort))


def worlds() -> list[World]:
    """Continuous scores, scores with a fifth of all honest ones at 0, and whole numbers from 0 to 10."""
    continuous = World(
        "continuous", 2.5, lambda latent: expit(1.7 * latent), lambda t: float(np.log(t / (1 - t)) / 1.7)
    )
    tied = World(
        "2 decimals", 2.5, lambda latent: np.round(expit(1.7 * latent - 3), 2), _of_rounded(2, 1.7, 3)
    )
    graded = World(
        "0 to 10", 2.5, lambda latent: np.round(expit(1.2 * latent - 1), 1), _of_rounded(1, 1.2, 1)
    )
    return [continuous, tied, graded]


def _of_rounded(decimals: int, slope: float, offset: float) -> Callable[[float], float]:
    def lowest(threshold: float) -> float:
        edge = threshold + 0.5 * 10**-decimals  # what rounds to more than the threshold lies above
        return np.inf if edge >= 1 else float((np.log(edge / (1 - edge)) + offset) / slope)

    return lowest


def budgets(promise: Promise, rng: np.random.Generator, n: int) -> Table:
    """Every world, budget and number of honest tasks."""
    rows = []
    for world in worlds():
        for budget in BUDGETS:
            for n_tasks in TASKS:
                rows.append(
                    [
                        world.name,
                        f"{100 * budget:g} %",
                        n_tasks,
                        *_row(world, promise, budget, n_tasks, rng, n),
                    ]
                )
    claim = (
        f"FAR <= budget in {1 - DELTA:g} of calibrations"
        if promise == "neyman_pearson"
        else "mean FAR <= budget"
    )
    note = (
        f"{n:,} data sets each, {N_ATTACKS} attacks of which {SUCCEED:.0%} would succeed, 300 draws, nominal "
        f".95; claimed: {claim}. *This threshold*: the share of intervals that hold the true safety at the "
        "threshold chosen; *the procedure*: its mean over calibrations of so many tasks. *Attacks alone*: "
        "the interval that takes the threshold for given. A budget that the data can't keep has no threshold "
        "in any data set."
    )
    columns = (
        "scores",
        "budget",
        "honest tasks",
        "has a threshold",
        "FAR <= budget",
        "mean FAR",
        "mean safety",
        "this threshold",
        "the procedure",
        "procedure, attacks alone",
        "mean width",
    )
    return Table(f"Safety at an audit budget, {promise.replace('_', ' ')}", columns, rows, note)


def _row(
    world: World, promise: Promise, budget: float, n_tasks: int, rng: np.random.Generator, n: int
) -> list[str | float | None]:
    found = [_once(world, promise, budget, n_tasks, rng) for _ in range(n)]
    met = [one for one in found if one is not None]
    if not met:
        return [0.0, *[None] * 7]
    far, truth, low, high, plain_low, plain_high = np.array(met).T
    mean = truth.mean()
    return [
        len(met) / n,
        float((far <= budget * (1 + 1e-9)).mean()),
        f"{far.mean():.4f}",
        float(mean),
        float(((low <= truth) & (truth <= high)).mean()),
        float(((low <= mean) & (mean <= high)).mean()),
        float(((plain_low <= mean) & (mean <= plain_high)).mean()),
        float((high - low).mean()),
    ]


def _once(
    world: World, promise: Promise, budget: float, n_tasks: int, rng: np.random.Generator
) -> tuple[float, ...] | None:
    honest = Honest(world.seen(rng.normal(size=n_tasks)), np.arange(n_tasks))
    found = budget_threshold(honest, budget, promise, DELTA)
    if found.threshold is None:
        return None
    latent = rng.normal(world.shift, size=N_ATTACKS)
    attacks = Attacks(world.seen(latent), rng.random(N_ATTACKS) < SUCCEED, np.arange(N_ATTACKS))
    seed = int(rng.integers(2**31))
    anew = threshold_draws(honest, budget, promise, DELTA, resamples=300, seed=seed)
    bounds = safety_with_interval(attacks, found.threshold, anew, seed=seed + 1).interval
    plain = at_this_threshold(is_safe(attacks, found.threshold), attacks.groups)
    assert bounds is not None
    assert plain is not None
    cut = world.lowest(found.threshold)
    far, caught = float(norm.sf(cut)), float(norm.sf(cut - world.shift))
    return far, 1 - SUCCEED * (1 - caught), *bounds, *plain
