"""What `transfer.plan=true` prints: what a study could show in each cell, and what it would take.

Nothing is trained or judged. What is not known yet is assumed (`transfer.assumed`), but for the base's AUROC
and its variance where the base has judged the test split already.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.study import Study
from monitorbench.corpus.build import directory_of
from monitorbench.corpus.columns import read_columns
from monitorbench.forecast.samples import dataset_here
from monitorbench.forecast.table import forecast, print_forecast
from monitorbench.forecast.work import Run, Work, weights_here
from monitorbench.judging.evaluate import planned_evaluation
from monitorbench.metrics.auroc import auroc, clustered_variance, components
from monitorbench.metrics.bootstrap import group_index
from monitorbench.metrics.columns import OVERALL, UNPAIRED, Columns, by_cell
from monitorbench.metrics.low_far import questions_needed
from monitorbench.metrics.replicates import degrees_of_freedom
from monitorbench.metrics.sensitivity import POWER, auroc_variance, detectable_fall
from monitorbench.metrics.words import LEVEL, MEASURES
from monitorbench.records import Split
from monitorbench.report.tables.numbers import rate
from monitorbench.runs.run_folders import training_run
from monitorbench.scoring.evaluations import read_evaluation
from monitorbench.studies.points import Point, evaluation_study, points, training_study


class CellPlan(NamedTuple):
    """What one test cell has, and could show."""

    cell: str
    n_pairs: int
    n_groups: int
    auroc: float
    """The base's: measured, or assumed."""
    is_measured: bool
    detectable: tuple[float | None, ...]
    """The smallest fall that would be found, by the numbers of seeds; None: none would."""


class StudyPlan(NamedTuple):
    """A study before anything of it is run."""

    seeds: tuple[int, ...]
    """Numbers of seeds that trainings have, ascending."""
    n_tests: int
    """The family of Holm's correction: trainings × cells × measures that a cell is large enough for."""
    works: tuple[Work, ...]
    """What each training and evaluation takes."""
    cells: tuple[CellPlan, ...]


def plan(study: Study) -> StudyPlan:
    """The plan of the study's `transfer`; raises `UserError` where its dataset is not built."""
    data = directory_of(study)
    if not data.done:
        raise UserError(
            "transfer.plan: the dataset is not built, so its cells are not known; run data_build/build.py "
            "first"
        )
    _refuse_heads(study)
    named = points(study.transfer)
    seeds = _seeds(named)
    samples = read_columns(data.path, Split.TEST, study.dataset.view(Split.TEST.value))
    cells = {name: rows for name, rows in by_cell(samples).items() if name == OVERALL or "/" in name}
    n_tests = len(seeds) * sum(_n_measures(samples.taking(rows)) for rows in cells.values())
    base = _base(study)
    counts = tuple(sorted(set(seeds.values())))
    return StudyPlan(
        seeds=counts,
        n_tests=n_tests,
        works=tuple(forecast(coming_runs(study))),
        cells=tuple(
            _cell(study, name, samples.taking(rows), base and base.taking(rows), counts, n_tests)
            for name, rows in cells.items()
        ),
    )


def print_plan(found: StudyPlan, study: Study) -> None:
    """A table by cell, and below it what the study would take; 80 columns."""
    assumed = study.transfer.assumed
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("cell")
    for name in ("pairs", "questions", "base AUROC", *(_seeds_in_words(n) for n in found.seeds)):
        table.add_column(name, justify="right")
    for one in found.cells:
        shown = rate(one.auroc) + ("" if one.is_measured else "?")
        least = ["none" if value is None else rate(value) for value in one.detectable]
        table.add_row(one.cell, f"{one.n_pairs}", f"{one.n_groups}", shown, *least)
    console = Console(width=80, highlight=False)
    console.print(
        f"The smallest fall in AUROC that each cell would show with {POWER:.0%} power, after Holm's "
        f"correction over {found.n_tests} tests:"
    )
    console.print(table)
    if any(not one.is_measured for one in found.cells):
        console.print(f"?: assumed, base AUROC {rate(assumed.auroc)} (transfer.assumed.auroc)")
    console.print(
        f"assumed: correlation of base and tuned {assumed.correlation:g}, SD over seeds {assumed.seed_sd:g}; "
        "what one seed shows is about that adapter alone"
    )
    console.print()
    print_forecast(found.works)


def coming_runs(study: Study) -> list[Run]:
    """The trainings and evaluations of a study, there or not; of an untrained adapter too.

    Raises `ConfigError` where `transfer` names no training.
    """
    _refuse_heads(study)
    named = points(study.transfer)
    if study.transfer.runs or not named:
        raise ConfigError(
            "--plan: for a study; expected transfer.subsets or experiment=transfer/..., no transfer.runs"
        )
    data, weights = dataset_here(study), weights_here(study)
    trained = [training_study(study, point) for point in named]
    # Without data or weights the folders of the adapters are not known; nor are they there.
    adapters = [training_run(one, data.path.name if data else "", weights or "").path for one in trained]
    return [
        Run("evaluate", evaluation_study(study, None)),
        *(Run("train", one) for one in trained),
        *(Run("evaluate", evaluation_study(study, adapter)) for adapter in adapters),
    ]


def _refuse_heads(study: Study) -> None:
    if study.transfer.by == "head":
        raise ConfigError(
            "transfer.by=head: a plan is for adapters; heads take what extracting the states takes, which "
            "train/fit.py logs"
        )


def _n_measures(samples: Columns) -> int:
    """How many of the four are tested in a cell: that at FAR 5 % takes enough benign questions."""
    n_benign = len(np.unique(samples.groups[~samples.is_misbehavior]))
    return len(MEASURES) - (n_benign < questions_needed(0.05))


def _seeds_in_words(n: int) -> str:
    return "one seed" if n == 1 else f"{n} seeds"


def _seeds(named: list[Point]) -> dict[tuple[str, str], int]:
    """Trainings by subset and objective, and how many seeds each has."""
    found: dict[tuple[str, str], int] = {}
    for one in named:
        found[one.subset, one.objective] = found.get((one.subset, one.objective), 0) + 1
    return found


def _base(study: Study) -> Columns | None:
    """What the base answered on the test split, if it was asked."""
    data = directory_of(study)
    judged = planned_evaluation(evaluation_study(study, None), data.path).run
    return read_evaluation(study.paths.data, judged.path).judged if judged.done else None


def _cell(
    study: Study, name: str, samples: Columns, base: Columns | None, seeds: tuple[int, ...], n_tests: int
) -> CellPlan:
    n_groups = len(np.unique(samples.groups))
    known = _measured(base) if base is not None else None
    value, variance = known or (
        study.transfer.assumed.auroc,
        float(auroc_variance(study.transfer.assumed.auroc, n_groups)),
    )
    paired = samples.pairs[samples.pairs > UNPAIRED]
    return CellPlan(
        cell=name,
        n_pairs=int(np.count_nonzero(np.bincount(paired) == 2)),
        n_groups=n_groups,
        auroc=value,
        is_measured=known is not None,
        detectable=tuple(_detectable(study, value, variance, n_groups, n, n_tests) for n in seeds),
    )


def _measured(base: Columns) -> tuple[float, float] | None:
    """AUROC and its variance over questions."""
    kept = ~np.isnan(base.scores)
    flags, groups = base.is_misbehavior[kept], group_index(base.groups[kept])
    value = auroc(base.scores[kept], flags)
    if value is None:
        return None
    variance = clustered_variance(components(base.scores[kept], flags), flags, groups)
    return None if not variance else (value, variance)


def _detectable(
    study: Study, value: float, variance: float, n_groups: int, n_seeds: int, n_tests: int
) -> float | None:
    """With v the variance of one AUROC, c the correlation: a difference has 2v(1 − c); seeds share half."""
    assumed = study.transfer.assumed
    shared = variance * (1 - assumed.correlation)
    if n_groups < 2:
        return None
    if n_seeds == 1:
        error, degrees = sqrt(2 * shared), n_groups - 1.0
    else:
        between = assumed.seed_sd**2 + shared
        error = sqrt(between / n_seeds + shared)
        degrees = degrees_of_freedom(between, shared, n_seeds, n_groups)
    return detectable_fall(value, error, degrees, n_groups, n_tests, level=LEVEL)
