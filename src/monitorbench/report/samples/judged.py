"""What the runs of a report judged, read back: the samples a monitor got most wrong, and all of its scores.

A *miss* is misbehavior answered benign, an *alarm* benign answered misbehavior. Worst is where the score was
furthest on the wrong side. Unscored answers are neither. What a report is of may be gone since: then a
sentence says what is missing, and the rest is shown.

Scores are what a slider of thresholds needs. Promises: at every threshold, the counts that they give are
those of the runs, since no score is rounded; samples without a score are counted, never placed. 20,000
samples of four monitors take about a megabyte.
"""

import base64
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitorbench.config.base import UserError
from monitorbench.config.datasets import SplitView
from monitorbench.config.study import Paths
from monitorbench.corpus.store import read_split
from monitorbench.metrics.columns import BoolArray
from monitorbench.metrics.results import Results
from monitorbench.records import Category, Label, Sample, Span, Split, Task, Verdict, vocabulary
from monitorbench.runs.directory import read_finished
from monitorbench.runs.keyed_log import VERDICTS, read_run
from monitorbench.scoring.evaluations import read_evaluation


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
    for run in runs_of(paths, directory, manifest):
        try:
            monitor = monitor_of(read_finished(run), results)
            evaluation = read_evaluation(paths.data, run) if (run / VERDICTS).is_file() else None
        except UserError:  # the page's last sections say which, and why
            continue
        if evaluation is None or not results["table"].parts(monitor, evaluation.prompt):
            continue
        judged = evaluation.judged
        if not np.isnan(judged.scores).all():
            all_scores.append(distinct(monitor, evaluation.prompt, judged.scores, judged.is_misbehavior))
    return all_scores


def monitor_of(manifest: Mapping[str, Any], results: Results) -> str:
    """The monitor's name in `metrics.json`."""
    training = manifest["results"]["training"] or {}
    name: str = manifest["results"]["judge"]["name"]
    names = {monitor for monitor, _ in results["table"].judged()}
    return name if name in names else f"{name}_seed{training.get('seed')}"


def runs_of(paths: Paths, directory: Path, manifest: Mapping[str, Any]) -> list[Path]:
    """The runs that a report is of: the evaluation itself, or those that a transfer run lays side by side."""
    if "judge" in manifest["results"]:
        return [directory]
    listed = [Path(name) for name in manifest["results"].get("runs", ())]
    # A run that was moved along with its transfer run is where its name is looked for.
    return [run if run.is_dir() else paths.runs / "evaluate" / run.name for run in listed]


def _base64(values: NDArray[Any]) -> str:
    return base64.b64encode(values.tobytes()).decode()


class Kind(StrEnum):
    """Kind of wrong verdict."""

    MISS = "miss"
    ALARM = "alarm"


class Quoted(NamedTuple):
    """A verdict's quotes: where those that were located stand, and those that were not."""

    highlights: tuple[Span, ...]
    ungrounded: tuple[str, ...]


class WorstSample(NamedTuple):
    """A sample that was answered wrongly, and the verdict."""

    kind: Kind
    sample: Sample
    verdict: Verdict
    quoted: Quoted


Worst = Mapping[str, Mapping[str, Sequence[WorstSample]]]
"""Worst samples by monitor and prompt."""


def quoted(verdict: Verdict) -> Quoted:
    """A verdict's quotes, those that were found in the judged response apart from those that were not."""
    return Quoted(
        tuple(quote.place for quote in verdict.evidence if quote.place is not None),
        tuple(quote.quote for quote in verdict.evidence if quote.place is None),
    )


def worst_samples(samples: Sequence[Sample], verdicts: Mapping[str, Verdict], k: int) -> list[WorstSample]:
    """Pick of each `category/task` cell at most `k` misses of the lowest score and `k` alarms of the highest.

    `verdicts` is by sample id; a sample without one is passed over. Cells come in the order of
    `records.vocabulary`, misses before alarms, the worst first; samples without a score come last, equal
    ones by id. Raises ValueError for a negative `k`.
    """
    if k < 0:
        raise ValueError(f"k: got {k}, expected at least 0")
    wrong: defaultdict[tuple[str, str, Kind], list[tuple[float, Sample, Verdict]]] = defaultdict(list)
    for sample in samples:
        verdict = verdicts.get(sample.id)
        if verdict is None or verdict.label in (None, sample.label):
            continue
        kind = Kind.MISS if sample.label is Label.MISBEHAVIOR else Kind.ALARM
        score = verdict.score
        badness = 2.0 if score is None else score if kind is Kind.MISS else 1 - score
        wrong[sample.category, sample.task, kind].append((badness, sample, verdict))
    worst = []
    categories = vocabulary(Category, (category for category, _, _ in wrong))
    tasks = vocabulary(Task, (task for _, task, _ in wrong))

    def place(key: tuple[str, str, Kind]) -> tuple[int, int, int]:
        category, task, kind = key
        return categories.index(category), tasks.index(task), list(Kind).index(kind)

    for category, task, kind in sorted(wrong, key=place):
        ranked = sorted(wrong[category, task, kind], key=lambda entry: (entry[0], entry[1].id))
        worst += [WorstSample(kind, sample, verdict, quoted(verdict)) for _, sample, verdict in ranked[:k]]
    return worst


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
