"""A critic's temperature for one agent, fitted to that agent's runs, and what it changes on the same runs."""

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.intervention.critic.critic import Critic
from monitorbench.intervention.critic.temperature import Temperature, fit_temperature, quality
from monitorbench.intervention.critic.training_data import failed
from monitorbench.records import Sample

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
    known = [
        (judgement.p_fail, fails)
        for judgement, fails in zip(judgements, failed(samples), strict=True)
        if judgement.p_fail is not None
    ]
    if samples and not known:
        raise UserError(
            f"monitor={monitor}: no P(fail) for any of {len(samples)} validation steps "
            f"({judgements[0].reason}); expected a monitor and an engine that give probabilities"
        )
    p_fail, fails = [p for p, _ in known], [fail for _, fail in known]
    found = fit_temperature(p_fail, fails)
    if found.reason:
        _log.warning("pilot: temperature %g: %s", found.value, found.reason)
    after = [found.calibrated(p) for p in p_fail]
    report = {
        "agent": agent,
        "temperature": found._asdict(),
        "n_unscored": len(samples) - len(known),
        "tau": tau,
        "before": quality(p_fail, fails, tau)._asdict(),
        "after": quality(after, fails, tau)._asdict(),
    }
    return Calibration(found, report)
