"""Reading the worst samples back from the runs that a report is of.

What a report is of may be gone since: then a sentence says what is missing, and the rest is shown.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.datasets import SplitView
from monitorbench.config.study import Paths
from monitorbench.corpus.store import read_split
from monitorbench.metrics.results import Results
from monitorbench.records import Sample, Split
from monitorbench.report.samples.worst import WorstSample, worst_samples
from monitorbench.runs.directory import read_finished
from monitorbench.runs.verdict_log import VERDICTS, read_run


class Found(NamedTuple):
    """The worst samples by monitor and prompt, and a sentence for each run that could not be read."""

    worst: dict[str, dict[str, list[WorstSample]]]
    missing: list[str]


def read_worst(
    directory: Path, manifest: Mapping[str, Any], results: Results, paths: Paths, n_worst: int
) -> Found:
    """The `n_worst` worst samples of an evaluation run, or of each run that a probe was made of."""
    found = Found({}, [])
    read_before: dict[str, list[Sample]] = {}
    for run in _runs(paths, directory, manifest):
        try:
            one = read_finished(run)
            if not (run / VERDICTS).is_file():
                raise UserError(f"{run}: no {VERDICTS} there")
            verdicts = read_run(run)
            samples = _samples(paths.data, one, read_before)
        except UserError as error:
            found.missing.append(f"The samples of {run.name} can't be shown. {error}.")
            continue
        judge = one["results"]["judge"]
        seed = (one["results"]["training"] or {}).get("seed")
        name = judge["name"] if judge["name"] in results["monitors"] else f"{judge['name']}_seed{seed}"
        found.worst.setdefault(name, {})[judge["prompt"]] = worst_samples(samples, verdicts, n_worst)
    return found


def _runs(paths: Paths, directory: Path, manifest: Mapping[str, Any]) -> list[Path]:
    results = manifest["results"]
    if "judge" in results:
        return [directory]
    named = [Path(name) for name in results.get("runs", ())]
    # A run that was moved along with its probe is where its name is looked for.
    return [run if run.is_dir() else paths.runs / "evaluate" / run.name for run in named]


def _samples(
    data_folder: Path, manifest: Mapping[str, Any], read_before: dict[str, list[Sample]]
) -> list[Sample]:
    """The part of the test split that a run judged; runs of one dataset and view read it once."""
    view = json.dumps(manifest["identity"]["view"])
    data = data_folder / manifest["results"]["data"]
    key = f"{data} {view}"
    if key not in read_before:
        read_before[key] = read_split(data, Split.TEST, SplitView.model_validate_json(view))
    return read_before[key]
