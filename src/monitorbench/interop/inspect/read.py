"""Inspect logs as a table, a row a sample and epoch: what `import` maps to samples and verdicts.

Logs of any size go through sample by sample; what stays is the table. Promises: a value is in the table as it
is in the log; what is not scored is null, never 0; a sample that can't be read is an error that names it.
"""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from monitorbench.config.base import UserError
from monitorbench.conversations.read import NoChat
from monitorbench.records import Message
from monitorbench.runs.files import file_sha256
from monitorbench.sources.fetch import local
from monitorbench.sources.files.inspect_archive import Logged, logged_samples
from monitorbench.sources.files.inspect_log import SUFFIXES as SUFFIXES
from monitorbench.sources.files.inspect_log import messages
from monitorbench.sources.read import BadRow, encodable

NO_ANSWER = "N"
"""Inspect's value for a model that gave no answer; its own metrics count it as 0."""

_TEXTS = (
    "log",
    "file_sha256",
    "eval_id",
    "group",
    "model",
    "sample_id",
    "request",
    "response",
    "error",
    "unusable",
)
_FIXED = pa.schema([*(pa.field(name, pa.string()) for name in _TEXTS), pa.field("epoch", pa.int32())])
_ROWS_AT_ONCE = 1000

Value = str | int | float | bool


def read(path: Path) -> pa.Table:
    """The samples of an `.eval` or `.json` log, or of all logs below a folder; raises `UserError`.

    Columns, null where a sample has no such value:
    - `sample_id`, `epoch` (int32, from 1), `group` (the task's name), `model` (that was judged), `eval_id`,
      `log` (the file's name), `file_sha256`, `error` (that ended the sample),
      `unusable` (why the log says that the sample tells nothing: an error, or a mark as invalid);
    - `request` and `response`: JSON lists of chat messages, as `dataset=jsonl` has them; null where the log
      keeps no conversation, or the model took no turn;
    - `scores.NAME` of a scorer whose value is one value, `scores.NAME.KEY` of one whose value has several (of
      a list KEY is the place, from 0); `answers.NAME`, `explanations.NAME`, `reasons.NAME`,
      `score_metadata.NAME.KEY`;
    - `target`, `metadata.KEY`: of the sample; what is nested has dots, and a list is JSON.

    A column of numbers is float64, one of booleans is bool, any other is text. NaN is null, and so is
    Inspect's "N" (no answer) among numbers.
    """
    if not path.exists():
        raise UserError(f"{path}: no such file; expected an Inspect log, or a folder of them")
    fixed: list[pa.RecordBatch] = []
    waiting: list[dict[str, Any]] = []
    sparse: dict[str, dict[int, Value]] = {}
    n = 0
    files = local("import", path, SUFFIXES, "error", remedy="fix the log, or leave it out")
    for logged in logged_samples(files):
        try:
            waiting.append(_fixed(logged))
            for name, value in _named_values(logged.row):
                column = sparse.setdefault(name, {})
                if n in column:
                    raise BadRow(f"two values are called {name!r}")
                column[n] = value
        except (BadRow, NoChat) as error:
            raise UserError(f"import: {logged.where}: {error}; fix the log, or leave it out") from error
        n += 1
        if len(waiting) == _ROWS_AT_ONCE:
            fixed.append(pa.RecordBatch.from_pylist(waiting, _FIXED))
            waiting = []
    if not n:
        raise UserError(f"{path}: no sample in it; expected an Inspect log that keeps its samples")
    table = pa.Table.from_batches([*fixed, pa.RecordBatch.from_pylist(waiting, _FIXED)])
    columns = {name: _column(values, n) for name, values in sparse.items()}
    names = [*table.column_names, *columns]  # appended one by one, thousands would take minutes
    return pa.Table.from_arrays([*table.columns, *columns.values()], names=names)


def line(path: Path, row: int) -> str:
    """Where a row of the table is: `sample 17`, the first is 1."""
    return f"sample {row + 1}"


def _fixed(logged: Logged) -> dict[str, Any]:
    request, response = _conversation(logged)
    output, error = logged.row.get("output"), logged.row.get("error")
    answered_by = output.get("model") if isinstance(output, Mapping) else None
    return {
        "log": logged.log,
        "file_sha256": file_sha256(logged.path),
        "eval_id": logged.run,
        "group": logged.task,
        "model": logged.model or (answered_by if isinstance(answered_by, str) else None),
        "sample_id": encodable(str(logged.id), "field 'id'"),
        "epoch": logged.epoch,
        "request": request,
        "response": response,
        "error": _text(error.get("message"), "field 'error'") if isinstance(error, Mapping) else None,
        "unusable": logged.unusable or None,
    }


def _conversation(logged: Logged) -> tuple[str | None, str | None]:
    if not logged.row.get("messages"):
        return None, None
    said, own = messages(logged.row, model=logged.model)
    return _json(said), _json(own)


def _json(chat: tuple[Message, ...]) -> str | None:
    found = [message.model_dump(mode="json", exclude_defaults=True) for message in chat]
    return json.dumps(found, ensure_ascii=False) if found else None


def _named_values(row: Mapping[str, Any]) -> Iterator[tuple[str, Value]]:
    """Each value of a sample that has a column of its own, with that column's name."""
    yield from _flat("target", row.get("target"))
    yield from _flat("metadata", row.get("metadata"))
    scores = row.get("scores") or {}
    if not isinstance(scores, Mapping):
        raise BadRow("field 'scores': expected an object with a score for each scorer")
    for name, score in scores.items():
        if not isinstance(score, Mapping):
            raise BadRow(f"field 'scores.{name}': expected an object with a value")
        value = score.get("value")
        numbered = {str(i): one for i, one in enumerate(value)} if isinstance(value, list) else value
        yield from _flat(f"scores.{name}", numbered)
        for field, column in (("answer", "answers"), ("explanation", "explanations"), ("reason", "reasons")):
            if (text := _text(score.get(field), f"field 'scores.{name}.{field}'")) is not None:
                yield f"{column}.{name}", text
        yield from _flat(f"score_metadata.{name}", score.get("metadata"))


def _flat(name: str, value: object) -> Iterator[tuple[str, Value]]:
    """A value under its name, those inside an object under dotted ones; nothing for null and NaN."""
    pending = [(name, value)]
    while pending:
        name, value = pending.pop()
        if isinstance(value, Mapping):
            pending += [(f"{name}.{key}", inner) for key, inner in reversed([*value.items()])]
        elif isinstance(value, list):
            yield encodable(name, "a name"), encodable(json.dumps(value), f"field {name!r}")
        elif isinstance(value, str):
            yield encodable(name, "a name"), encodable(value, f"field {name!r}")
        elif isinstance(value, bool | int) or (isinstance(value, float) and not math.isnan(value)):
            yield encodable(name, "a name"), value


def _text(value: object, where: str) -> str | None:
    return encodable(value, where) if isinstance(value, str) else None


def _column(values: Mapping[int, Value], n: int) -> pa.Array:
    """The values at their rows of `n`, as the narrowest of bool, float64 and text that holds them all."""
    kinds = {bool if isinstance(one, bool) else float for one in values.values() if not isinstance(one, str)}
    texts = {one for one in values.values() if isinstance(one, str)}
    if kinds == {bool} and not texts:
        return pa.array([values.get(row) for row in range(n)], pa.bool_())
    if kinds == {float} and texts <= {NO_ANSWER}:
        numbers = (values.get(row) for row in range(n))
        return pa.array([None if one in (None, NO_ANSWER) else _float(one) for one in numbers], pa.float64())
    return pa.array([_shown(values.get(row)) for row in range(n)], pa.string())


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # JSON has integers of any size
        return math.inf if value > 0 else -math.inf


def _shown(value: Value | None) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return value if value is None or isinstance(value, str) else repr(value)
