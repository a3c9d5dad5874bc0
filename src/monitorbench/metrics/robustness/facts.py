"""The shape of `stress.json`: what the stage writes, and the report and other stages read."""

from typing import TypedDict, cast

from monitorbench.metrics.robustness.compare import ChangeEffects
from monitorbench.metrics.robustness.worst import Robustness

FILE = "stress.json"
CASES = "cases.parquet"
"""File beside `stress.json` with the verdict on each sample under each change."""
UNCHANGED = "unchanged"
"""Name of the unchanged text in `cases.parquet`, in place of a change's name."""
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
    """Calibration of the threshold that labels were read at; "": the judge's own answers."""
    n: int
    """Samples that were drawn, unchanged."""
    n_groups: int
    seed: int
    robustness: Robustness
    changes: dict[str, ChangeEffects]
    """Effects by name, in the order of `stress.stage.CHANGES`; n = 0: the change applied to no sample."""


def as_stress(data: object) -> StressFacts:
    """Parsed JSON as `StressFacts`; raises ValueError where it is of another schema version."""
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version != STRESS_VERSION:
        raise ValueError(
            f"schema_version: got {version!r}, expected {STRESS_VERSION}; run eval/stress.py again"
        )
    return cast("StressFacts", data)
