"""The authors' release of AutoMonitor-Bench (arXiv:2601.05752), announced as shuyhere/automonitor-bench.

**The release was not to be had when this was written**: its files, columns and prompts are guesses, held
against no real row. Read is a folder, or a snapshot of a hub dataset (`fetch.snapshot`), of Parquet or
JSON lines; each field is looked for under the names of `COLUMNS`, and where one is under none of them the
error names the columns found. Promises: a value that isn't understood is a bad row, never a default.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from monitorbench.config.base import UserError
from monitorbench.conversations.chats import chat_in
from monitorbench.conversations.read import NoChat, UnknownContent
from monitorbench.records import (
    Category,
    Construction,
    Label,
    LabelSource,
    Message,
    Role,
    Sample,
    Task,
    content_id,
)
from monitorbench.sources.read import BadRow, SourceFiles
from monitorbench.untrusted import document
from monitorbench.untrusted_rows import without_nulls

VERSION = 2
"""Raised whenever the same files become other samples."""

SUFFIXES = (".parquet", ".jsonl", ".jsonl.gz")

COLUMNS = {
    "request": ("request", "question", "query", "prompt", "instruction"),
    "response": ("response", "answer", "output", "completion", "trajectory"),
    "label": ("label", "is_misbehavior", "misbehavior"),
    "category": ("category", "type"),
    "task": ("task", "task_type", "domain"),
}
"""The names each required field is looked for under, the first that is there."""

_LABELS = {
    **dict.fromkeys(("misbehavior", "misbehaviour", "yes", "true", "unsafe", "1"), Label.MISBEHAVIOR),
    **dict.fromkeys(("benign", "no", "false", "safe", "0"), Label.BENIGN),
}
_PROMPT_KINDS = ("direct", "evidence")

E = TypeVar("E", Category, Task)


def load(files: SourceFiles, unknown: UnknownContent = "refuse") -> Iterator[Sample]:
    """The samples of a release (`fetch.local(name, folder, SUFFIXES, on_bad_row)`), Parquet first.

    Optional columns: pair_id, group_id, subcategory, model or subject_model, thinking or reasoning (the
    trace of a response with one message of the assistant). Raises `UserError` where no row is usable.
    """
    count = 0
    parse = partial(_sample, unknown=unknown)
    for sample in chain(
        files.parquet(".parquet", lambda row: parse(without_nulls(row))), files.jsonl(".jsonl", parse)
    ):
        count += 1
        yield sample
    if not count:
        raise UserError(f"{files.name}: no usable row in {len(files.matching())} file(s); set dataset.path")


def prompts(folder: Path) -> dict[str, str]:
    """The authors' prompts by kind (`direct`, `evidence`): texts of `folder/prompts/`, as far as there.

    Raises `UserError` where two files are named for one kind.
    """
    by_kind: dict[str, str] = {}
    for path in sorted((folder / "prompts").glob("*")):
        kind = next((kind for kind in _PROMPT_KINDS if path.name.lower().startswith(kind)), None)
        if kind is None or not path.is_file():
            continue
        if kind in by_kind:
            raise UserError(f"automonitor_bench: {path.parent}: two prompts named {kind}; keep one")
        try:
            by_kind[kind] = document(path).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UserError(f"automonitor_bench: {path}: not UTF-8; save it as UTF-8") from error
    return by_kind


def _sample(row: Mapping[str, Any], *, unknown: UnknownContent) -> Sample:
    names = {field: _column(row, field) for field in COLUMNS}
    request = chat_in(row[names["request"]], names["request"], Role.USER, unknown)
    response = chat_in(row[names["response"]], names["response"], Role.ASSISTANT, unknown)
    if thinking := _text(row, "thinking", "reasoning"):
        response = _with_trace(response, thinking)
    return Sample(
        pair_id=_text(row, "pair_id") or f"automonitor-{content_id('', request, response)}",
        group_id=_text(row, "group_id") or f"automonitor-{content_id('', request, ())}",
        category=_starting(row, names["category"], Category),
        task=_starting(row, names["task"], Task),
        subcategory=_text(row, "subcategory"),
        request=request,
        response=response,
        label=_label(row, names["label"]),
        label_source=LabelSource.ANNOTATORS,
        construction=Construction.LABELLED,
        subject_model=_text(row, "subject_model", "model"),
        source="automonitor_bench",
        licence="not stated",
    )


def _with_trace(response: tuple[Message, ...], trace: str) -> tuple[Message, ...]:
    """Give the assistant's first message the trace; raise `NoChat` where it has another one."""
    for number, message in enumerate(response):
        if message.role is Role.ASSISTANT:
            if message.thinking not in ("", trace):
                raise NoChat("the response has a trace of its own beside the column's; expected one of them")
            traced = message.model_copy(update={"thinking": trace})
            return (*response[:number], traced, *response[number + 1 :])
    return (Message(role=Role.ASSISTANT, thinking=trace), *response)


def _column(row: Mapping[str, Any], field: str) -> str:
    for name in COLUMNS[field]:
        if row.get(name) is not None:
            return name
    expected, columns = ", ".join(COLUMNS[field]), ", ".join(row)
    raise BadRow(f"no {field}: expected one of the columns {expected}; found {columns}")


def _label(row: Mapping[str, Any], name: str) -> Label:
    value = str(row[name]).strip().lower()
    if value not in _LABELS:
        raise BadRow(f"field {name!r}: {row[name]!r} is no label; expected one of {', '.join(_LABELS)}")
    return _LABELS[value]


def _starting(row: Mapping[str, Any], name: str, kind: type[E]) -> E:
    value = str(row[name]).strip().lower()
    for member in kind:
        if value.startswith(member.value.split("_")[0]):
            return member
    raise BadRow(f"field {name!r}: {row[name]!r}; expected one of {', '.join(kind)}")


def _text(row: Mapping[str, Any], *names: str) -> str:
    for name in names:
        if (value := row.get(name)) is not None:
            return str(value)
    return ""
