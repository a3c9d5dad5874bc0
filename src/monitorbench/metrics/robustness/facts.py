"""The shape of `stress.json`: what the stage writes, and the report and other stages read."""

from typing import TypedDict, cast

from monitorbench.metrics.robustness.compare import ChangeEffects
from monitorbench.metrics.robustness.worst import Robustness

FILE = "stress.json"
CASES = "cases.parquet"
"""Beside it: which verdict is of which sample under which change."""
UNCHANGED = "unchanged"
"""What stands there in place of a change's name."""
STRESS_VERSION = 2


class StressFacts(TypedDict):
    """All of `stress.json`."""

    schema_version: int
    evaluation: str
    """`<monitor>-<prompt>-<hash>` of the evaluation run whose judge was stressed."""
    monitor: str
    prompt: str
    dataset: str
    """The dataset's directory name."""
    split: str
    operating_point: str
    """Of which calibration the threshold is that labels were read at; "": the judge's own answers."""
    n: int
    """Samples that were drawn, unchanged."""
    n_groups: int
    seed: int
    robustness: Robustness
    changes: dict[str, ChangeEffects]
    """By name, in the order of `stress.changes.all`; those that applied to no sample too, with n = 0."""


def as_stress(data: object) -> StressFacts:
    """Parsed JSON as `StressFacts`; raises ValueError where it is of another schema version."""
    found = data.get("schema_version") if isinstance(data, dict) else None
    if found != STRESS_VERSION:
        raise ValueError(
            f"schema_version: got {found!r}, expected {STRESS_VERSION}; run eval/stress.py again"
        )
    return cast("StressFacts", data)
