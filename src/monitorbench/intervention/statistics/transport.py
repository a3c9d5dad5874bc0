"""From the pilot to a deployment that fails at another rate: where p, r and d earn their keep.

ΔSuccess is the pilot's own. Where a deployment's failure rate is p_target, and r and d carry over to it, the
expected effect is p_target·r − (1 − p_target)·d (2602.03338, the identity with another p). That r and d carry
over is an assumption which no pilot can check.
"""

import numpy as np

from monitorbench.intervention.statistics.effect import Rates
from monitorbench.metrics.bootstrap import FloatArray


def transported(found: Rates, p_target: float) -> FloatArray:
    """The expected effect, in [−1, 1], of each of `found`; NaN where r or d is undefined and is needed."""
    gained = np.where(p_target == 0, 0.0, p_target * found.r)
    lost = np.where(p_target == 1, 0.0, (1 - p_target) * found.d)
    return np.asarray(gained - lost)
