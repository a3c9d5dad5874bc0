"""The stress runs of the evaluations that a report is of, as far as they are there."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.study import Paths
from monitorbench.metrics.robustness.facts import FILE, StressFacts, as_stress
from monitorbench.report.scores import runs_of
from monitorbench.runs.directory import is_finished, read_checked, read_finished, read_manifest
from monitorbench.runs.run_folders import evaluation_id


class Stressed(NamedTuple):
    """A stress run, and what it says."""

    run: Path
    facts: StressFacts


def found_stress(runs: Path, evaluations: Sequence[str]) -> list[Stressed]:
    """The finished runs in `runs/stress/` that are of these evaluations (`evaluation_id`), in their order.

    Of several runs of one evaluation at one operating point the one that tried most changes, of these the
    newest. A run that can't be read, or is of another version, counts for nothing.
    """
    found: dict[tuple[str, str], tuple[tuple[int, str], Stressed]] = {}
    for manifest in sorted((runs / "stress").glob("*/manifest.json")):
        try:
            if not is_finished(manifest.parent):
                continue
            facts = as_stress(read_checked(manifest.parent, FILE))
            started = str(read_manifest(manifest.parent).get("started", ""))
        except (UserError, ValueError):
            continue
        key, rank = (facts["evaluation"], facts["operating_point"]), (len(facts["changes"]), started)
        if key not in found or found[key][0] < rank:
            found[key] = rank, Stressed(manifest.parent, facts)
    order = {one: number for number, one in enumerate(evaluations)}
    of_these = [one for (evaluation, _), (_, one) in found.items() if evaluation in order]
    return sorted(of_these, key=lambda one: (order[one.facts["evaluation"]], one.facts["operating_point"]))


def read_stress(runs: Path, evaluations: Sequence[str]) -> list[StressFacts]:
    """What these runs say."""
    return [one.facts for one in found_stress(runs, evaluations)]


def stress_of(directory: Path, manifest: Mapping[str, Any], paths: Paths) -> list[StressFacts]:
    """The stress of the evaluation run, or of each run of the transfer run, that a report is of."""
    ids: list[str] = []
    for run in runs_of(paths, directory, manifest):
        try:
            ids.append(evaluation_id(read_finished(run)))
        except UserError:  # gone since; the page's last sections say which
            continue
    return read_stress(paths.runs, ids)
