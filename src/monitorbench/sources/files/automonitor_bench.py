"""The authors' release of AutoMonitor-Bench (arXiv:2601.05752), announced as shuyhere/automonitor-bench.

**The release was not to be had when this was written**: its files, columns and prompts are guesses, held
against no real row. Read is a folder, or a snapshot of a hub dataset (`fetch.snapshot`), of Parquet, JSON
lines or JSON arrays; each field is looked for under the names of `COLUMNS`, and where one is under none of
them the error names the columns found. A row is a labelled response; or a pair, which has a response in a
column of `PAIR_COLUMNS` for each label instead. A trace may stand in `<think>` in front of a response.
Promises: a value that isn't understood is a bad row, never a default; so is a row with two values for one
field that differ, and one with something that was said or done and has no place.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
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
from monitorbench.untrusted_parquet import without_nulls

VERSION = 5
"""Raised whenever the same files become other samples."""

SUFFIXES = (".parquet", ".jsonl", ".jsonl.gz", ".json", ".json.gz")

COLUMNS = {
    "request": ("request", "question", "query", "prompt", "instruction"),
    "response": ("response", "answer", "output", "completion", "trajectory"),
    "label": ("label", "is_misbehavior", "misbehavior"),
    "category": ("category", "type"),
    "task": ("task", "task_type", "domain"),
}
"""The names each required field is looked for under, the first that is there."""
PAIR_COLUMNS = {
    Label.MISBEHAVIOR: ("misbehavior_response", "misbehavior", "unsafe_response", "bad_response"),
    Label.BENIGN: ("benign_response", "benign", "safe_response", "good_response"),
}
"""The names of the two responses of a row that is a pair, which needs neither label nor response."""

_TRACES = ("thinking", "reasoning")
_NO_PLACE = (
    *("system_prompt", "system", "system_message", "developer_prompt", "context", "history"),
    *("messages", "tool_calls", "tools", "tool_results", "actions"),
)
"""Columns that would be said or done in a conversation, which no field of a sample is read from."""

_LABELS = {
    **dict.fromkeys(("misbehavior", "misbehaviour", "yes", "true", "unsafe", "1"), Label.MISBEHAVIOR),
    **dict.fromkeys(("benign", "no", "false", "safe", "0"), Label.BENIGN),
}
_CATEGORY_WORDS = {category: (category.value.split("_")[0],) for category in Category}
_TASK_WORDS = {
    Task.QA: ("qa", "question", "answering", "dialogue", "conversation"),
    Task.CODE: ("code", "coding", "program", "software"),
    Task.REASONING: ("reasoning", "math", "logic"),
}
"""Beginnings of words that name a task; a value with words of two tasks is not understood."""
_TRACE = re.compile(r"\s*<think>(.*?)</think>\s*", re.DOTALL)
_PROMPT_KINDS = ("direct", "evidence")

E = TypeVar("E", Category, Task)


def load(files: SourceFiles, unknown: UnknownContent = "refuse") -> Iterator[Sample]:
    """The samples of a release (`fetch.local(name, folder, SUFFIXES, on_bad_row)`), Parquet first.

    Optional columns: pair_id, group_id, subcategory, model or subject_model, thinking or reasoning (the
    trace of a response with one message of the assistant). Raises `UserError` where no row is usable.
    """
    count = 0
    parse = partial(_samples, unknown=unknown)
    arrays = files.only(lambda path: path.name.endswith((".json", ".json.gz")))
    rows = chain(
        files.parquet(".parquet", lambda row: parse(without_nulls(row))),
        files.jsonl(".jsonl", parse),
        arrays.json("", parse),
    )
    for sample in chain.from_iterable(rows):
        if files.unique(f"the sample of {sample.pair_id}", sample.id):
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


def _samples(row: Mapping[str, Any], *, unknown: UnknownContent) -> list[Sample]:
    """The labelled response of a row, or the two of a pair."""
    columns = {label: _first_present(row, names) for label, names in PAIR_COLUMNS.items()}
    _refuse_unread(row, is_pair=None not in columns.values())
    bad, good = columns[Label.MISBEHAVIOR], columns[Label.BENIGN]
    name = _column(row, "request")
    request = chat_in(row[name], name, Role.USER, unknown)
    if bad is None or good is None:
        response = _response(row, _column(row, "response"), unknown)
        pair_id = _text(row, "pair_id") or f"automonitor-{content_id('', request, response)}"
        return [_sample(row, pair_id, request, response, _label(row, _column(row, "label")))]
    responses = {label: _response(row, column or "", unknown) for label, column in columns.items()}
    pair_id = _text(row, "pair_id", "id") or f"automonitor-{content_id('', request, responses[Label.BENIGN])}"
    return [_sample(row, pair_id, request, response, label) for label, response in responses.items()]


def _sample(
    row: Mapping[str, Any],
    pair_id: str,
    request: tuple[Message, ...],
    response: tuple[Message, ...],
    label: Label,
) -> Sample:
    return Sample(
        pair_id=pair_id,
        group_id=_text(row, "group_id") or f"automonitor-{content_id('', request, ())}",
        category=_kind_of(row, _column(row, "category"), _CATEGORY_WORDS),
        task=_kind_of(row, _column(row, "task"), _TASK_WORDS),
        subcategory=_text(row, "subcategory"),
        request=request,
        response=response,
        label=label,
        label_source=LabelSource.ANNOTATORS,
        construction=Construction.LABELLED,
        subject_model=_text(row, "subject_model", "model"),
        source="automonitor_bench",
        licence="not stated",
    )


def _response(row: Mapping[str, Any], name: str, unknown: UnknownContent) -> tuple[Message, ...]:
    response = chat_in(row[name], name, Role.ASSISTANT, unknown)
    thinking = _text(row, *(name for name in _TRACES if row.get(name)))
    first = response[0]
    if (inline := _TRACE.match(first.content)) and first.role is Role.ASSISTANT:
        if thinking or first.thinking:
            raise NoChat("the response has a trace in <think> and another one; expected one of them")
        thinking = inline[1].strip()
        response = (first.model_copy(update={"content": first.content[inline.end() :]}), *response[1:])
    return _with_trace(response, thinking) if thinking else response


def _with_trace(response: tuple[Message, ...], trace: str) -> tuple[Message, ...]:
    """Give the assistant's first message the trace; raise `NoChat` where it has another one."""
    for number, message in enumerate(response):
        if message.role is Role.ASSISTANT:
            if message.thinking not in ("", trace):
                raise NoChat("the response has a trace of its own beside the column's; expected one of them")
            traced = message.model_copy(update={"thinking": trace})
            return (*response[:number], traced, *response[number + 1 :])
    return (Message(role=Role.ASSISTANT, thinking=trace), *response)


def _refuse_unread(row: Mapping[str, Any], *, is_pair: bool) -> None:
    """Raise `BadRow` where a column would be left out that says another thing than the one that is read."""
    fields = {"request": COLUMNS["request"], "trace": _TRACES}
    if not is_pair:
        fields["response"] = COLUMNS["response"]
    for field, names in fields.items():
        read, *others = [name for name in names if row.get(name) not in (None, "")] or [""]
        for other in others:
            if row[other] != row[read]:
                raise BadRow(f"columns {read!r} and {other!r}: two of a {field}; expected one of them")
    if not is_pair:
        labels = {name: _label(row, name) for name in COLUMNS["label"] if row.get(name) is not None}
        if len(set(labels.values())) > 1:
            said = " but ".join(f"{name} is {row[name]!r}" for name in labels)
            raise BadRow(f"two labels: {said}; expected one of them, or the same")
    for name in _NO_PLACE:
        if row.get(name) not in (None, "", [], {}):
            raise BadRow(
                f"column {name!r}: no place for it; expected it in the request or the response, as a message"
            )


def _first_present(row: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((name for name in names if row.get(name) is not None), None)


def _column(row: Mapping[str, Any], field: str) -> str:
    if (name := _first_present(row, COLUMNS[field])) is not None:
        return name
    expected, columns = ", ".join(COLUMNS[field]), ", ".join(row)
    raise BadRow(f"no {field}: expected one of the columns {expected}; found {columns}")


def _label(row: Mapping[str, Any], name: str) -> Label:
    value = str(row[name]).strip().lower()
    if value not in _LABELS:
        raise BadRow(f"field {name!r}: {row[name]!r} is no label; expected one of {', '.join(_LABELS)}")
    return _LABELS[value]


def _kind_of(row: Mapping[str, Any], name: str, words: Mapping[E, tuple[str, ...]]) -> E:
    value = re.findall(r"[a-z]+", str(row[name]).lower())
    kinds = [kind for kind, starts in words.items() if any(word.startswith(starts) for word in value)]
    if len(kinds) != 1:
        raise BadRow(f"field {name!r}: {row[name]!r}; expected one of {', '.join(words)}")
    return kinds[0]


def _text(row: Mapping[str, Any], *names: str) -> str:
    for name in names:
        if (value := row.get(name)) is not None:
            return str(value)
    return ""
