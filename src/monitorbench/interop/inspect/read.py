"""Inspect logs as a table, a row a sample and epoch: what `import` maps to samples and verdicts.

Logs of any size go through sample by sample; what stays is the table. Promises: a value is in the table as it
is in the log; what is not scored is null, never 0; a sample that can't be read is an error that names it.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from monitorbench.config.base import UserError
from monitorbench.conversations.read import NoChat
from monitorbench.interop.imports.readers.table import EVERYTHING, ReadTable, TableBuilder, WantedColumns
from monitorbench.records import Message
from monitorbench.runs.files import file_sha256
from monitorbench.sources.fetch import local
from monitorbench.sources.files.inspect_archive import Logged, logged_samples
from monitorbench.sources.files.inspect_log import SUFFIXES as SUFFIXES
from monitorbench.sources.files.inspect_log import messages, turns
from monitorbench.sources.read import BadRow
from monitorbench.untrusted import where_looked

TURNS = "messages"
"""List of a sample's own turns, read where `import.actions` names it."""
NO_ANSWER = "N"
"""Inspect's value for a model that gave no answer; its own metrics count it as 0."""


def read(path: Path, wanted: WantedColumns = EVERYTHING) -> pa.Table:
    """The samples of an `.eval` or `.json` log, or of all logs below a folder; raises `UserError`.

    Columns, of those `wanted` (as `scores.*`), null where a sample has no such value:
    - `sample_id`, `epoch` (from 1), `task` (its name), `group` (the task and the sample id,
      so that epochs stay together), `model` (that was judged), `eval_id`,
      `log` (the file's name), `status` (of its run), `file_sha256`, `error` (that ended the sample),
      `unusable` (why the log says that the sample tells nothing: an error, or a mark as invalid);
    - `request` and `response`: JSON lists of chat messages, as `dataset=jsonl` has them; null where the log
      keeps no conversation, or the model took no turn;
    - `scores.NAME` of a scorer whose value is one value, `scores.NAME.KEY` of one whose value has several (of
      a list KEY is the place, from 0); `answers.NAME`, `explanations.NAME`, `reasons.NAME`,
      `score_metadata.NAME.KEY`;
    - `messages`, where it is wanted as a list: the model's own turns, each with `message` (the turn and what
      tools answered, as chat messages) and `metadata`, in which monitors note their score of an action;
    - `target`, `metadata.KEY`: of the sample; what is nested has dots, and a list is JSON.

    A column has numbers, booleans or text. NaN is null, and so is Inspect's "N" (no answer) among numbers.
    """
    log = read_log(path, wanted)
    if log.clashing:
        raise UserError(
            f"import: {path.name} has two values that are called {min(log.clashing)!r}; rename one"
        )
    return log.table


def read_log(path: Path, wanted: WantedColumns) -> ReadTable:
    """Read a log as `read` does, with the names of all columns that there are."""
    if not path.exists():
        raise UserError(
            f"{path}: no such file{where_looked(path)}; expected an Inspect log, or a folder of them"
        )
    builder = TableBuilder(wanted, NO_ANSWER)
    files = local("import", path, SUFFIXES, "error", remedy="fix the log, or leave it out")
    for logged in logged_samples(files):
        try:
            builder.add(_fields(logged, wanted))
        except (BadRow, NoChat) as error:
            raise UserError(f"import: {logged.where}: {error}; fix the log, or leave it out") from error
    if not builder.n_rows:
        raise UserError(f"{path}: no sample in it; expected an Inspect log that keeps its samples")
    return builder.finish()


def _fields(logged: Logged, wanted: WantedColumns) -> dict[str, Any]:
    """A sample's values, those of scorers and its metadata inside objects."""
    output, error = logged.row.get("output"), logged.row.get("error")
    answered_by = output.get("model") if isinstance(output, Mapping) else None
    request, response = _conversation(logged) if "request" in wanted or "response" in wanted else (None, None)
    return {
        "log": logged.log,
        "status": logged.status,
        "file_sha256": file_sha256(logged.path) if "file_sha256" in wanted else None,
        "eval_id": logged.run,
        "task": logged.task,
        "group": f"{logged.task}-{logged.id}",
        "model": logged.model or (answered_by if isinstance(answered_by, str) else None),
        "sample_id": str(logged.id),
        "epoch": logged.epoch,
        "request": request,
        "response": response,
        "error": _text(error.get("message")) if isinstance(error, Mapping) else None,
        "unusable": logged.unusable or None,
        **({TURNS: _turns(logged)} if TURNS in wanted.lists else {}),
        **_known(
            {
                "target": logged.row.get("target"),
                "metadata": logged.row.get("metadata"),
                **_scores(logged),
            }
        ),
    }


def _conversation(logged: Logged) -> tuple[str | None, str | None]:
    if not logged.row.get("messages"):
        return None, None
    request, own = messages(logged.row, model=logged.model)
    return _json(request), _json(own)


def _turns(logged: Logged) -> list[dict[str, Any]]:
    """The model's own turns, each with what was noted beside it and what the tools answered to it."""
    entries: list[dict[str, Any]] = []
    for turn in turns(logged.row, model=logged.model):
        if turn.is_own:
            entries.append({"message": [], "metadata": _known(turn.metadata)})
        if entries:
            entries[-1]["message"] += turn.messages
    return [{**entry, "message": _json(tuple(entry["message"]))} for entry in entries]


def _json(chat: tuple[Message, ...]) -> str | None:
    dumped = [message.model_dump(mode="json", exclude_defaults=True) for message in chat]
    return json.dumps(dumped, ensure_ascii=False) if dumped else None


def _scores(logged: Logged) -> dict[str, Any]:
    """Return the values of each scorer, and the texts and metadata beside them."""
    columns: dict[str, dict[str, Any]] = {}
    for name, score in logged.scores.items():
        value = score.get("value")
        numbered = {str(i): element for i, element in enumerate(value)} if isinstance(value, list) else value
        columns.setdefault("scores", {})[name] = numbered
        for field, column in (("answer", "answers"), ("explanation", "explanations"), ("reason", "reasons")):
            if (text := _text(score.get(field))) is not None:
                columns.setdefault(column, {})[name] = text
        columns.setdefault("score_metadata", {})[name] = score.get("metadata")
    return columns


def _known(value: object) -> Any:
    """A value with JSON for each list, at any depth of objects; null and NaN are left out."""
    if isinstance(value, Mapping):
        fields = {key: _known(inner) for key, inner in value.items()}
        return {key: inner for key, inner in fields.items() if inner is not None}
    if isinstance(value, list):
        return json.dumps(value)
    return None if isinstance(value, float) and math.isnan(value) else value


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
