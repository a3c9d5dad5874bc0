"""Reading what was judged back from the runs that a report is of.

What a report is of may be gone since: then a sentence says what is missing, and the rest is shown.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.datasets import SplitView
from monitorbench.config.study import Paths
from monitorbench.corpus.store import read_split
from monitorbench.metrics.results import Results
from monitorbench.records import Sample, Split, Verdict
from monitorbench.report.samples.worst import WorstSample, worst_samples
from monitorbench.report.scores import monitor_of, runs_of
from monitorbench.runs.directory import read_finished
from monitorbench.runs.verdict_log import VERDICTS, read_run


class OfRun(NamedTuple):
    """Samples that one run judged, under the monitor's name in `metrics.json`; the rest is by sample id."""

    monitor: str
    prompt: str
    samples: Sequence[Sample]
    verdicts: Mapping[str, Verdict]


class JudgedRuns(NamedTuple):
    """The runs that could be read, and a sentence for each that could not."""

    runs: list[OfRun]
    missing: list[str]


def read_judged(directory: Path, manifest: Mapping[str, Any], results: Results, paths: Paths) -> JudgedRuns:
    """Samples and verdicts of an evaluation run, or of each run that a transfer run lays side by side."""
    judged = JudgedRuns([], [])
    read_before: dict[str, list[Sample]] = {}
    for run in runs_of(paths, directory, manifest):
        try:
            run_manifest = read_finished(run)
            if not (run / VERDICTS).is_file():
                raise UserError(f"{run}: no {VERDICTS} there")
            verdicts = read_run(run)
            samples = _samples(paths.data, run_manifest, read_before)
        except UserError as error:
            judged.missing.append(f"The samples of {run.name} can't be shown. {error}.")
            continue
        prompt = run_manifest["results"]["judge"]["prompt"]
        judged.runs.append(OfRun(monitor_of(run_manifest, results), prompt, samples, verdicts))
    return judged


def worst_of(runs: Sequence[OfRun], n_worst: int) -> dict[str, dict[str, list[WorstSample]]]:
    """The `n_worst` worst samples of each run, by monitor and prompt."""
    worst: dict[str, dict[str, list[WorstSample]]] = {}
    for run in runs:
        worst.setdefault(run.monitor, {})[run.prompt] = worst_samples(run.samples, run.verdicts, n_worst)
    return worst


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
