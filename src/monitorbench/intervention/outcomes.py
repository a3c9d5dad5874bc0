"""The outcomes file: one row a run of an agent on a task, as JSON lines or CSV.

Promises: what is written is read back equal; a row is taken as it stands or refused with its line and field,
and nothing is guessed. A run with a reason is a failed one.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from monitorbench.config.base import UserError
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


def _outcome(row: Mapping[str, object]) -> Outcome:
    for name in row:
        if name not in FIELDS:
            raise _BadRow(f"unknown field {name!r}; expected {', '.join(FIELDS)}")
    for name in _REQUIRED:
        if name not in row:
            raise _BadRow(f"missing field {name!r}")
    success = row["success"]
    if not isinstance(success, bool):
        raise _BadRow(f"field 'success': {success!r} is neither true nor false")
    outcome = Outcome(
        task=_text(row, "task"),
        seed=_count(row, "seed"),
        agent=_text(row, "agent"),
        condition=_text(row, "condition"),
        success=success,
        interventions=_count(row, "interventions"),
        steps=_count(row, "steps"),
        tokens=_count(row, "tokens"),
        reason=_text(row, "reason", may_be_empty=True) if "reason" in row else "",
    )
    if outcome.success and outcome.reason:
        raise _BadRow("field 'reason': a run that broke down is no success")
    if outcome.interventions and outcome.condition == BASELINE:
        raise _BadRow(f"field 'interventions': a run of condition {BASELINE!r} has none")
    return outcome


def _text(row: Mapping[str, object], field: str, *, may_be_empty: bool = False) -> str:
    value = row[field]
    if not isinstance(value, str):
        raise _BadRow(f"field {field!r}: {value!r} is not text")
    if not value and not may_be_empty:
        raise _BadRow(f"field {field!r}: empty")
    return value


def _count(row: Mapping[str, object], field: str) -> int:
    value = row[field]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _TOO_MANY:
        raise _BadRow(f"field {field!r}: {repr(value)[:40]} is no whole number from 0 to 10^18")
    return value
