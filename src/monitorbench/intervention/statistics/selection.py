"""What choosing the best of several conditions or thresholds on the same data does to its figure.

The best of many looks better than it is. In every draw the condition with the highest ΔSuccess is chosen
anew; by how much its figure there exceeds its own mean over all draws is the optimism of the choice (Efron &
Tibshirani 1993, chapter 17). A threshold τ is chosen in the same way: one condition for each τ.
"""

from typing import NamedTuple

import numpy as np

from monitorbench.metrics.bootstrap import FloatArray


class Choice(NamedTuple):
    """The choice of the highest ΔSuccess, over the draws."""

    optimism: float
    """What the chosen one's figure has too much, on average; 0 with one condition."""
    shares: tuple[float, ...]
    """[conditions]: in which share of the draws each was chosen; ties go to the first."""


def chosen_in_draws(deltas: FloatArray) -> Choice:
    """From ΔSuccess [draws, conditions]; a condition is not chosen in a draw where it has no run."""
    values = np.where(np.isnan(deltas), -np.inf, deltas)
    best = values.argmax(axis=1)
    means = np.nansum(deltas, axis=0) / np.maximum(1, (~np.isnan(deltas)).sum(axis=0))
    gains = values[np.arange(len(values)), best] - means[best]
    gains = gains[np.isfinite(gains)]
    shares = np.bincount(best, minlength=deltas.shape[1]) / max(1, len(best))
    return Choice(float(gains.mean()) if len(gains) else 0.0, tuple(shares.tolist()))
