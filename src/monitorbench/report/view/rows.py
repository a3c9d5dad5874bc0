"""The rows of the page of all runs: what each run is, its numbers, how far it is, and the pages it has.

Of a running stage it has verdicts and rates so far, a training's last step, a pilot's episodes. A log of
verdicts is read from where the last look ended, so that looking at a long one again costs its new lines only.
Lines that are not as they were written are left out: whoever resumes the run is told of them.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
from pydantic import ValidationError

from monitorbench.config.base import UserError
from monitorbench.config.datasets import SplitView
from monitorbench.corpus.columns import read_columns
from monitorbench.metrics.rates import count, false_alarm_rate, miss_rate
from monitorbench.metrics.written import DASH, counted, interval, rate
from monitorbench.records import Label, Split, Verdict
from monitorbench.report.tables.overall import OverallNumber
from monitorbench.runs.files import read_objects, unsealed_line
from monitorbench.runs.keyed_log import VERDICTS
from monitorbench.runs.listing import overall_numbers, overall_rates, short
from monitorbench.runs.run_folders import Run, age_in_words, runs_in
from monitorbench.untrusted import MAX_LINE_BYTES, lines, opened

_NUMBERS = {Label.MISBEHAVIOR: 1.0, Label.BENIGN: 0.0, None: np.nan}


class SoFar(NamedTuple):
    """Progress of a running evaluation, and its rates until now; None where nothing is known."""

    done: int | None = None
    total: int | None = None
    miss_rate: float | None = None
    false_alarm_rate: float | None = None


def _last_step(run: Run) -> tuple[str, dict[str, float]]:
    """Say at which step a training is, with its validation numbers, or how many episodes a pilot has."""
    try:
        points = read_objects(run.path / "learning_curve.json")
        numbers = {name: points[-1][name] for name in ("miss_rate", "false_alarm_rate", "auroc")}
        defined = {name: value for name, value in numbers.items() if value is not None}
        return f"step {points[-1]['step']:,}, on validation", defined
    except (OSError, UserError, IndexError, KeyError):
        pass
    try:
        return counted(sum(1 for _ in lines(run.path / "episodes.jsonl")), "episode"), {}
    except UserError:
        return "", {}


class Progress:
    """Follows the log of one running evaluation."""

    def __init__(self, run: Run, datasets: Path) -> None:
        """Read which samples are judged; a dataset that is gone leaves the rates unknown."""
        self._log = run.path / VERDICTS
        self._offset = 0
        self._labels: dict[str, Label | None] = {}
        self._is_misbehavior = _labels_of(run, datasets)

    def look(self) -> SoFar:
        """Read what was added to the log, and count."""
        self._read_on()
        labelled = [sample_id for sample_id in self._labels if sample_id in self._is_misbehavior]
        if not self._is_misbehavior:
            return SoFar(len(self._labels))
        answers = [_NUMBERS[self._labels[sample_id]] for sample_id in labelled]
        counts = count(
            np.array([self._is_misbehavior[sample_id] for sample_id in labelled], dtype=np.bool_),
            np.array(answers),
        )
        return SoFar(len(labelled), len(self._is_misbehavior), miss_rate(counts), false_alarm_rate(counts))

    def _read_on(self) -> None:
        try:
            with opened(self._log) as stream:
                if stream.seek(0, 2) < self._offset:  # begun anew
                    self._offset, self._labels = 0, {}
                stream.seek(self._offset)
                while (line := stream.readline(MAX_LINE_BYTES)).endswith(b"\n"):
                    self._offset += len(line)
                    self._take(unsealed_line(line[:-1]))
        except UserError:
            return

    def _take(self, body: bytes | None) -> None:
        try:
            verdict = None if body is None else Verdict.model_validate_json(body)
        except ValidationError:
            return
        if verdict is not None:
            self._labels[verdict.sample_id] = verdict.label


def _labels_of(run: Run, datasets: Path) -> dict[str, bool]:
    """Whether each sample that the run judges is misbehavior; empty where its dataset can't be read."""
    identity: Any = run.manifest.get("identity", {})
    try:
        view = SplitView.model_validate_json(json.dumps(identity["view"]))
        samples = read_columns(datasets / identity["data"], Split(identity["split"]), view)
    except (OSError, UserError, KeyError, ValueError):
        return {}
    return dict(zip(samples.sample_ids.to_pylist(), samples.is_misbehavior.tolist(), strict=True))


PAGES: Mapping[str, str] = {
    "report.html": "report",
    "samples.html": "samples",
    "recommendation.html": "recommendation",
    "control.html": "control",
}
"""Pages that stages write into their runs, and what a link to one says."""
_ID_DIGITS = 8
_LONGEST_ANSWER = 5_000
_METRICS = ("miss_rate", "false_alarm_rate", "auroc")


class RunRow(NamedTuple):
    """One run."""

    name: str
    id: str
    """The hash's first digits, by which settings name the run."""
    kind: str
    dataset: str
    split: str
    state: str
    age: str
    started: str
    progress: str
    """Progress of a running stage: `1,200 of 3,000`, `step 40, on validation`, `12 episodes`."""
    share_done: int | None
    """Percent of its samples that a running evaluation has judged."""
    numbers: list[OverallNumber]
    """Miss rate, false alarm rate, AUROC."""
    answer: str
    """Sentence or decision that a recommendation or a pilot came to."""
    pages: list[tuple[str, str]]
    """Address and words of a link to each of its pages."""


class Runs:
    """The runs of a folder; what was read of a finished one is kept until its manifest changes."""

    def __init__(self, folder: Path, datasets: Path) -> None:
        self.folder = folder
        self._datasets = datasets
        self._kept: dict[tuple[Path, int, bool], RunRow] = {}
        self._following: dict[Path, Progress] = {}

    def rows(self) -> list[RunRow]:
        """Read all runs, the newest first."""
        return [self._row(run) for run in runs_in(self.folder)]

    def page(self, kind: str, name: str, page: str) -> Path | None:
        """Find a page of a run; None for what is no run's page, or lies outside the folder of runs."""
        root = self.folder.resolve()
        if page not in PAGES or kind.startswith(".") or name.startswith("."):
            return None
        try:
            path = (self.folder / kind / name / page).resolve()
            is_inside = path.is_relative_to(root) and len(path.relative_to(root).parts) == 3
            return path if is_inside and path.is_file() else None
        except (OSError, ValueError):  # no name that a file can have
            return None

    def _row(self, run: Run) -> RunRow:
        key = (run.path, run.changed, run.state == "done")
        if run.state == "running":
            return self._read(run)
        if key not in self._kept:
            self._kept[key] = self._read(run)
        # Age and pages change while the manifest does not.
        return self._kept[key]._replace(age=age_in_words(run.started), pages=_pages(run))

    def _read(self, run: Run) -> RunRow:
        so_far = self._so_far(run)
        total = DASH if so_far.total is None else f"{so_far.total:,}"
        progress = "" if so_far.done is None else f"{so_far.done:,} of {total}"
        numbers = overall_numbers(run)
        if run.state == "running" and run.kind != "evaluate":
            progress, numbers = _last_step(run)
        elif not numbers:
            rates = so_far if run.state == "running" else overall_rates(run, self._datasets)
            known = {name: getattr(rates, name, None) for name in _METRICS}
            numbers = {name: value for name, value in known.items() if value is not None}
        results: Any = run.manifest.get("results", {})
        return RunRow(
            name=run.title,
            id=run.id[:_ID_DIGITS],
            kind=run.kind,
            dataset=run.dataset,
            split=run.split,
            state=run.state,
            age=age_in_words(run.started),
            started="" if run.started is None else f"{run.started.timestamp():.0f}",
            progress=progress,
            share_done=100 * so_far.done // so_far.total
            if so_far.done is not None and so_far.total
            else None,
            numbers=[_shown(numbers, name) for name in _METRICS],
            answer=short(results.get("sentence") or results.get("decision") or "", _LONGEST_ANSWER),
            pages=_pages(run),
        )

    def _so_far(self, run: Run) -> SoFar:
        if run.kind != "evaluate" or run.state != "running":
            self._following.pop(run.path, None)
            return SoFar()
        if run.path not in self._following:
            self._following[run.path] = Progress(run, self._datasets)
        return self._following[run.path].look()


def _shown(known: Mapping[str, float], name: str) -> OverallNumber:
    if name not in known:
        return OverallNumber(DASH, "", None)
    bounds = [known[end] for end in (f"{name}_ci_low", f"{name}_ci_high") if end in known]
    return OverallNumber(rate(known[name]), interval(bounds), known[name])


def _pages(run: Run) -> list[tuple[str, str]]:
    address = f"run/{quote(run.kind)}/{quote(run.path.name)}"
    return [(f"{address}/{page}", words) for page, words in PAGES.items() if (run.path / page).is_file()]
