"""Which order statistic of n honest scores keeps a promise on the false alarm rate, and how many it takes."""

from math import ceil, log, log1p

import numpy as np

_ROUNDING = 1e-9
"""Relative error granted to a tail probability: without it, one that equals delta is a coin toss."""


def neyman_pearson_rank(n: int, alpha: float, delta: float) -> tuple[int, float] | None:
    """The smallest k with P(Binomial(n, 1 - alpha) >= k) <= delta, and that probability.

    Tong, Feng & Li 2018 (Science Advances 4:eaao1659), proposition 1: the FAR of "alarm where score
    > the k-th smallest of n benign scores" exceeds alpha with at most that probability; exactly
    with it where scores are continuous, less with ties. None where even k = n fails, which is
    n < log(delta)/log(1 - alpha). O(n); raises `ValueError` unless alpha and delta are in (0, 1).
    """
    check_rates(alpha=alpha, delta=delta)
    # P(Binomial(n, 1 - alpha) >= k) = P(Binomial(n, alpha) <= n - k): sum the pmf from 0 alarms on.
    alarms = np.arange(n, dtype=np.float64)
    steps = np.log((n - alarms) / (alarms + 1)) + (log(alpha) - log1p(-alpha))
    log_pmf = n * log1p(-alpha) + np.concatenate([[0.0], np.cumsum(steps)])
    tail = np.cumsum(np.exp(log_pmf))
    allowed = int(np.searchsorted(tail, delta * (1 + _ROUNDING), side="right")) - 1
    allowed = min(allowed, n - 1)  # where rounding makes the tail at n - 1 look like delta
    return (n - allowed, float(tail[allowed])) if allowed >= 0 else None


def samples_needed(alpha: float, delta: float) -> int:
    """How many benign questions `neyman_pearson_rank` takes at least: ceil(log(delta)/log(1 - alpha))."""
    check_rates(alpha=alpha, delta=delta)
    return max(1, ceil((log(delta) + log1p(_ROUNDING)) / log1p(-alpha)))


def conformal_questions_needed(alpha: float, max_loss: float = 1.0) -> int:
    """How many benign questions conformal risk control takes at least: ceil(max_loss/alpha - 1)."""
    return max(1, ceil(max_loss / alpha - 1 - _ROUNDING))


def check_rates(**levels: float) -> None:
    """Raise `ValueError` for a level outside (0, 1)."""
    for name, value in levels.items():
        if not 0 < value < 1:
            raise ValueError(f"{name}={value}: expected a number in (0, 1)")
