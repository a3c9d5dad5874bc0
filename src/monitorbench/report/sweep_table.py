"""The one table that a multirun of `evaluate` or `score` ends in, from the logs alone."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from monitorbench.config.study import Study
from monitorbench.config.terminal import Console
from monitorbench.metrics.registry import cell_numbers
from monitorbench.report.tables.tables import WIDTH, print_sweep
from monitorbench.runs.directory import is_finished
from monitorbench.scoring.evaluations import read_evaluation
from monitorbench.scoring.points import PointAt, points_at

_HASH = 4
"""Characters of a directory's hash that tell runs of one name apart."""


def show_sweep(jobs: Sequence[tuple[Study, Path]]) -> None:
    """Print a row for each run of the sweep to stderr, in its order; at a threshold where one was applied."""
    done = [(study, directory) for study, directory in jobs if is_finished(directory)]
    read = []
    for study, directory in done:
        evaluation = read_evaluation(study.paths.data, directory)
        wanted = [study.operating_point] if study.operating_point else []
        points = points_at(wanted, [evaluation], other_dataset=study.score.other_dataset)
        name = f"{evaluation.monitor} · {evaluation.prompt}" + _at(points)
        judged = points[0].evaluation.judged if points else evaluation.judged
        read.append((name, cell_numbers(judged)))
    counts = Counter(name for name, _ in read)
    rows = [
        (name if counts[name] == 1 else f"{name} {directory.name.rpartition('-')[2][:_HASH]}", numbers)
        for (name, numbers), (_, directory) in zip(read, done, strict=True)
    ]
    console = Console(stderr=True)
    print_sweep(console if console.is_terminal else Console(stderr=True, width=WIDTH), rows)


def _at(points: Sequence[PointAt]) -> str:
    """Name the threshold of a row; empty for a monitor's own answers."""
    if not points:
        return ""
    return f" at the threshold of {points[0].calibrated_on}" if points[0].is_elsewhere else " at threshold"
