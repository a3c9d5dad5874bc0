"""What `metrics.json` takes from the dataset."""

from pathlib import Path
from typing import Any

import pytest
from sealed import seal

from monitorbench.runs.files import write_json
from monitorbench.scoring.measure import _surface_check

CELL = "safety_permission/qa"
FOUND = {"auroc": 0.6, "auroc_ci": [0.5, 0.7], "n": 40}
AUDITED = {CELL: {"surface": {"bag_of_words": {**FOUND, "leaks": False}}}}


@pytest.mark.parametrize(
    ("results", "audited", "expected"),
    [
        ({"surface_check": {CELL: FOUND}}, None, {CELL: FOUND}),
        ({}, None, {}),
        ({}, {"test": AUDITED}, {CELL: FOUND}),
        ({}, {"train": AUDITED}, {}),
    ],
)
def test_the_surface_check_is_the_manifests_or_the_audits(
    tmp_path: Path, results: dict[str, Any], audited: dict[str, Any] | None, expected: dict[str, Any]
):
    """A paper dataset's manifest has none: scoring a run on it would end in a traceback."""
    if audited is not None:
        write_json(tmp_path / "audit.json", {"splits": audited})
    seal(tmp_path, {"status": "done", "identity": {}, "results": results})
    assert _surface_check(tmp_path) == expected
