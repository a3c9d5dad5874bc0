"""Read from its stress run what changes do to a monitor at the threshold that it would be deployed at.

Promises: nothing is judged. Scores decide at the threshold, whatever operating point the stress run was read
at; a monitor without scores, or without a threshold, is read by its own answers.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from monitorbench.config.base import UserError
from monitorbench.metrics.choice import Option
from monitorbench.metrics.columns import Columns
from monitorbench.metrics.robustness import (
    CASES,
    FILE,
    UNCHANGED,
    ComparedChange,
    Robustness,
    StressFacts,
    as_stress,
    compare_change,
    labelled,
    matching,
    robustness,
)
from monitorbench.records import Label
from monitorbench.runs.directory import checked_file, is_finished, read_checked, read_manifest
from monitorbench.scoring.recommendation.candidates import CandidateRuns
from monitorbench.untrusted_parquet import parquet_table


class Stressed(NamedTuple):
    """A stress run, and what it says."""

    run: Path
    facts: StressFacts


def _found_stress(runs: Path, evaluations: Sequence[str]) -> list[Stressed]:
    """The finished runs in `runs/stress/` that are of these evaluations (`evaluation_id`), in their order.

    Of several runs of one evaluation at one operating point the one that tried most changes, of these the
    newest. A run that can't be read, or is of another version, counts for nothing.
    """
    best: dict[tuple[str, str], tuple[tuple[int, str], Stressed]] = {}
    for manifest in sorted((runs / "stress").glob("*/manifest.json")):
        try:
            if not is_finished(manifest.parent):
                continue
            facts = as_stress(read_checked(manifest.parent, FILE))
            started = str(read_manifest(manifest.parent).get("started", ""))
        except (UserError, ValueError):
            continue
        key, rank = (facts["evaluation"], facts["operating_point"]), (len(facts["changes"]), started)
        if key not in best or best[key][0] < rank:
            best[key] = rank, Stressed(manifest.parent, facts)
    order = {one: number for number, one in enumerate(evaluations)}
    of_these = [one for (evaluation, _), (_, one) in best.items() if evaluation in order]
    return sorted(of_these, key=lambda one: (order[one.facts["evaluation"]], one.facts["operating_point"]))


def read_stress(runs: Path, evaluations: Sequence[str]) -> list[StressFacts]:
    """Read the facts of these evaluations' stress runs."""
    return [stress.facts for stress in _found_stress(runs, evaluations)]


Key = tuple[str, str]
"""Names of a monitor and of its prompt."""


def stressed(runs: Path, pairs: Sequence[CandidateRuns]) -> dict[Key, Stressed]:
    """Find the stress run of each monitor's test run; of several, take the one of most changes."""
    keys = {pair.test.id: (pair.monitor, pair.prompt) for pair in pairs}
    by_key: dict[Key, Stressed] = {}
    for stress in _found_stress(runs, list(keys)):
        key = keys[stress.facts["evaluation"]]
        if key not in by_key or len(by_key[key].facts["changes"]) < len(stress.facts["changes"]):
            by_key[key] = stress
    return by_key


def with_robustness(
    options: Sequence[Option], pairs: Sequence[CandidateRuns], of_monitors: Mapping[Key, Stressed]
) -> None:
    """Fill in `robustness` and `robustness_at` of the monitors that were stressed, in place."""
    judged = {(pair.monitor, pair.prompt): pair.test.judged for pair in pairs}
    for option in options:
        key = option["monitor"], option["prompt"]
        if key in of_monitors:
            threshold = None if option["reads_answers"] else option["threshold"]
            option["robustness"] = robustness_at(of_monitors[key], judged[key], threshold)
            option["robustness_at"] = "answers" if threshold is None else "threshold"


def robustness_at(of: Stressed, judged: Columns, threshold: float | None) -> Robustness:
    """Compute the robustness with labels read at a threshold, or by the judge's own answers where it is None.

    `judged` are the samples of the evaluation that was stressed.
    """
    cases: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in parquet_table(checked_file(of.run, CASES)).to_pylist():
        cases[row["change"]].append(row)
    unchanged = _answers(judged, cases[UNCHANGED], threshold)
    compared: dict[str, ComparedChange] = {}
    for name, change in of.facts["changes"].items():
        after = _answers(judged, cases[name], threshold)
        before = matching(unchanged, after.sample_ids.to_pylist())
        facts = compare_change(
            before,
            after,
            version=change["version"],
            n_not_applicable=change["n_not_applicable"],
            unscored={},
            counted=change["counted"],
        )
        compared[name] = ComparedChange(before, after, facts)
    return robustness(compared)


def _answers(judged: Columns, rows: Sequence[Mapping[str, Any]], threshold: float | None) -> Columns:
    """Return the samples of these cases with their answers."""
    scores = np.array([np.nan if row["score"] is None else row["score"] for row in rows], dtype=np.float64)
    answers = [np.nan if row["label"] is None else float(row["label"] == Label.MISBEHAVIOR) for row in rows]
    if threshold is not None:
        answers = np.where(np.isnan(scores), np.nan, scores > threshold).tolist()
    return labelled(matching(judged, [row["sample_id"] for row in rows]), answers, scores.tolist())
