"""The stress runs of some evaluations, as far as they are there."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from monitorbench.config.base import UserError
from monitorbench.metrics.robustness.facts import FILE, StressFacts, as_stress
from monitorbench.runs.directory import is_finished, read_checked, read_manifest


class Stressed(NamedTuple):
    """A stress run, and what it says."""

    run: Path
    facts: StressFacts


def found_stress(runs: Path, evaluations: Sequence[str]) -> list[Stressed]:
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
    return [stress.facts for stress in found_stress(runs, evaluations)]
