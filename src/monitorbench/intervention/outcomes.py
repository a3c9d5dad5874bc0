"""Outcomes of an agent's runs: the outcomes file, and somebody else's table read by named columns.

The outcomes file has one row a run, as JSON lines or CSV: what is written is read back equal. A table of
one's own has a row a run with its reward, or a row a task with a success for each condition (`read_mapped`).

Promises: a row is taken as it stands or refused with its line and field, and nothing is guessed; a run with a
reason, or in a table of one's own without a success, is a failed one; a task without any is left out, and
counted; so is a run that a log marks as invalid.
"""

import csv
import io
import json
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from monitorbench.config.base import UserError
from monitorbench.config.imports import Import
from monitorbench.config.load import did_you_mean
from monitorbench.config.pilot import OutcomeColumns
from monitorbench.interop.imports.columns import absent_column, unread_names
from monitorbench.interop.imports.readers.open import UNUSABLE, ImportedFiles, read_files, usable_rows
from monitorbench.interop.imports.readers.table import WantedColumns
from monitorbench.interop.imports.values import flags, numbers, refuse, texts, whole_numbers
from monitorbench.metrics.bootstrap import FloatArray
from monitorbench.runs.files import write_atomically
from monitorbench.untrusted_rows import rows

BASELINE = "none"
"""The condition of a run without intervention."""


class Outcome(NamedTuple):
    """How one run ended."""

    task: str
    seed: int
    agent: str
    condition: str
    """`BASELINE`, or the mechanism's name."""
    success: bool
    interventions: int
    steps: int
    tokens: int
    reason: str = ""
    """Why a run failed that is no ordinary failure (agent or critic broke down); never of a success."""


FIELDS = Outcome._fields
_REQUIRED = FIELDS[:-1]
_FORMATS = (".jsonl", ".csv")
_TOO_MANY = 10**18
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


class _BadRow(ValueError):
    """Fault of a row, without its place."""


def read_outcomes(path: Path) -> list[Outcome]:
    """The runs in a `.jsonl` or `.csv` file, in its order.

    Raises `UserError` with the line and the field for a row that is no outcome, and for a file that is
    missing, empty, not UTF-8 or of another format.
    """
    _check_format(path)
    outcomes = []
    for place, row in rows(path):
        typed = row
        if path.suffix == ".csv":
            typed = {name: _typed(name, value) for name, value in row.items()}
        try:
            outcomes.append(_outcome(typed))
        except _BadRow as error:
            raise UserError(
                f"{path}, {place}: {error}; fix that row and run the same command again"
            ) from None
    return outcomes


def outcomes_of(rows: Iterable[object]) -> list[Outcome]:
    """Runs from mappings with the fields of the outcomes file; `UserError` with the row's number, from 0."""
    outcomes = []
    for number, row in enumerate(rows):
        try:
            if not isinstance(row, Mapping):
                raise _BadRow(f"{type(row).__name__}; expected a mapping with {', '.join(_REQUIRED)}")
            outcomes.append(_outcome({str(name): value for name, value in row.items()}))
        except _BadRow as error:
            raise UserError(f"outcomes[{number}]: {error}") from None
    if not outcomes:
        raise UserError(f"outcomes: empty; expected one row a run with {', '.join(_REQUIRED)}")
    return outcomes


def write_outcomes(path: Path, outcomes: Iterable[Outcome]) -> None:
    """Replace `path` (`.jsonl` or `.csv`) by these runs; whole or not at all.

    Raises `UserError` where it can't be written or has another suffix.
    """
    _check_format(path)
    if path.suffix == ".jsonl":
        lines = [json.dumps(outcome._asdict(), ensure_ascii=False) + "\n" for outcome in outcomes]
        write_atomically(path, "".join(lines))
        return
    text = io.StringIO(newline="")
    writer = csv.writer(text)  # ends lines in "\r\n", or a field with either would not be quoted
    writer.writerow(FIELDS)
    for outcome in outcomes:
        row = outcome._asdict() | {"success": str(outcome.success).lower()}
        writer.writerow(row.values())
    write_atomically(path, text.getvalue())


def _check_format(path: Path) -> None:
    if path.suffix not in _FORMATS:
        raise UserError(f"{path}: expected an outcomes file that ends in {' or '.join(_FORMATS)}")


def _typed(field: str, value: str) -> object:
    """A CSV value as JSON would have it; left as text where it is none of its field's values."""
    if field == "success":
        return _FLAGS.get(value.strip().lower(), value)
    if field in ("seed", "interventions", "steps", "tokens") and re.fullmatch(r"\s*[0-9]{1,18}\s*", value):
        return int(value)
    return value


def _outcome(row: Mapping[str, Any]) -> Outcome:
    for name in row:
        if name not in FIELDS:
            raise _BadRow(
                f"unknown field {name!r}; expected {', '.join(FIELDS)}; a table of your own is read by "
                "pilot.columns, one with a row a task by pilot.columns.task=TASK and "
                "'pilot.columns.arms={none:COLUMN,critic:COLUMN}'"
            )
    for name in _REQUIRED:
        if name not in row:
            raise _BadRow(f"missing field {name!r}")
    for name, value in row.items():
        if fault := _fault(name, value):
            raise _BadRow(f"field {name!r}: {fault}")
    outcome = Outcome(**row)
    if outcome.success and outcome.reason:
        raise _BadRow("field 'reason': a run that broke down is no success")
    if outcome.interventions and outcome.condition == BASELINE:
        raise _BadRow(f"field 'interventions': a run of condition {BASELINE!r} has none")
    return outcome


def _fault(field: str, value: object) -> str:
    """What is wrong with a field's value; empty where nothing is."""
    if field == "success":
        return "" if isinstance(value, bool) else f"{value!r} is neither true nor false"
    if field in ("task", "agent", "condition", "reason"):
        is_empty = value == "" and field != "reason"
        return "empty" if is_empty else "" if isinstance(value, str) else f"{value!r} is not text"
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _TOO_MANY
    return "" if is_count else f"{repr(value)[:40]} is no whole number from 0 to 10^18"


_AGENT = "agent"
_SUCCESS = ("true", "1", "1.0", "yes", "success", "pass", "passed", "correct")
_NO_OUTCOME = "no outcome in the file"
_FAILURE = ("false", "0", "0.0", "no", "failure", "fail", "failed", "incorrect")
_log = logging.getLogger(__name__)


class MappedRuns(NamedTuple):
    """The runs of somebody else's table."""

    outcomes: list[Outcome]
    remarks: tuple[str, ...]
    """Sentences on the table's runs that are left out, or that were taken as broken down."""


def read_mapped(path: Path, columns: OutcomeColumns) -> MappedRuns:
    """The runs of a file, by the columns that are named; steps, tokens and interventions are not known: 0.

    Raises `UserError` for a file that can't be read, a column that is not there and a value that can't be
    taken.
    """
    per_run = [columns.success, columns.condition] if columns.arms is None else [*columns.arms.values()]
    names = [*per_run, *filter(None, (columns.task, columns.seed, columns.agent))]
    read = read_files([path], Import(), WantedColumns([*names, UNUSABLE, "error"]))
    for name in names:
        if name not in read.table.column_names:
            raise UserError(absent_column(f"pilot.columns: {name}", name, read.present))
    if unread := unread_names(read.present, names):
        _log.info("pilot: not read: %s", unread)
    read, left_out = _without_unusable(read, columns)
    if columns.arms is not None:
        conditions: defaultdict[str, set[str]] = defaultdict(set)
        for name in columns.arms:
            agent, _, condition = name.rpartition("/")
            conditions[agent].add(condition)
        for agent, own in conditions.items():
            if BASELINE not in own or len(own) < 2:
                listed, whose = ",".join(columns.arms), f" of {agent}" if agent else ""
                raise UserError(
                    f"pilot.columns.arms={{{listed}}}: expected {BASELINE} (without intervention) and another"
                    f"{whose}"
                )
        outcomes, remarks = _of_tasks(read, columns, columns.arms)
        return MappedRuns(outcomes, (*left_out, *remarks))
    if not columns.task:
        raise UserError(
            "pilot.columns.task: rows are runs; expected the column with the task that each is of"
        )
    return MappedRuns(_of_runs(read, columns), tuple(left_out))


def _without_unusable(read: ImportedFiles, columns: OutcomeColumns) -> tuple[ImportedFiles, list[str]]:
    """The runs that their log doesn't mark as invalid, and how many others there are, of each condition.

    Raises `UserError` for a run that ended in an error: to leave out who broke down would move the effect.
    """
    usable, left_out, first = usable_rows(read, "runs that are neither")
    if not len(left_out):
        return usable, []
    errors = read.table.column("error").take(left_out)
    if errors.null_count < len(left_out):
        row = int(left_out[np.flatnonzero(pc.is_valid(errors).to_numpy())[0]])
        raise UserError(
            f"{read.where(row)}: {read.table.column(UNUSABLE)[row].as_py()}; expected runs that ended: run "
            "it again (`inspect eval-retry`), or an outcomes file, where a run that broke down has a reason"
        )
    counted = ""
    if columns.arms is None:
        counts = Counter(texts(read, columns.condition, keeps_words=True).take(left_out).to_pylist())
        counted = f" ({columns.condition}: " + ", ".join(f"{n} {name}" for name, n in counts.items()) + ")"
    return usable, [
        f"{len(left_out):,} of {read.table.num_rows:,} runs are left out, as the log marks them{counted}; "
        f"the first: {first}."
    ]


def _of_tasks(
    read: ImportedFiles, columns: OutcomeColumns, arms: dict[str, str]
) -> tuple[list[Outcome], list[str]]:
    """A run for each arm of a row; one without an outcome broke down, for who lacks may be who failed.

    A row without any outcome of an agent is no run of it. Also returns what is to be said of either.
    """
    by_agent: defaultdict[str, dict[str, FloatArray]] = defaultdict(dict)
    for arm, name in arms.items():
        agent, _, condition = arm.rpartition("/")
        by_agent[agent][condition] = _successes(read, name, columns)
    tasks, seeds, agents = _keys(read, columns)
    outcomes, rows_of, remarks = [], [], []
    for agent, successes in by_agent.items():
        is_missing = np.isnan([*successes.values()])  # [conditions, tasks]
        if is_missing.any(axis=0).all():
            listed = ", ".join(arms.values())
            raise UserError(f"{read.files[0]}: no task has a success or failure in each of {listed}")
        rows = np.flatnonzero(~is_missing.all(axis=0)).tolist()
        who = f" of {agent}" if agent else ""
        if n_empty := len(tasks) - len(rows):
            remarks.append(f"{n_empty:,} of {len(tasks):,} tasks have no run{who}: left out.")
        if n_lacking := int(is_missing[:, rows].sum()):
            remarks.append(f"{n_lacking:,} runs{who} have no outcome: taken as broken down.")
        for i in rows:
            for condition, success in successes.items():
                why = _NO_OUTCOME if np.isnan(success[i]) else ""
                run = (tasks[i], seeds[i], agent or agents[i], condition)
                outcomes.append(Outcome(*run, bool(success[i] == 1), 0, 0, 0, why))
                rows_of.append(i)
    _refuse_repeated(read, columns, outcomes, rows_of)
    return outcomes, remarks


def _of_runs(read: ImportedFiles, columns: OutcomeColumns) -> list[Outcome]:
    successes = _successes(read, columns.success, columns)
    if np.isnan(successes).any():
        row = int(np.flatnonzero(np.isnan(successes))[0])
        refuse(read, row, columns.success, "no outcome", "a success or a failure in each row")
    conditions = _needed(read, columns.condition)
    if columns.baseline != BASELINE and BASELINE in conditions:
        expected = f"another name: it is what {columns.baseline!r} (pilot.columns.baseline) is called here"
        refuse(read, conditions.index(BASELINE), columns.condition, f"a condition {BASELINE!r}", expected)
    if columns.baseline not in conditions:
        there = sorted(set(conditions))
        nearest = did_you_mean(columns.baseline, there)
        raise UserError(
            f"pilot.columns.baseline={columns.baseline!r}: no run has that {columns.condition}; "
            f"{nearest}{' ' if nearest else ''}there are {', '.join(there[:20])}"
        )
    tasks, seeds, agents = _keys(read, columns)
    conditions = [BASELINE if condition == columns.baseline else condition for condition in conditions]
    runs = zip(tasks, seeds, agents, conditions, (successes == 1).tolist(), strict=True)
    outcomes = [Outcome(*run, 0, 0, 0) for run in runs]
    _refuse_repeated(read, columns, outcomes, range(len(outcomes)))
    return outcomes


def _refuse_repeated(
    read: ImportedFiles, columns: OutcomeColumns, outcomes: Sequence[Outcome], rows: Sequence[int]
) -> None:
    """Raise `UserError` where two rows have a run of one agent, task, seed and condition."""
    first: dict[tuple[str, int, str, str], int] = {}
    for outcome, row in zip(outcomes, rows, strict=True):
        before = first.setdefault(outcome[:4], row)
        if before != row:
            named = {"task": columns.task, "seed": columns.seed, "agent": columns.agent}
            if columns.arms is None:
                named["condition"] = columns.condition
            said = ", ".join(f"{name}={read.table.column(name)[row]}" for name in named.values() if name)
            unnamed = [f"pilot.columns.{role}" for role in ("seed", "agent") if not named[role]]
            more = f", or a column that tells them apart ({', '.join(unnamed)})" if unnamed else ""
            raise UserError(
                f"{read.where(row)}: a second run of {said}, after {read.where(before)}; expected one{more}"
            )


def _successes(read: ImportedFiles, name: str, columns: OutcomeColumns) -> FloatArray:
    """1 success, 0 failure, NaN nothing [rows]."""
    if columns.success_from is None:
        others = "pilot.columns.success_from reads a reward; other words have to be true or false in the file"
        return flags(read, name, _SUCCESS, _FAILURE, others)
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
    values = pc.utf8_trim_whitespace(texts(read, name, keeps_words=True))  # a condition may be called none
    if (empty := pc.index(pc.fill_null(values, ""), "").as_py()) >= 0:
        refuse(read, empty, name, "nothing", "a value in each row")
    entries: list[str] = values.to_pylist()
    return entries
