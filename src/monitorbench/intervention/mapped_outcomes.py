"""Outcomes of somebody else's runs: a row a run with its reward, or a row a task with a success a condition.

Promises: a run is taken as it stands or refused with its line and field; a task that one condition has no
success for is left out of all, and counted.
"""

import logging
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from monitorbench.config.base import UserError
from monitorbench.config.imports import Import
from monitorbench.config.pilot import OutcomeColumns
from monitorbench.interop.imports.columns import absent_column
from monitorbench.interop.imports.readers.open import ImportedFiles, read_files
from monitorbench.interop.imports.readers.table import WantedColumns
from monitorbench.interop.imports.values import flags, numbers, refuse, texts, whole_numbers
from monitorbench.intervention.outcomes import BASELINE, Outcome
from monitorbench.metrics.bootstrap import FloatArray

_AGENT = "agent"
_SUCCESS = ("true", "1", "1.0", "yes", "success", "pass", "passed", "correct")
_FAILURE = ("false", "0", "0.0", "no", "failure", "fail", "failed", "incorrect")
_log = logging.getLogger(__name__)


def read_mapped(path: Path, columns: OutcomeColumns) -> list[Outcome]:
    """The runs of a file, by the columns that are named; steps, tokens and interventions are not known: 0.

    Raises `UserError` for a file that can't be read, a column that is not there and a value that can't be
    taken.
    """
    per_run = [columns.success, columns.condition] if columns.arms is None else [*columns.arms.values()]
    names = [*per_run, *filter(None, (columns.task, columns.seed, columns.agent))]
    read = read_files([path], Import(), WantedColumns(names))
    for name in names:
        if name not in read.table.column_names:
            raise UserError(absent_column(f"pilot.columns: {name}", name, read.present))
    if columns.arms is not None:
        if BASELINE not in columns.arms or len(columns.arms) < 2:
            listed = ",".join(columns.arms)
            raise UserError(
                f"pilot.columns.arms={{{listed}}}: expected {BASELINE} (without intervention) and another"
            )
        return _of_tasks(read, columns, columns.arms)
    if not columns.task:
        raise UserError(
            "pilot.columns.task: rows are runs; expected the column with the task that each is of"
        )
    return _of_runs(read, columns)


def _of_tasks(read: ImportedFiles, columns: OutcomeColumns, arms: dict[str, str]) -> list[Outcome]:
    successes = {condition: _successes(read, name, columns) for condition, name in arms.items()}
    totals: FloatArray = np.add.reduce([*successes.values()])
    is_missing = np.isnan(totals).tolist()
    rows = [row for row, missing in enumerate(is_missing) if not missing]
    if not rows:
        listed = ", ".join(arms.values())
        raise UserError(f"{read.files[0]}: no task has a success or failure in each of {listed}")
    if n_left_out := len(is_missing) - len(rows):
        _log.info("pilot: %d of %d tasks lack an outcome and are left out", n_left_out, len(is_missing))
    tasks, seeds, agents = _keys(read, columns)
    return [
        Outcome(tasks[i], seeds[i], agents[i], condition, bool(success[i]), 0, 0, 0)
        for i in rows
        for condition, success in successes.items()
    ]


def _of_runs(read: ImportedFiles, columns: OutcomeColumns) -> list[Outcome]:
    successes = _successes(read, columns.success, columns)
    if np.isnan(successes).any():
        row = int(np.flatnonzero(np.isnan(successes))[0])
        refuse(read, row, columns.success, "no outcome", "a success or a failure in each row")
    conditions = _needed(read, columns.condition)
    tasks, seeds, agents = _keys(read, columns)
    conditions = [BASELINE if condition == columns.baseline else condition for condition in conditions]
    runs = zip(tasks, seeds, agents, conditions, (successes == 1).tolist(), strict=True)
    return [Outcome(*run, 0, 0, 0) for run in runs]


def _successes(read: ImportedFiles, name: str, columns: OutcomeColumns) -> FloatArray:
    """1 success, 0 failure, NaN nothing [rows]."""
    if columns.success_from is None:
        return flags(read, name, _SUCCESS, _FAILURE, "pilot.columns.success_from reads a reward")
    rewards = numbers(read, name)
    return np.where(np.isnan(rewards), np.nan, (rewards >= columns.success_from).astype(np.float64))


def _keys(read: ImportedFiles, columns: OutcomeColumns) -> tuple[list[str], list[int], list[str]]:
    """Task, seed and agent of each row."""
    n = read.table.num_rows
    return (
        _needed(read, columns.task) if columns.task else [f"row {i + 1}" for i in range(n)],
        whole_numbers(read, columns.seed).tolist() if columns.seed else [0] * n,
        _needed(read, columns.agent) if columns.agent else [_AGENT] * n,
    )


def _needed(read: ImportedFiles, name: str) -> list[str]:
    values = texts(read, name, keeps_words=True)  # a condition may be called none
    if values.null_count:
        refuse(read, int(np.flatnonzero(pc.is_null(values))[0]), name, "nothing", "a value in each row")
    entries: list[str] = values.to_pylist()
    return entries
