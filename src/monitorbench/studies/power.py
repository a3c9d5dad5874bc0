"""The plan of a transfer study: what each cell could show, and what the runs would take.

Nothing is trained or judged. What is not known yet is assumed (`transfer.assumed`), but for the base's AUROC
and its variance where the base has judged the test split already.
"""

from collections import Counter
from math import sqrt
from typing import NamedTuple

import numpy as np
from rich import box
from rich.table import Table

from monitorbench.config.evaluation import Assumed
from monitorbench.config.study import Study
from monitorbench.config.terminal import Console
from monitorbench.corpus.build import directory_of
from monitorbench.corpus.columns import read_columns
from monitorbench.judging.evaluate import planned_evaluation
from monitorbench.metrics.auroc import auroc, clustered_variance, components, independent_variance
from monitorbench.metrics.bootstrap import group_index
from monitorbench.metrics.columns import OVERALL, UNPAIRED, Columns, by_cell
from monitorbench.metrics.low_far import questions_needed
from monitorbench.metrics.registry import MEASURES
from monitorbench.metrics.replicates import detectable_over_seeds
from monitorbench.metrics.sensitivity import POWER, detectable_fall
from monitorbench.metrics.words import LEVEL
from monitorbench.metrics.written import rate
from monitorbench.records import Split
from monitorbench.scoring.evaluations import read_evaluation
from monitorbench.studies.forecast import forecast, print_forecast
from monitorbench.studies.prompt_lengths import dataset_here
from monitorbench.studies.transfer import coming_runs, evaluation_study, training_points


class CellPower(NamedTuple):
    """The questions of one test cell, and the falls in AUROC that it could show."""

    cell: str
    n_pairs: int
    n_groups: int
    auroc: float
    """The base's AUROC: measured, or assumed."""
    is_measured: bool
    detectable: tuple[float | None, ...]
    """The smallest fall that a test would find, by the numbers of seeds; None where it would find none."""


class StudyPower(NamedTuple):
    """The falls in AUROC that the cells of a study could show."""

    seeds: tuple[int, ...]
    """Numbers of seeds that trainings have, ascending."""
    n_tests: int
    """The family of Holm's correction: trainings × cells × measures that a cell is large enough for."""
    cells: tuple[CellPower, ...]


def print_transfer_plan(study: Study) -> None:
    """Print what the cells of a study could show, and below it what its runs would take.

    Before the dataset is built only the latter is known. Raises what `coming_runs` and `forecast` raise.
    """
    costs = forecast(coming_runs(study))
    console = Console(width=80, highlight=False)
    if dataset_here(study) is None:
        console.print("What each cell could show is known once `monitorbench build` made the dataset.\n")
    else:
        _print_power(study_power(study), study.transfer.assumed, console)
    print_forecast(costs)


def study_power(study: Study) -> StudyPower:
    """Compute what the cells of the study's built dataset could show."""
    data = directory_of(study)
    seeds_by_training = Counter((point.subset, point.objective) for point in training_points(study.transfer))
    seeds = tuple(sorted(set(seeds_by_training.values())))
    samples = read_columns(data.path, Split.TEST, study.dataset.view(Split.TEST.value))
    cells = {name: rows for name, rows in by_cell(samples).items() if name == OVERALL or "/" in name}
    benign = [np.unique(samples.groups[rows][~samples.is_misbehavior[rows]]) for rows in cells.values()]
    # The measure at FAR 5 % takes enough benign questions.
    n_measures = [len(MEASURES) - (len(groups) < questions_needed(0.05)) for groups in benign]
    n_tests = len(seeds_by_training) * sum(n_measures)
    evaluation = planned_evaluation(evaluation_study(study, None), data.path).run
    base = read_evaluation(study.paths.data, evaluation.path).judged if evaluation.done else None
    powers = tuple(
        _cell_power(
            name, samples.taking(rows), base and base.taking(rows), study.transfer.assumed, seeds, n_tests
        )
        for name, rows in cells.items()
    )
    return StudyPower(seeds, n_tests, powers)


def _print_power(power: StudyPower, assumed: Assumed, console: Console) -> None:
    """Print a table with a row for each cell."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("cell")
    seeds = ("one seed" if n == 1 else f"{n} seeds" for n in power.seeds)
    for name in ("pairs", "questions", "base AUROC", *seeds):
        table.add_column(name, justify="right")
    for cell in power.cells:
        base = rate(cell.auroc) + ("" if cell.is_measured else "?")
        falls = ["none" if fall is None else rate(fall) for fall in cell.detectable]
        table.add_row(cell.cell, f"{cell.n_pairs}", f"{cell.n_groups}", base, *falls)
    console.print(
        f"The smallest fall in AUROC that each cell would show with {POWER:.0%} power, after Holm's "
        f"correction over {power.n_tests} tests:"
    )
    console.print(table)
    if any(not cell.is_measured for cell in power.cells):
        console.print(f"?: assumed, base AUROC {rate(assumed.auroc)} (transfer.assumed.auroc)")
    console.print(
        f"assumed: correlation of base and tuned {assumed.correlation:g}, SD over seeds {assumed.seed_sd:g}; "
        "what one seed shows is about that adapter alone\n"
    )


def _cell_power(
    cell: str,
    samples: Columns,
    base: Columns | None,
    assumed: Assumed,
    seeds: tuple[int, ...],
    n_tests: int,
) -> CellPower:
    n_groups = len(np.unique(samples.groups))
    measured = _measured_auroc(base) if base is not None else None
    value, variance = measured or (assumed.auroc, independent_variance(assumed.auroc, n_groups, n_groups))
    paired = samples.pairs[samples.pairs > UNPAIRED]
    return CellPower(
        cell=cell,
        n_pairs=int(np.count_nonzero(np.bincount(paired) == 2)),
        n_groups=n_groups,
        auroc=value,
        is_measured=measured is not None,
        detectable=tuple(planned_fall(assumed, value, variance, n_groups, n, n_tests) for n in seeds),
    )


def _measured_auroc(base: Columns) -> tuple[float, float] | None:
    """The base's AUROC and its variance over questions; None where it has none."""
    scored = ~np.isnan(base.scores)
    flags, groups = base.is_misbehavior[scored], group_index(base.groups[scored])
    value = auroc(base.scores[scored], flags)
    if value is None:
        return None
    variance = clustered_variance(components(base.scores[scored], flags), flags, groups)
    return None if not variance else (value, variance)


def planned_fall(
    assumed: Assumed, value: float, variance: float, n_groups: int, n_seeds: int, n_tests: int
) -> float | None:
    """The smallest fall that a test of base and tuned over so many seeds would find.

    With v the variance of one AUROC and c the correlation, a difference has 2v(1 − c); seeds share half.
    """
    shared = variance * (1 - assumed.correlation)
    if n_groups < 2:
        return None
    if n_seeds == 1:
        return detectable_fall(value, sqrt(2 * shared), n_groups - 1.0, n_groups, n_tests, level=LEVEL)
    between = assumed.seed_sd**2 + shared
    return detectable_over_seeds(value, between, shared, n_seeds, n_groups, n_tests, level=LEVEL)
