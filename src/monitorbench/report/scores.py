"""The scores of the monitors that a report is of: what a slider of thresholds needs, and no more.

Promises: at every threshold, the counts that these give are those of the runs, since no score is rounded;
samples without a score are counted, never placed. 20,000 samples of four monitors take about a megabyte.
"""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from monitorbench.config.base import UserError
from monitorbench.config.datasets import SplitView
from monitorbench.config.study import Paths
from monitorbench.corpus.columns import read_columns
from monitorbench.metrics.columns import BoolArray, Columns
from monitorbench.metrics.results import Results
from monitorbench.metrics.trainings import BASELINE_OBJECTIVE
from monitorbench.records import Split
from monitorbench.runs.directory import read_finished
from monitorbench.runs.verdict_log import VERDICTS, read_verdict_columns, with_missing_counted


class Scores(NamedTuple):
    """The distinct scores of one monitor under one prompt, ascending, and how many samples have each."""

    monitor: str
    prompt: str
    values: NDArray[np.float64]
    misbehavior: NDArray[np.int64]
    benign: NDArray[np.int64]
    n_without: int
    """Samples without a score, which no threshold gives a label."""

    def packed(self) -> dict[str, str]:
        """The columns in base64, little-endian: 64-bit floats, and unsigned integers of `counts` bits."""
        most = max(self.misbehavior.max(initial=0), self.benign.max(initial=0))
        bits = next(bits for bits in (8, 16, 32) if most < 2**bits)
        counts = f"<u{bits // 8}"
        return {
            "values": _base64(self.values.astype("<f8")),
            "misbehavior": _base64(self.misbehavior.astype(counts)),
            "benign": _base64(self.benign.astype(counts)),
            "bits": str(bits),
        }


def distinct(monitor: str, prompt: str, scores: NDArray[np.float64], is_misbehavior: BoolArray) -> Scores:
    """Count samples at each distinct score; both arrays are [samples], a missing score is NaN."""
    is_scored = ~np.isnan(scores)
    values, index = np.unique(scores[is_scored], return_inverse=True)
    bad = is_misbehavior[is_scored]
    n = len(values)
    return Scores(
        monitor,
        prompt,
        values,
        np.bincount(index[bad], minlength=n),
        np.bincount(index[~bad], minlength=n),
        int(np.count_nonzero(~is_scored)),
    )


def read_scores(directory: Path, manifest: Mapping[str, Any], results: Results, paths: Paths) -> list[Scores]:
    """Read the scores of an evaluation run, or of each run of a transfer run; unreadable runs are skipped."""
    all_scores = []
    read_before: dict[str, Columns] = {}
    for run in runs_of(paths, directory, manifest):
        try:
            run_manifest = read_finished(run)
            if not (run / VERDICTS).is_file():
                continue
            samples = _samples(paths.data, run_manifest, read_before)
            log = with_missing_counted(read_verdict_columns(run / VERDICTS), run_manifest["results"])
        except UserError:  # the page's last sections say which, and why
            continue
        positions = pc.index_in(log.sample_ids, value_set=samples.sample_ids)
        of_sample = positions.is_valid().to_numpy(zero_copy_only=False)
        scores = np.full(len(samples), np.nan)
        scores[pc.drop_null(positions).to_numpy()] = log.scores[
            of_sample
        ]  # of a sample's lines the last counts
        monitor, prompt = monitor_of(run_manifest, results), run_manifest["results"]["judge"]["prompt"]
        if results["table"].parts(monitor, prompt) and not np.isnan(scores).all():
            all_scores.append(distinct(monitor, prompt, scores, samples.is_misbehavior))
    return all_scores


def monitor_of(manifest: Mapping[str, Any], results: Results) -> str:
    """The monitor's name in `metrics.json`."""
    judge, training = manifest["results"]["judge"], manifest["results"]["training"] or {}
    objective = training.get("objective", BASELINE_OBJECTIVE)
    name = judge["name"] if objective == BASELINE_OBJECTIVE else f"{judge['name']}_{objective}"
    names = {monitor for monitor, _ in results["table"].judged()}
    return name if name in names else f"{name}_seed{training.get('seed')}"


def runs_of(paths: Paths, directory: Path, manifest: Mapping[str, Any]) -> list[Path]:
    """The runs that a report is of: the evaluation itself, or those that a transfer run lays side by side."""
    if "judge" in manifest["results"]:
        return [directory]
    listed = [Path(name) for name in manifest["results"].get("runs", ())]
    # A run that was moved along with its transfer run is where its name is looked for.
    return [run if run.is_dir() else paths.runs / "evaluate" / run.name for run in listed]


def _samples(data_folder: Path, manifest: Mapping[str, Any], read_before: dict[str, Columns]) -> Columns:
    """The part of the test split that a run judged; runs of one dataset and view read it once."""
    view = json.dumps(manifest["identity"]["view"])
    data = data_folder / manifest["results"]["data"]
    key = f"{data} {view}"
    if key not in read_before:
        read_before[key] = read_columns(data, Split.TEST, SplitView.model_validate_json(view))
    return read_before[key]


def _base64(values: NDArray[Any]) -> str:
    return base64.b64encode(values.tobytes()).decode()
