"""Read from its stress run what changes do to a monitor at the threshold that it would be deployed at.

Promises: nothing is judged. Scores decide at the threshold, whatever operating point the stress run was read
at; a monitor without scores, or without a threshold, is read by its own answers.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from monitorbench.metrics.choice.facts import Option
from monitorbench.metrics.columns import Columns
from monitorbench.metrics.robustness.compare import compare_change, labelled, matching
from monitorbench.metrics.robustness.facts import CASES, UNCHANGED
from monitorbench.metrics.robustness.worst import ComparedChange, Robustness, robustness
from monitorbench.records import Label
from monitorbench.runs.directory import checked_file
from monitorbench.scoring.recommendation.candidates import CandidateRuns
from monitorbench.scoring.stress_runs import Stressed, found_stress

Key = tuple[str, str]
"""Names of a monitor and of its prompt."""


def stressed(runs: Path, pairs: Sequence[CandidateRuns]) -> dict[Key, Stressed]:
    """Find the stress run of each monitor's test run; of several, take the one of most changes."""
    named = {pair.test.id: (pair.monitor, pair.prompt) for pair in pairs}
    found: dict[Key, Stressed] = {}
    for one in found_stress(runs, list(named)):
        key = named[one.facts["evaluation"]]
        if key not in found or len(found[key].facts["changes"]) < len(one.facts["changes"]):
            found[key] = one
    return found


def with_robustness(
    options: Sequence[Option], pairs: Sequence[CandidateRuns], of_monitors: Mapping[Key, Stressed]
) -> None:
    """Fill in `robustness` and `robustness_at` of the monitors that were stressed, in place."""
    judged = {(pair.monitor, pair.prompt): pair.test.judged for pair in pairs}
    for one in options:
        key = one["monitor"], one["prompt"]
        if key in of_monitors:
            at = None if one["reads_answers"] else one["threshold"]
            one["robustness"] = robustness_at(of_monitors[key], judged[key], at)
            one["robustness_at"] = "answers" if at is None else "threshold"


def robustness_at(of: Stressed, judged: Columns, threshold: float | None) -> Robustness:
    """Compute the robustness with labels read at a threshold, or by the judge's own answers where it is None.

    `judged` are the samples of the evaluation that was stressed.
    """
    cases: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in pq.read_table(checked_file(of.run, CASES)).to_pylist():
        cases[row["change"]].append(row)
    whole = _answers(judged, cases[UNCHANGED], threshold)
    compared: dict[str, ComparedChange] = {}
    for name, told in of.facts["changes"].items():
        after = _answers(judged, cases[name], threshold)
        before = matching(whole, after.sample_ids.to_pylist())
        facts = compare_change(
            before,
            after,
            version=told["version"],
            n_not_applicable=told["n_not_applicable"],
            unscored={},
            counted=told["counted"],
        )
        compared[name] = ComparedChange(before, after, facts)
    return robustness(compared)


def _answers(judged: Columns, rows: Sequence[Mapping[str, Any]], threshold: float | None) -> Columns:
    """Return the samples of these cases with their answers."""
    scores = np.array([np.nan if one["score"] is None else one["score"] for one in rows], dtype=np.float64)
    answers = [np.nan if one["label"] is None else float(one["label"] == Label.MISBEHAVIOR) for one in rows]
    if threshold is not None:
        answers = np.where(np.isnan(scores), np.nan, scores > threshold).tolist()
    return labelled(matching(judged, [one["sample_id"] for one in rows]), answers, scores.tolist())
