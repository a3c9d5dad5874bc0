"""`runs list` and `runs show`: which runs there are, and what one is and came to; for people or as JSON."""

import csv
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table
from rich.text import Text

from monitorbench.config.base import UserError
from monitorbench.config.terminal import Console
from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.written import DASH, count, rate, rate_with_interval
from monitorbench.runs.directory import KINDS
from monitorbench.runs.keyed_log import VERDICTS
from monitorbench.runs.run_folders import Run, State, age_in_words, runs_in
from monitorbench.runs.selectors import readers, sources
from monitorbench.untrusted import text_lines

_STYLES: dict[State, str] = {"running": "cyan", "incomplete": "yellow", "stale": "yellow", "damaged": "red"}
_SHORT_ID = 8
"""Hex digits of a hash that are shown, and are enough to name a run by."""
_RUN_NAME = re.compile(r"-[0-9a-f]{12}$")
_MOST_LOG_BYTES = 2**24
"""Logs that are longer are not read for a list: their run's rates are told once it is scored."""
_NO_RESULTS = ("learning_curve", "operating_point", "combined", "judge", "training", "identity")
"""Objects in a manifest's results that are files as well, or too long to show."""


class RunRates(NamedTuple):
    """Miss rate and false alarm rate of an evaluation's own answers, and its AUROC, over all its samples."""

    miss_rate: float | None = None
    false_alarm_rate: float | None = None
    auroc: float | None = None


def listed(run: Run, datasets: Path) -> dict[str, Any]:
    """Describe a run, over a dataset in the folder `datasets`, as `runs list --json` does.

    `n` counts the samples of an evaluation or a training, benign questions of a calibration, else runs.
    """
    return {
        "run": str(run.path),
        "id": run.id,
        "kind": run.kind,
        "name": run.title,
        "dataset": run.dataset,
        "split": run.split,
        "n": _n(run),
        **overall_rates(run, datasets)._asdict(),
        "state": run.state,
        "started": run.started.isoformat() if run.started else None,
        "bytes": size(run.path),
    }


def chosen(
    runs: Iterable[Run], texts: Sequence[str] = (), states: Sequence[str] = (), n: int | None = None
) -> list[Run]:
    """The runs of some states whose folder, kind, dataset or name holds all of some texts; the first n."""
    matching = [
        run
        for run in runs
        if (not states or run.state in states)
        and all(text in " ".join((run.path.name, run.kind, run.dataset, run.title)) for text in texts)
    ]
    return matching[:n]


def overall_rates(run: Run, datasets: Path) -> RunRates:
    """MR and FAR of an evaluation: from its table where it is scored, else from its log and the dataset."""
    if numbers := overall_numbers(run):
        return RunRates(*(numbers.get(name) for name in RunRates._fields))
    if run.kind != "evaluate" or run.state != "done":
        return RunRates()
    from monitorbench.metrics.auroc import auroc
    from monitorbench.metrics.rates import count as confusion
    from monitorbench.metrics.rates import false_alarm_rate, miss_rate
    from monitorbench.scoring.evaluations import read_evaluation

    try:
        if (run.path / VERDICTS).stat().st_size > _MOST_LOG_BYTES:
            return RunRates()
        judged = read_evaluation(datasets, run.path).judged
    except (OSError, UserError):
        return RunRates()
    counts = confusion(judged.is_misbehavior, judged.flagged)
    area = auroc(judged.scores, judged.is_misbehavior)
    return RunRates(miss_rate(counts), false_alarm_rate(counts), area)


def overall_numbers(run: Run) -> dict[str, float]:
    """Numbers of an evaluation over all its samples, by the columns of its table; none until it is scored.

    The table, since the metrics take ten times as long to read.
    """
    judge = run.manifest.get("results", {}).get("judge")
    if run.kind != "evaluate" or not judge:
        return {}
    try:
        for row in csv.DictReader(text_lines(run.path / "table.csv")):
            if row["prompt"] == judge["prompt"] and row["cell"] == OVERALL:
                shown = ("miss_rate", "false_alarm_rate", "auroc")
                return {key: float(row[key]) for key in row if key.startswith(shown) and row[key]}
    except (UserError, OSError, KeyError, ValueError, TypeError, csv.Error):
        pass
    return {}


def size(path: Path) -> int:
    """The bytes of a file or of a folder's files; what is linked to is not followed."""
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(f"{folder}/{name}").st_size
            except FileNotFoundError:  # a run that is being written
                continue
    return total


def size_in_words(n: int) -> str:
    """`512`, `46k`, `1.2M`, `3.0G` bytes."""
    for factor, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= factor:
            return f"{n / factor:.1f}{unit}" if n < 10 * factor and unit != "k" else f"{n / factor:.0f}{unit}"
    return str(n)


def print_list(to: Console, runs: Sequence[Run], datasets: Path) -> None:
    """Print a table for each kind of run."""
    for kind in KINDS:
        of_kind = [run for run in runs if run.kind == kind]
        if of_kind:
            to.print(Text(f"{kind}: {len(of_kind)}", style="bold"))
            to.print(_table(of_kind, datasets, judges=kind == "evaluate"))


def _table(runs: Sequence[Run], datasets: Path, *, judges: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("id", no_wrap=True)
    table.add_column("name", overflow="fold", ratio=1)
    table.add_column("data", overflow="fold", max_width=20)
    numbers = ("n", "MR", "FAR") if judges else ("n",)
    for name in (*(("split",) if judges else ()), *numbers, "state", "age", "size"):
        is_number = name in (*numbers, "age", "size")
        table.add_column(name, justify="right" if is_number else "left", no_wrap=True)
    for run in runs:
        line = listed(run, datasets)
        cells = [run.id[:_SHORT_ID], run.title, run.dataset or DASH, *([run.split] if judges else ())]
        cells.append(DASH if line["n"] is None else count(line["n"]))
        cells += [rate(line["miss_rate"]), rate(line["false_alarm_rate"])] if judges else []
        state = Text(run.state, style=_STYLES.get(run.state, ""))
        last = [age_in_words(run.started), size_in_words(line["bytes"])]
        table.add_row(*map(Text, cells), state, *map(Text, last))
    return table


def _n(run: Run) -> int | None:
    results = run.manifest.get("results", {})
    if run.kind == "calibrate" and "operating_point" in results:
        return sum(int(threshold["n"]) for threshold in results["operating_point"]["thresholds"])
    if run.kind in ("transfer", "recommend"):
        return len(results["runs"]) if "runs" in results else None
    n = results.get({"train": "n_samples", "fit": "n_samples", "pilot": "n_runs"}.get(run.kind, "n"))
    return int(n) if isinstance(n, int) else None


def details(run: Run, folder: Path, datasets: Path) -> dict[str, Any]:
    """Everything that `runs show --json` says of a run in a folder of runs, over one of the `datasets`.

    `settings` are those that differ from the defaults; `judge` is what a combination or an imported monitor
    is; `removed` are runs that it was made from and that are gone; `files` are bytes by name, a folder
    inside as one.
    """
    # These read metrics, as a list has no use for.
    from monitorbench.runs.comparison import changed, judge_of_no_model

    everything = runs_in(folder)
    made_from = {name for name in sources(run) if _RUN_NAME.search(name)} - {run.path.name}
    removed = made_from - {other.path.name for other in everything}
    entries = sorted(entry for entry in run.path.iterdir() if not entry.name.startswith("."))
    return {
        "run": listed(run, datasets),
        "settings": changed(run),
        "judge": judge_of_no_model(run),
        "results": _results(run),
        "made_from": sorted(made_from - removed),
        "removed": sorted(removed),
        "read_by": sorted(reader.path.name for reader in readers(run, everything)),
        "files": {
            f"{entry.name}/" if entry.is_dir() and not entry.is_symlink() else entry.name: size(entry)
            for entry in entries
        },
    }


def in_words(run_details: Mapping[str, Any]) -> str:
    """Write what `details` gives in lines for a terminal."""
    run = run_details["run"]
    started = f", started {run['started']}" if run["started"] else ""
    head = [run["run"], f"{run['kind']}, {run['state']}, {size_in_words(run['bytes'])}{started}"]
    parts = [
        ("settings other than the defaults", run_details["settings"] or ["none"]),
        ("judge", run_details["judge"]),
        ("results", [f"{key}: {value}" for key, value in run_details["results"].items()] or ["none yet"]),
        ("made from", [*run_details["made_from"], *(f"{name} (removed)" for name in run_details["removed"])]),
        ("read by", run_details["read_by"]),
        ("files", [f"{size_in_words(n):>6}  {name}" for name, n in run_details["files"].items()]),
    ]
    return "\n".join([*head, *(f"\n{title}\n  " + "\n  ".join(lines) for title, lines in parts if lines)])


def _results(run: Run) -> dict[str, str]:
    """A run's numbers and what else its manifest says of its results, a line each by a name."""
    results = run.manifest.get("results", {})
    numbers = overall_numbers(run)
    lines = dict[str, str]()
    for name in ("miss rate", "false alarm rate", "AUROC") if numbers else ():
        key = name.lower().replace(" ", "_")
        bounds = [numbers[end] for end in (f"{key}_ci_low", f"{key}_ci_high") if end in numbers]
        lines[name] = rate_with_interval(numbers.get(key), bounds)
    lines |= {
        key: short(", ".join(map(str, value)) if isinstance(value, list) else value, 70)
        for key, value in results.items()
        if key not in _NO_RESULTS and not isinstance(value, Mapping)
    }
    if unscored := results.get("unscored"):
        lines["unscored"] = ", ".join(f"{n} {reason}" for reason, n in unscored.items())
    for point in results.get("operating_point", {}).get("thresholds", ()):
        threshold = DASH if point["threshold"] is None else f"{point['threshold']:.6g}"
        category = point["category"] or "all categories"
        promised = f"FAR <= {point['alpha']:g} on {point['n']} benign questions"
        lines[f"threshold, {category}"] = f"{threshold}, {promised}"
    return lines


def short(value: object, longest: int = 60) -> str:
    """Write a value in one line."""
    text = " ".join((value if isinstance(value, str) else DASH if value is None else f"{value}").split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
