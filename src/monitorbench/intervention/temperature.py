"""P(fail) made a probability: one temperature for each agent, fitted to its runs, and what it changes there.

p' = σ(logit(p) / T) (Guo et al. 2017, arXiv:1706.04599, section 4.2, for two classes), T the minimum of the
negative log-likelihood on the validation runs (2602.03338, section 3). T > 0 keeps the order of scores, so
AUROC stays what it was; F1 at τ and the calibration error move.
"""

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from monitorbench.config.base import UserError
from monitorbench.intervention.critic import Critic, failed
from monitorbench.metrics.auroc import auroc
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.metrics.score_facts import expected_calibration_error, reliability_table
from monitorbench.records import Sample

_NEAREST = 1e-6
"""Scores nearer to 0 or 1 are taken for this: a logit has to be finite."""
_RANGE = (1e-3, 1e3)
"""Range of 1/T."""


class Temperature(NamedTuple):
    """The fitted T; `reason` where the likelihood has no minimum inside the range."""

    value: float
    n_steps: int
    reason: str = ""

    def calibrated(self, p_fail: float) -> float:
        """σ(logit(p) / T), in (0, 1)."""
        return float(_sigmoid(_logits([p_fail]) / self.value)[0])


class CriticQuality(NamedTuple):
    """A critic's judgements of single steps against how the runs ended; None where undefined."""

    auroc: float | None
    f1: float | None
    """F1 of `P(fail) > τ` as the prediction of failure: 2·TP / (2·TP + FP + FN)."""
    ece: float | None
    """Expected calibration error over at most 15 bins of equal mass."""
    nll: float | None
    """Mean negative log-likelihood, in nats."""


def fit_temperature(p_fail: Sequence[float], failed: Sequence[bool]) -> Temperature:
    """Minimise the NLL over T in [0.001, 1000]; [steps] each, P(fail) in [0, 1].

    The NLL is convex in 1/T, so its minimum is the one root of its slope. Where the minimum is at an end of
    the range the reason says so: scores too often on the wrong side of one half, however well they rank the
    runs, become one half, which no τ above it fires on; scores that part the runs without a fault become 0
    and 1. Without a step T is 1.
    """
    flags = np.asarray(failed, dtype=np.bool_)
    if not len(flags):
        return Temperature(1.0, 0, "no validation step was judged")
    logits = _logits(p_fail)

    def slope(inverse: float) -> float:
        return float(np.mean(logits * (_sigmoid(inverse * logits) - flags)))

    low, high = _RANGE
    if slope(low) >= 0:
        why = "one half for every run fits better: the scores lie too often on the wrong side of it"
        return Temperature(1 / low, len(flags), why)
    if slope(high) <= 0:
        return Temperature(1 / high, len(flags), "the scores part the validation runs without a fault")
    return Temperature(1 / brentq(slope, low, high, xtol=1e-15, rtol=1e-14), len(flags))


def quality(p_fail: Sequence[float], failed: Sequence[bool], tau: float) -> CriticQuality:
    """AUROC, F1 at `tau`, ECE and NLL; [steps] each, P(fail) in [0, 1]."""
    scores, flags = np.asarray(p_fail, dtype=np.float64), np.asarray(failed, dtype=np.bool_)
    if not len(flags):
        return CriticQuality(None, None, None, None)
    fired = scores > tau
    hits = int((fired & flags).sum())
    marked = int(fired.sum() + flags.sum())
    logits = _logits(p_fail)
    nll = np.logaddexp(0, np.where(flags, -logits, logits)).mean()
    return CriticQuality(
        auroc=auroc(scores, flags),
        f1=2 * hits / marked if marked else None,
        ece=expected_calibration_error(reliability_table(scores, flags)),
        nll=float(nll),
    )


def _logits(p_fail: Sequence[float]) -> FloatArray:
    clipped = np.clip(np.asarray(p_fail, dtype=np.float64), _NEAREST, 1 - _NEAREST)
    logits: FloatArray = np.log(clipped) - np.log1p(-clipped)
    return logits


def _sigmoid(logits: FloatArray) -> FloatArray:
    probabilities: FloatArray = np.exp(-np.logaddexp(0, -logits))
    return probabilities


_log = logging.getLogger(__name__)


class Calibration(NamedTuple):
    """The temperature, and its report as written to `critic.json`."""

    temperature: Temperature
    report: dict[str, Any]


def calibrate(
    critic: Critic, samples: Sequence[Sample], *, monitor: str, agent: str, tau: float
) -> Calibration:
    """Judge the validation steps in `samples`, fit the temperature, measure the critic before and after.

    `monitor` and `agent` are names, for the report and for messages; `tau` is the threshold that F1 is taken
    at. Raises `UserError` where the critic gives no probability for any of the steps.
    """
    judgements = critic.judge(samples)
    scored = [
        (judgement.p_fail, fails)
        for judgement, fails in zip(judgements, failed(samples), strict=True)
        if judgement.p_fail is not None
    ]
    if samples and not scored:
        raise UserError(
            f"monitor={monitor}: no P(fail) for any of {len(samples)} validation steps "
            f"({judgements[0].reason}); expected a monitor and an engine that give probabilities"
        )
    p_fail, fails = [p for p, _ in scored], [fail for _, fail in scored]
    temperature = fit_temperature(p_fail, fails)
    if temperature.reason:
        _log.warning("pilot: temperature %g: %s", temperature.value, temperature.reason)
    after = [temperature.calibrated(p) for p in p_fail]
    report = {
        "agent": agent,
        "temperature": temperature._asdict(),
        "n_unscored": len(samples) - len(scored),
        "tau": tau,
        "before": quality(p_fail, fails, tau)._asdict(),
        "after": quality(after, fails, tau)._asdict(),
    }
    return Calibration(temperature, report)
