"""Does a critic fire at the step where the mistake was made? Measured on runs with a marked step.

A critic scores a run after each of its steps and fires at the first whose score exceeds the threshold.
It fires *exactly* at the marked step, *before* it, *after* it, or *never*; these four and *unscored* (a
run without any score) share out all runs. A step without a score can't fire; a person's own message
can't either, nor a step before `min_step`. All shares are of all runs: an unscored run is never a hit.

What a share is worth depends on the runs' lengths, so strategies that need no critic stand beside it:
a random step, the last, the first, and the step most often marked in the same subset's runs of *other*
questions. `beyond_random` is a strategy's exact share minus that of a random step *in the runs in which
it fires*, so that a critic that seldom fires is compared with an equally rare guess.

All runs failed. So nothing here speaks of false alarms: a critic that fires at once in every run, good
or bad, is the strategy `first step`.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitorbench.config.base import UserError
from monitorbench.config.pilot import WhoAndWhen
from monitorbench.config.study import Paths
from monitorbench.intervention.recorded.archives import find_recorded
from monitorbench.intervention.recorded.marked_runs import (
    HUMAN,
    MarkedRun,
    Scores,
    marked_runs,
    read_step_scores,
)
from monitorbench.metrics import bootstrap
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.rates import Interval, wilson_interval

CRITIC = "critic"
ALL = "all"
"""The table over every subset."""


class RunShare(NamedTuple):
    """A share of runs, or a difference of two, with its 95 % interval; None where there can be none."""

    value: float
    interval: Interval | None


class Located(NamedTuple):
    """Shares of runs by where a strategy fires; `exact`, `before`, `after`, `never`, `unscored` sum to 1."""

    exact: RunShare
    within_one: RunShare
    """Fires at most one step from the marked one, on either side."""
    agent: RunShare
    """Fires at a step of the marked agent, whichever step that is."""
    before: RunShare
    after: RunShare
    never: RunShare
    unscored: RunShare
    beyond_random: RunShare


class StrategyTable(NamedTuple):
    """Every strategy on one subset of `n` runs; the critic's comes first where there are scores."""

    n: int
    strategies: dict[str, Located]


class Localisation(NamedTuple):
    """The tables, by subset, over all runs first."""

    tables: dict[str, StrategyTable]
    n_unreachable: int
    """Runs whose marked step nothing may fire at."""
    step_coverage: float | None
    """The share that the critic scored of all steps at which it may fire; None without scores."""


_DIFFERENCE = Located._fields.index("beyond_random")
_Firing = Mapping[int, float]
"""How likely each step is the one at which a strategy fires: sums to 1, or is empty for never."""
_Strategy = Callable[[MarkedRun, list[int]], _Firing | None]
"""Gives the firing for a run and the steps at which anything may fire; None where the run is unscored."""


def may_fire(run: MarkedRun, min_step: int) -> list[int]:
    """The steps at which a critic may fire: from `min_step`, and no person's own."""
    return [number for number, step in enumerate(run.steps) if number >= min_step and step.agent != HUMAN]


def firing_step(scores: Mapping[int, float], allowed: Sequence[int], threshold: float) -> int | None:
    """The first allowed step whose score exceeds the threshold; None where none does."""
    return next((step for step in allowed if step in scores and scores[step] > threshold), None)


def localise(
    runs: Sequence[MarkedRun],
    scores: Scores | None,
    *,
    threshold: float,
    min_step: int,
    resamples: int,
    seed: int,
) -> Localisation:
    """Every strategy on all runs and on each subset of them; the critic's where `scores` are given.

    Intervals: Wilson's for a share of runs; for what is expected of a random step and for `beyond_random`
    the percentiles of `resamples` draws of whole groups, the same draws for every strategy. Raises
    `UserError` without runs, and for scores of a task or step that no run has.
    """
    if not runs:
        raise UserError("no run with a marked step: nothing to localise")
    if scores is not None:
        _check(runs, scores)
    strategies = _strategies(runs, scores, threshold)
    allowed = [may_fire(run, min_step) for run in runs]
    placed = np.array(
        [
            [_placed(run, steps, choose(run, steps)) for choose in strategies.values()]
            for run, steps in zip(runs, allowed, strict=True)
        ]
    )
    groups = bootstrap.group_index([run.group for run in runs])
    subsets = sorted({run.subset for run in runs})
    tables = {}
    for subset in [ALL, *subsets] if len(subsets) > 1 else [ALL]:
        chosen = np.array([subset in (ALL, run.subset) for run in runs])
        located = _located(placed[chosen], bootstrap.group_index(groups[chosen]), resamples, seed)
        tables[subset] = StrategyTable(int(chosen.sum()), dict(zip(strategies, located, strict=True)))
    return Localisation(
        tables,
        sum(run.mistake_step not in steps for run, steps in zip(runs, allowed, strict=True)),
        None if scores is None else _coverage(runs, allowed, scores),
    )


def locate(settings: WhoAndWhen, paths: Paths) -> Localisation:
    """Find out where the critic of `settings.scores` fires, beside strategies that need no critic.

    Raises `UserError` where the runs or the scores can't be read.
    """
    runs = marked_runs(find_recorded("who_and_when", settings, paths))
    scores = None if settings.scores is None else read_step_scores(settings.scores)
    return localise(
        runs,
        scores,
        threshold=settings.threshold,
        min_step=settings.min_step,
        resamples=settings.resamples,
        seed=settings.seed,
    )


def _strategies(runs: Sequence[MarkedRun], scores: Scores | None, threshold: float) -> dict[str, _Strategy]:
    without_critic: dict[str, _Strategy] = {
        "random step": lambda _, allowed: {step: 1 / len(allowed) for step in allowed},
        "last step": lambda _, allowed: dict.fromkeys(allowed[-1:], 1.0),
        "first step": lambda _, allowed: dict.fromkeys(allowed[:1], 1.0),
        "usual step": _usual_step(runs),
    }
    if scores is None:
        return without_critic

    def critic(run: MarkedRun, allowed: list[int]) -> _Firing | None:
        of_run = scores.get(run.task)
        if not of_run:
            return None
        step = firing_step(of_run, allowed, threshold)
        return {} if step is None else {step: 1.0}

    return {CRITIC: critic, **without_critic}


def _usual_step(runs: Sequence[MarkedRun]) -> _Strategy:
    """The step most often marked in the subset's runs of other questions; of equals the earliest.

    Where a run has no such step, or nothing may fire there, the nearest one.
    """
    marks: dict[str, Counter[int]] = {run.subset: Counter() for run in runs}
    own: dict[tuple[str, str], Counter[int]] = {(run.subset, run.group): Counter() for run in runs}
    for run in runs:
        marks[run.subset][run.mistake_step] += 1
        own[run.subset, run.group][run.mistake_step] += 1

    def choose(run: MarkedRun, allowed: list[int]) -> _Firing:
        counts = marks[run.subset] - own[run.subset, run.group]
        usual = min(counts, key=lambda step: (-counts[step], step), default=0)
        return {min(allowed, key=lambda step: abs(step - usual)): 1.0} if allowed else {}

    return choose


def _placed(run: MarkedRun, allowed: Sequence[int], firing: _Firing | None) -> list[float]:
    """The fields of `Located` for one run."""
    if firing is None:
        return [float(field == "unscored") for field in Located._fields]
    marked = run.mistake_step
    exact = firing.get(marked, 0.0)
    by_chance = 1 / len(allowed) if firing and marked in allowed else 0.0
    return [
        exact,
        sum(weight for step, weight in firing.items() if abs(step - marked) <= 1),
        sum(weight for step, weight in firing.items() if run.steps[step].agent == run.mistake_agent),
        sum(weight for step, weight in firing.items() if step < marked),
        sum(weight for step, weight in firing.items() if step > marked),
        0.0 if firing else 1.0,
        0.0,
        exact - by_chance,
    ]


def _located(placed: FloatArray, groups: NDArray[np.int64], resamples: int, seed: int) -> list[Located]:
    """One row a strategy of `placed` [runs, strategies, fields of Located]."""
    n, n_strategies, n_fields = placed.shape
    values = placed.reshape(n, -1)
    n_groups = int(groups.max()) + 1
    bounds: FloatArray | None = None
    if n_groups > 1:
        batches = bootstrap.draws(n_groups, resamples, seed, per_draw=max(values.shape))
        weights = (batch[:, groups].astype(np.float64) for batch in batches)
        means = np.concatenate([each @ values / each.sum(axis=1, keepdims=True) for each in weights])
        bounds = np.quantile(means, [0.025, 0.975], axis=0).reshape(2, n_strategies, n_fields)

    def share(strategy: int, field: int) -> RunShare:
        of_runs = placed[:, strategy, field]
        value = float(of_runs.mean())
        if field != _DIFFERENCE and bool(np.isin(of_runs, (0, 1)).all()):
            return RunShare(value, wilson_interval(int(of_runs.sum()), n))
        if bounds is None:
            return RunShare(value, None)
        return RunShare(value, Interval(*map(float, bounds[:, strategy, field])))

    return [Located(*(share(i, j) for j in range(n_fields))) for i in range(n_strategies)]


def _coverage(runs: Sequence[MarkedRun], allowed: Sequence[Sequence[int]], scores: Scores) -> float | None:
    scored = [
        step in scores.get(run.task, {}) for run, steps in zip(runs, allowed, strict=True) for step in steps
    ]
    return sum(scored) / len(scored) if scored else None


def _check(runs: Sequence[MarkedRun], scores: Scores) -> None:
    length = {run.task: len(run.steps) for run in runs}
    for task, steps in scores.items():
        if task not in length:
            raise UserError(f"recorded.scores: no run {task!r:.80}; expected names such as {runs[0].task}")
        if max(steps, default=0) >= length[task]:
            raise UserError(
                f"recorded.scores: step {max(steps)} of {task}, which has {length[task]}; count from 0"
            )
