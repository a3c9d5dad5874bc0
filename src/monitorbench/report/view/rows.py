"""The rows of the page of all runs: what each run is, its numbers, how far it is, and the pages it has."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from monitorbench.metrics.written import DASH, interval, rate
from monitorbench.report.view.progress import Progress, SoFar, last_step
from monitorbench.runs.listing import overall_numbers, overall_rates, short
from monitorbench.runs.run_folders import Run, age_in_words, runs_in

PAGES: Mapping[str, str] = {
    "report.html": "report",
    "samples.html": "samples",
    "recommendation.html": "recommendation",
    "control.html": "control",
}
"""Pages that stages write into their runs, and what a link to one says."""
_ID_DIGITS = 8
_NUMBERS = ("miss_rate", "false_alarm_rate", "auroc")


class ShownNumber(NamedTuple):
    """A number as it is shown, its interval, and what it is sorted by; empty where there is none."""

    text: str
    small: str
    value: str


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
    numbers: list[ShownNumber]
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
            progress, numbers = last_step(run)
        elif not numbers:
            rates = so_far if run.state == "running" else overall_rates(run, self._datasets)
            both = {"miss_rate": rates.miss_rate, "false_alarm_rate": rates.false_alarm_rate}
            numbers = {name: value for name, value in both.items() if value is not None}
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
            numbers=[_shown(numbers, name) for name in _NUMBERS],
            answer=short(results.get("sentence") or results.get("decision") or "", 200),
            pages=_pages(run),
        )

    def _so_far(self, run: Run) -> SoFar:
        if run.kind != "evaluate" or run.state != "running":
            self._following.pop(run.path, None)
            return SoFar()
        if run.path not in self._following:
            self._following[run.path] = Progress(run, self._datasets)
        return self._following[run.path].look()


def _shown(known: Mapping[str, float], name: str) -> ShownNumber:
    if name not in known:
        return ShownNumber(DASH, "", "")
    bounds = [known[end] for end in (f"{name}_ci_low", f"{name}_ci_high") if end in known]
    return ShownNumber(rate(known[name]), interval(bounds), str(known[name]))


def _pages(run: Run) -> list[tuple[str, str]]:
    address = f"run/{quote(run.kind)}/{quote(run.path.name)}"
    return [(f"{address}/{page}", words) for page, words in PAGES.items() if (run.path / page).is_file()]
