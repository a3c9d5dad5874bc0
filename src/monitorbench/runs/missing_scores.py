"""What an imported monitor's missing scores count as, wherever a run's verdicts are read.

A run keeps what its file said: a verdict without a score is unscored. Its manifest names the import's policy
(`import.missing`), which is applied here and nowhere else: `flag` takes such a sample for an alarm, and ranks
it above all others (a score of 1); `pass` for none, ranked below all (0); `leave_out` leaves it out.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from monitorbench.runs.verdict_columns import VerdictColumns

IN_A_NAME = {"flag": "missing_flagged", "pass": "missing_passed", "leave_out": "missing_left_out"}
"""What stands behind a monitor's name in every table where some of its scores are missing."""
_COUNTS_AS = {"flag": 1.0, "pass": 0.0}


def counted(log: VerdictColumns, results: Mapping[str, Any]) -> VerdictColumns:
    """The verdicts of the run with these manifest `results`, missing ones as its import says."""
    imported = results.get("imported")
    value = None if imported is None else _COUNTS_AS.get(imported["missing"])
    if value is None or imported is None:
        return log
    is_missing = np.isnan(log.scores) if imported["has_scores"] else np.isnan(log.flagged)
    scores = np.where(is_missing, value, log.scores) if imported["has_scores"] else log.scores
    return log._replace(flagged=np.where(is_missing, value, log.flagged), scores=scores)
