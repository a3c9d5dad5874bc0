"""The exact test of no effect at all, by task."""

from math import lgamma, log

import numpy as np

from monitorbench.metrics.bootstrap import FloatArray, IntArray


def swap_test(changes: IntArray) -> float:
    """Two-sided exact p that an intervention changes nothing, from C − B of each task: [tasks].

    Without any effect, baseline and treated runs of a task could be swapped, all seeds of it together, and
    each task's change is as likely with the other sign: p is the share of the 2^tasks signs whose sum is at
    least as far from 0 as the one observed (Fisher's randomisation test). With one seed a task this is
    McNemar's exact test.
    """
    sizes, counts = np.unique(np.abs(changes[changes != 0]), return_counts=True)
    shares: FloatArray = np.ones(1)  # of each possible sum, from the lowest on
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        spread = np.zeros(2 * size * count + 1)
        spread[:: 2 * size] = _coin_tosses(count)
        shares = np.convolve(shares, spread).astype(np.float64)
    furthest = (len(shares) - 1) // 2
    sums = np.arange(-furthest, furthest + 1)
    return float(min(1.0, shares[np.abs(sums) >= abs(int(changes.sum()))].sum()))


def _coin_tosses(n: int) -> FloatArray:
    """The chances [n + 1] of 0 to n heads in `n` tosses."""
    logs = [lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2) for k in range(n + 1)]
    shares: FloatArray = np.exp(np.array(logs))
    return shares
