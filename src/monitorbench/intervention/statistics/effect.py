"""The rates of an intervention from the counts of the 2×2: p, r, d, p* and ΔSuccess (2602.03338).

Of pairs (baseline, treated) A = fail/fail, B = success/fail, C = fail/success, D = success/success, and
F = A + C, S = B + D, N = F + S. Promises: what has no denominator is NaN, never 0. What follows from an
effect is for `decision_rule` to say.
"""

from typing import NamedTuple

import numpy as np

from monitorbench.metrics.bootstrap import FloatArray, IntArray

_ROUNDING = 1e-9


class PilotRates(NamedTuple):
    """Each an array of one shape; NaN where undefined."""

    p: FloatArray
    """Baseline failure rate F/N, in [0, 1]."""
    r: FloatArray
    """Recovery rate C/F."""
    d: FloatArray
    """Disruption rate B/S."""
    p_star: FloatArray
    """d/(r + d): the failure rate above which the intervention gains."""
    p_minus_p_star: FloatArray
    delta_success: FloatArray
    """(C − B)/N = p·r − (1 − p)·d, in [−1, 1]; defined wherever there is a run."""


def rates(cells: FloatArray | IntArray) -> PilotRates:
    """All rates of counts [..., 4] in the order A, B, C, D; they need not be whole."""
    fail_fail, disrupted, recovered, success_success = np.moveaxis(np.asarray(cells, dtype=np.float64), -1, 0)
    failed, succeeded = fail_fail + recovered, disrupted + success_success
    p = _ratio(failed, failed + succeeded)
    r, d = _ratio(recovered, failed), _ratio(disrupted, succeeded)
    p_star = _ratio(d, r + d)
    return PilotRates(p, r, d, p_star, p - p_star, _ratio(recovered - disrupted, failed + succeeded))


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    found = np.full(np.shape(whole), np.nan)
    np.divide(part, whole, out=found, where=whole > 0)
    return found


def check_identity(found: PilotRates, success_baseline: float, success_treated: float) -> None:
    """ΔSuccess from the counts must be the difference of the success rates, and p·r − (1 − p)·d.

    All scalars. Raises ValueError where they disagree: the counts and the rates are not of the same runs.
    """
    delta = float(found.delta_success)
    others = [success_treated - success_baseline]
    if not np.isnan(found.r) and not np.isnan(found.d):
        others.append(float(found.p * found.r - (1 - found.p) * found.d))
    if any(abs(delta - other) > _ROUNDING for other in others):
        raise ValueError(f"ΔSuccess {delta} by the counts, but {others} by the rates")


def undefined(cells: IntArray) -> list[str]:
    """Say in words which rates have no denominator in counts [4]."""
    fail_fail, disrupted, recovered, success_success = cells.tolist()
    found = []
    if fail_fail + recovered == 0:
        found.append("r is undefined: the baseline never failed")
    if disrupted + success_success == 0:
        found.append("d is undefined: the baseline never succeeded")
    if disrupted + recovered == 0:
        found.append("p* is undefined: no run changed its outcome")
    return found


def transported(found: PilotRates, p_target: float) -> FloatArray:
    """The expected effect, in [−1, 1], in a deployment whose baseline fails at `p_target`.

    ΔSuccess is the pilot's own. Where p is another and r and d carry over, the identity gives
    p_target·r − (1 − p_target)·d; that they carry over is an assumption which no pilot can check. There is
    one value for each of `found`, NaN where r or d is undefined and is needed.
    """
    gained = np.where(p_target == 0, 0.0, p_target * found.r)
    lost = np.where(p_target == 1, 0.0, (1 - p_target) * found.d)
    return np.asarray(gained - lost)
