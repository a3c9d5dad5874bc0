"""Logs of Inspect AI (and of control-arena, which runs on it) to samples; inspect-ai itself is not needed.

Owns what a logged sample means: the messages up to the model's first own turn are the request, the rest is
the response. Promises: a label is in the CSV or in the score's listed values, or there is none; a sample
without one is an error or a counted skip, never benign.
Format: https://inspect.aisi.org.uk/eval-logs.html and `inspect_ai.log.EvalSample` (log versions 1 and 2).
"""

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.records import (
    Construction,
    Label,
    LabelSource,
    Message,
    Role,
    Sample,
    ToolCall,
)
from monitorbench.sources.chat import encodable
from monitorbench.sources.files.inspect_archive import Logged, logged_samples
from monitorbench.sources.read import BadRow, SourceFiles

VERSION = 1
"""Raised whenever the same files become other samples."""

SUFFIXES = (".eval", ".json")

_ATTACHMENT = "attachment://"


class _Labelled(NamedTuple):
    label: Label
    by: LabelSource


Labeller = Callable[[Logged], _Labelled]


def load(
    files: SourceFiles,
    *,
    labels: Path | None,
    score: str,
    misbehavior_values: Sequence[str],
    benign_values: Sequence[str],
    category: str,
    task: str,
) -> Iterator[Sample]:
    """The samples of logs (`fetch.local(name, path, SUFFIXES, on_bad_row)`), in the logs' order.

    The label is looked up in the CSV `labels` (columns id or sample_id, label; epoch and log where needed),
    or it is the value of the scorer `score` (`name`, or `name.key` of a value that is an object): in
    `misbehavior_values` or in `benign_values`. `group_id` is the task and the sample id, so that epochs and
    models of one question stay together; every sample is a pair of its own.

    Raises `UserError` for a log that can't be read, for a bad sample where `on_bad_row` is `error`, where
    not exactly one of `labels` and `score` is given, and where no sample is usable.
    """
    if (labels is None) == (not score):
        raise UserError(
            f"{files.name}: set one of dataset.labels (a CSV) and dataset.score (a scorer's name)"
        )
    if labels is not None:
        label_of = _from_csv(files.name, labels)
    else:
        label_of = _from_score(files.name, score, misbehavior_values, benign_values)
    count = 0
    for logged in logged_samples(files):
        try:
            sample = _sample(logged, label_of(logged), category, task)
        except BadRow as error:
            files.bad(logged.where, str(error))
            continue
        if files.unique(logged.where, sample.id):
            count += 1
            yield sample
    if not count:
        raise UserError(f"{files.name}: no usable sample in {len(files.matching())} log(s)")


def _sample(logged: Logged, labelled: _Labelled, category: str, task: str) -> Sample:
    said, own = messages(logged.row)
    if not said or not own:
        raise BadRow("no message before the model's first turn" if own else "the model never took a turn")
    output = logged.row.get("output")
    answered_by = output.get("model") if isinstance(output, Mapping) else ""
    return Sample(
        pair_id=f"{logged.run}-{logged.id}-{logged.epoch}",
        group_id=f"{logged.task}-{logged.id}",
        category=category,
        task=task,
        subcategory=logged.task,
        request=said,
        response=own,
        label=labelled.label,
        label_source=labelled.by,
        construction=Construction.LABELLED,
        subject_model=logged.model or str(answered_by or ""),
        source="inspect_log",
        licence="not stated",
    )


# --- messages ------------------------------------------------------------------------------------------


def messages(row: Mapping[str, Any]) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """The messages before the model's first own turn, and those from it on.

    Assistant turns that came with the sample's input (few-shot examples) are no turns of the model.
    Raises `BadRow` for what is no list of chat messages, or an attachment that is not in the log.
    """
    rows = row.get("messages")
    if not isinstance(rows, list):
        raise BadRow("missing field 'messages'")
    kept = row.get("attachments")
    attachments = kept if isinstance(kept, Mapping) else {}
    found = [_message(item, f"message {n}", attachments) for n, item in enumerate(rows)]
    own = [
        message.role is Role.ASSISTANT and item.get("source") != "input"
        for message, item in zip(found, rows, strict=True)
    ]
    start = own.index(True) if True in own else len(found)
    return tuple(found[:start]), tuple(found[start:])


def _message(item: object, where: str, attachments: Mapping[str, Any]) -> Message:
    if not isinstance(item, Mapping) or item.get("role") not in set(Role):
        raise BadRow(f"{where}: not a chat message with one of the roles {', '.join(Role)}")

    def resolved(value: object) -> str:
        text = value if isinstance(value, str) else ""
        if text.startswith(_ATTACHMENT):
            if text.removeprefix(_ATTACHMENT) not in attachments:
                raise BadRow(f"{where}: attachment {text.removeprefix(_ATTACHMENT)[:8]}… is not in the log")
            text = str(attachments[text.removeprefix(_ATTACHMENT)])
        return encodable(text, where)

    content, thinking = item.get("content") or "", [resolved(item.get("reasoning"))]
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    said = []
    for part in parts:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "text":
            said.append(resolved(part.get("text")))
        elif kind == "reasoning":
            hidden = part.get("redacted")
            thinking.append(resolved(part.get("summary") if hidden else part.get("reasoning")))
        else:
            said.append(encodable(f"[{kind or 'unknown content'}]", where))
    if isinstance(error := item.get("error"), Mapping):
        kind = encodable(str(error.get("type", "unknown")), where)
        said.append(f"Error ({kind}): {resolved(error.get('message'))}")
    calls = item.get("tool_calls") or []
    if not isinstance(calls, list):
        raise BadRow(f"{where}: 'tool_calls' is no list")
    call_id = item.get("tool_call_id")
    return Message(
        role=Role(item["role"]),
        content="\n".join(filter(None, said)),
        thinking="\n".join(filter(None, thinking)),
        tool_calls=tuple(_tool_call(call, where, resolved) for call in calls),
        tool_call_id=encodable(call_id, where) if isinstance(call_id, str) else "",
    )


def _tool_call(call: object, where: str, resolved: Callable[[object], str]) -> ToolCall:
    if not isinstance(call, Mapping) or not isinstance(call.get("function"), str):
        raise BadRow(f"{where}: a tool call without a function's name")
    arguments = call.get("arguments")
    if isinstance(arguments, Mapping):
        whole = {
            key: resolved(value) if isinstance(value, str) else value for key, value in arguments.items()
        }
        arguments = json.dumps(whole, ensure_ascii=False)
    id_, name = (encodable(str(call.get(key) or ""), where) for key in ("id", "function"))
    return ToolCall(id=id_, name=name, arguments=resolved(arguments))


# --- labels --------------------------------------------------------------------------------------------


class _Line(NamedTuple):
    number: int
    id: str
    epoch: str
    log: str
    label: Label

    def fits(self, logged: Logged) -> bool:
        return self.epoch in ("", str(logged.epoch)) and self.log in ("", logged.log)


def _from_csv(name: str, path: Path) -> Labeller:
    lines: dict[str, list[_Line]] = {}
    for line in _read_csv(name, path):
        lines.setdefault(line.id, []).append(line)
    used: Counter[int] = Counter()

    def label_of(logged: Logged) -> _Labelled:
        fitting = [line for line in lines.get(str(logged.id), []) if line.fits(logged)]
        if not fitting:
            raise BadRow(f"no label: {path.name} has no line for sample {logged.id}, epoch {logged.epoch}")
        if len(fitting) > 1:
            numbers = " and ".join(str(line.number) for line in fitting)
            raise BadRow(f"two labels: lines {numbers} of {path.name} both fit")
        used[fitting[0].number] += 1
        if used[fitting[0].number] > 1:
            raise BadRow(
                f"no label of its own: line {fitting[0].number} of {path.name} fits another sample too; "
                "add the columns epoch and log"
            )
        return _Labelled(fitting[0].label, LabelSource.ANNOTATORS)

    return label_of


def _read_csv(name: str, path: Path) -> Iterator[_Line]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            columns = reader.fieldnames or []
            id_column = next((column for column in ("id", "sample_id") if column in columns), None)
            if id_column is None or "label" not in columns:
                raise UserError(
                    f"{name}: {path}: expected the columns id (or sample_id), label and where needed epoch "
                    f"and log; found {', '.join(columns) or 'none'}"
                )
            if twice := [column for column, times in Counter(columns).items() if times > 1]:
                raise UserError(f"{name}: {path}: column {twice[0]!r} twice; remove the wrong one")
            for row in reader:
                value = (row["label"] or "").strip()
                if value not in set(Label):
                    raise UserError(
                        f"{name}: {path.name} line {reader.line_num}: field 'label': {value!r} is no label; "
                        "expected misbehavior or benign"
                    )
                id_, epoch, log = ((row.get(c) or "").strip() for c in (id_column, "epoch", "log"))
                yield _Line(reader.line_num, id_, epoch, log, Label(value))
    except OSError as error:
        raise UserError(f"{name}: dataset.labels={path}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{name}: {path}: no CSV in UTF-8 ({error})") from error


def _from_score(name: str, score: str, misbehavior: Sequence[str], benign: Sequence[str]) -> Labeller:
    if not misbehavior or not benign or set(misbehavior) & set(benign):
        raise UserError(
            f"{name}: dataset.misbehavior_values and dataset.benign_values: expected a value in each, "
            "and none in both"
        )

    def label_of(logged: Logged) -> _Labelled:
        value = _shown(_score(logged.row, score))
        if value in misbehavior:
            return _Labelled(Label.MISBEHAVIOR, LabelSource.JUDGE)
        if value in benign:
            return _Labelled(Label.BENIGN, LabelSource.JUDGE)
        raise BadRow(
            f"no label: score {score!r} is {value!r}; neither in misbehavior_values nor in benign_values"
        )

    return label_of


def _score(row: Mapping[str, Any], score: str) -> object:
    scores = row.get("scores")
    values = {
        name: entry.get("value")
        for name, entry in (scores.items() if isinstance(scores, Mapping) else ())
        if isinstance(entry, Mapping)
    }
    whole, _, key = score.rpartition(".")
    if score in values:
        return values[score]
    if isinstance(parts := values.get(whole), Mapping) and key in parts:
        return parts[key]
    raise BadRow(f"no label: the sample has no score {score!r}; found {', '.join(values) or 'none'}")


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, int | float) else str(value)
