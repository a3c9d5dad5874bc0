"""Decisions of three pilots are those that were written before: a change of the statistics shows here."""

import hashlib
import json
from typing import Any

import pytest
from fake_outcomes import counted, joined, outcomes

from monitorbench.config.pilot import PilotStatistics
from monitorbench.intervention.outcomes import Outcome
from monitorbench.intervention.statistics.analysis import analyse

SEEDS = ["CCD", "BDA", "ACC", "DDD", "AAC", "CDD"] * 10
PILOTS: dict[str, tuple[list[Outcome], PilotStatistics, str]] = {
    "one condition": (
        outcomes(counted(A=60, B=4, C=26, D=70)),
        PilotStatistics(draws=1000),
        "ec88bcbbf83d4b4f",
    ),
    "three seeds, two conditions": (
        joined(outcomes(SEEDS), outcomes(["AAA"] * 60, "append")),
        PilotStatistics(draws=1000, p_target=0.2),
        "0f0f4b8bce65d316",
    ),
    "looks, with a margin": (
        outcomes(counted(A=30, B=20, C=5, D=45)),
        PilotStatistics(draws=1000, sequential=True, margin=2),
        "3edab2a5fff83fb7",
    ),
}
"""Outcomes and settings, and SHA-256 over `decision.json` with its numbers to nine digits."""


@pytest.mark.parametrize("name", PILOTS)
def test_the_same_pilot_has_the_same_decision(name: str) -> None:
    """A team's decision would be another one after an update, and nobody had said so."""
    found, settings, expected = PILOTS[name]
    content = _rounded(json.loads(analyse(found, settings).model_dump_json(exclude={"on_outcomes"})))
    assert hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16] == expected, content


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list) else value
