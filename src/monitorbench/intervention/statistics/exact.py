"""Exact inference by task: the test that an intervention changes nothing, once, and intervals at every look.

*The test.* If an intervention does nothing, the runs without and with it could be swapped, all seeds of a
task together, and a task's change (its recoveries less its disruptions) were as likely with the other sign.
McNemar's exact test takes the number of changed tasks as given, and so can't see a gain in four changed tasks
of a thousand. This one takes that number as drawn, too, at the worst of all rates at which tasks may change:
with one seed a task it is Suissa & Shuster's (1991, Biometrics 47:361). Promises: with one seed a task, in a
pilot of any size in which nothing changes on average, p is at most `a` with a chance of at most `a`, half of
it on either side.

*Looks* have an interval of ΔSuccess that holds at every look at once: a confidence sequence by betting
(Waudby-Smith & Ramdas 2024, JRSS B 86:1, section 4), not a group-sequential plan. It needs no largest number
of tasks fixed beforehand, so an inconclusive pilot may simply run on; it is exact for few tasks and any
number of seeds, where early looks with three changed runs break every normal approximation; and it holds for
any margin. The price is power: it needs more tasks than one look at the end.

Against the claim that the mean change of a task is at most m, start with a capital of 1 and bet a share
c of what can be lost on each task: the capital is multiplied by 1 + c·(x − m)/(1 + m), which on average does
not grow where the claim holds, so it ever reaches 1/a with a chance of at most a (Ville 1939). The capital
is spread evenly over several c. Promises: that chance bounds the error over all looks, on the condition that
tasks come in random order.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import bdtrc, betaincinv, gammaln, ndtri, xlog1py, xlogy

from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.metrics.rates import Interval

_LEFT_OUT = 1e-4
"""The chance that the rate of change is none of those looked at; it is added to p."""
_RATES = 65
"""How many rates of change are looked at."""
_DEVIATIONS = 7
"""Numbers of changed tasks further than this from their mean have no part."""
_ROUNDING = 1e-9
_STEPS = 40
"""Steps of the bisection for a score interval's bounds."""


def unconditional_test(changes: IntArray) -> float:
    """Two-sided exact p that an intervention changes nothing, from C − B of each task: [tasks].

    The statistic is the sum of the changes over the root of the sum of their squares, McNemar's z. p is the
    chance that it is as far from 0 where as many tasks change at one rate, by sizes as those seen, up and
    down alike; the largest p of the rates that agree with the share of tasks that changed (Berger & Boos
    1994, JASA 89:1012). 1 where recoveries and disruptions are equally many.
    """
    sizes = np.abs(changes[changes != 0])
    if not changes.sum():
        return 1.0
    z = abs(int(changes.sum())) / sqrt(float((sizes**2).sum()))
    low, high = _rates_of_change(len(sizes), len(changes))
    return min(1.0, 2 * worst_tail(z, len(changes), sizes, low, high) + _LEFT_OUT)


def worst_tail(z: float, n_tasks: int, sizes: IntArray, low: float, high: float) -> float:
    """The chance of a statistic of at least `z` > 0 without any effect, at the worst rate in [low, high].

    Each of `n_tasks` changes at that rate, by one of `sizes` (of the tasks that changed, without sign).
    """
    return float(_worst_tails(np.array([z]), n_tasks, sizes, low, high)[0])


@lru_cache(maxsize=4096)
def critical_value(n_tasks: int, n_changed: int, error: float) -> float:
    """The statistic from which `unconditional_test` has p of at most 2·`error`, with one seed a task.

    `n_changed` of `n_tasks` changed, at least one. To within 0.02.
    """
    normal = -float(ndtri(error))
    grid = np.linspace(max(0.1, normal - 0.5), normal + 1.5, 101)
    one_seed = np.ones(1, dtype=np.int64)
    tails = _worst_tails(grid, n_tasks, one_seed, *_rates_of_change(n_changed, n_tasks))
    enough = np.flatnonzero(2 * tails + _LEFT_OUT <= 2 * error)
    return float(grid[enough[0]]) if len(enough) else float(np.inf)


def _worst_tails(z: FloatArray, n_tasks: int, sizes: IntArray, low: float, high: float) -> FloatArray:
    """`worst_tail` of each of `z` [values]."""
    changed = np.arange(
        max(0, int(n_tasks * low - _DEVIATIONS * (sqrt(n_tasks * low) + 1))),
        min(n_tasks, int(n_tasks * high + _DEVIATIONS * (sqrt(n_tasks * high) + 1))) + 1,
    )
    tails = _tails(z, changed, sizes)  # [values, changed]
    rates = np.linspace(low, high, _RATES)[:, None]
    choices = gammaln(n_tasks + 1) - gammaln(changed + 1) - gammaln(n_tasks - changed + 1)
    shares = np.exp(choices + xlogy(changed, rates) + xlog1py(n_tasks - changed, -rates))
    worst: FloatArray = (shares @ tails.T).max(axis=0)
    return worst


def _rates_of_change(n_changed: int, n_tasks: int) -> tuple[float, float]:
    """The rates that agree with so many changed tasks: Clopper & Pearson's interval, `_LEFT_OUT` outside."""
    low = betaincinv(n_changed, n_tasks - n_changed + 1, _LEFT_OUT / 2) if n_changed else 0.0
    high = betaincinv(n_changed + 1, n_tasks - n_changed, 1 - _LEFT_OUT / 2) if n_changed < n_tasks else 1.0
    return float(low), float(high)


def _tails(z: FloatArray, changed: IntArray, sizes: IntArray) -> FloatArray:
    """The chances [values, len(changed)] of a statistic of at least each of `z` > 0 in so many changed tasks.

    Of `changed` each is one more than the one before.
    """
    kinds, counts = np.unique(sizes // np.gcd.reduce(sizes), return_counts=True)
    reached = z[:, None] * np.sqrt(changed * float((counts * kinds**2).sum() / counts.sum()))
    if len(kinds) == 1:
        heads = np.ceil((changed + reached) / 2 - _ROUNDING)
        possible = (heads > 0) & (heads <= changed)
        return np.where(possible, bdtrc(np.where(possible, heads - 1, 0), changed, 0.5), 0.0)
    most = int(kinds[-1])
    step = np.zeros(2 * most + 1)
    step[most + kinds] = step[most - kinds] = counts / counts.sum() / 2
    shares = _power(step, int(changed[0]))
    least = np.ceil(reached - _ROUNDING).astype(np.int64)
    chances = np.zeros(reached.shape)
    for i, n in enumerate(changed.tolist()):
        above = np.append(np.cumsum(shares[::-1])[::-1], 0.0)
        chances[:, i] = above[np.minimum(n * most + least[:, i], len(shares))] if n else 0.0
        shares = np.asarray(np.convolve(shares, step), dtype=np.float64)
    return chances


def _power(step: FloatArray, n: int) -> FloatArray:
    """The shares of each possible sum of `n` steps, from the lowest on."""
    length = n * (len(step) - 1) + 1
    return np.maximum(np.fft.irfft(np.fft.rfft(step, 2 * length) ** n, 2 * length)[:length], 0.0)


def score_interval(cells: IntArray, error_low: float, error_high: float) -> Interval | None:
    """Tango's score interval of ΔSuccess (1998, Statistics in Medicine 17:891) from cells [tasks, 4].

    It inverts the test of which `unconditional_test` has the exact p at 0. The errors are the chances that
    ΔSuccess lies below and above. None where a task's runs ended differently, or
    tasks have different numbers of them.
    """
    if (np.count_nonzero(cells, axis=1) > 1).any() or np.ptp(cells.sum(axis=1)):
        return None
    _, lost, won, _ = np.count_nonzero(cells, axis=0).tolist()
    low = -_score_upper(len(cells), won, lost, -float(ndtri(error_low)))
    return Interval(low, _score_upper(len(cells), lost, won, -float(ndtri(error_high))))


def _score_upper(n: int, lost: int, won: int, quantile: float) -> float:
    """The largest effect whose score statistic is at most `quantile` below 0."""
    low, high = (won - lost) / n, 1.0
    for _ in range(_STEPS):
        effect = (low + high) / 2
        # The chance of a loss that is likeliest where ΔSuccess is `effect`: the root of a quadratic.
        linear = (2 * n + lost - won) * effect - lost - won
        root = sqrt(max(0.0, linear**2 - 8 * n * (-lost * effect * (1 - effect))))
        loss = (root - linear) / (4 * n)
        variance = n * max(0.0, 2 * loss + effect * (1 - effect))
        below = n * effect - (won - lost)
        low, high = (effect, high) if below <= quantile * sqrt(variance) else (low, effect)
    return low


_BETS = 0.99 * 2.0 ** (-np.arange(14) / 2)
"""Shares of what can be lost, from nearly all to a hundredth: for effects large and small."""
_HALVINGS = 32
"""Steps of the bisection, which make its bounds exact to 2^-31."""


class Look(NamedTuple):
    """The interval that is known after so many tasks."""

    n_tasks: int
    interval: Interval
    """Holds the mean change of a task, at this look and at all before it."""


def look_at(changes: FloatArray, every: int, error_low: float, error_high: float) -> list[Look]:
    """Looks after each `every` tasks and after the last, at `changes` [tasks] in [−1, 1], in running order.

    There is at least one task. A task's change is the mean over its seeds of treated minus baseline success.
    The mean change lies below any of the intervals with a chance of at most `error_low`, and above with one
    of at most `error_high`.
    """
    n = len(changes)
    sizes = sorted({*range(every, n + 1, every), n})
    values, kind = np.unique(changes, return_inverse=True)
    seen = np.cumsum(np.eye(len(values))[kind], axis=0)[np.array(sizes) - 1]
    low = np.maximum.accumulate(_lower(seen, values, error_low))
    high = np.minimum.accumulate(-_lower(seen, -values, error_high))
    bounds = [Interval(float(a), float(b)) for a, b in zip(low, high, strict=True)]
    return [Look(*row) for row in zip(sizes, bounds, strict=True)]


def first_decisive(looks: Sequence[Look], margin: float) -> Look | None:
    """The first look whose interval lies on one side of the margin: the pilot stops there."""
    return next((look for look in looks if look.interval.low > margin or look.interval.high < margin), None)


def _lower(seen: FloatArray, values: FloatArray, error: float) -> FloatArray:
    """Lower bounds [looks]: the largest means that are refuted, from how often each of `values` was seen."""
    low, high = np.full(len(seen), -1.0), np.ones(len(seen))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        refuted = _log_capital(seen, values, middle) >= -np.log(error)
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return low


def _log_capital(seen: FloatArray, values: FloatArray, mean: FloatArray) -> FloatArray:
    """The logarithm of the capital [looks] against a mean of at most `mean` [looks], above −1."""
    gain = (values - mean[:, None]) / (1 + mean[:, None])  # [looks, values], at least −1
    growth = np.log1p(_BETS[:, None, None] * gain)  # [bets, looks, values]
    logs = (growth * seen).sum(axis=2)
    top = logs.max(axis=0)
    log_capital: FloatArray = top + np.log(np.exp(logs - top).mean(axis=0))
    return log_capital
