"""A team's own labelled data: JSON lines, or CSV, in the schema of `docs/data-formats.md`, to samples.

Promises: a row is taken as it stands or named with file, line and field; nothing is guessed about a label, an
unknown field is refused, and the same judged text never comes twice or with both labels.
"""

import json
import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from monitorbench.cells import wrong_name
from monitorbench.config.base import UserError
from monitorbench.conversations.chats import chat_in, count_unread_chats
from monitorbench.conversations.read import UnknownContent
from monitorbench.records import (
    Category,
    Construction,
    Label,
    LabelSource,
    Message,
    QuoteField,
    Role,
    Sample,
    Span,
    Split,
    Task,
)
from monitorbench.sources.read import BadRow, SourceFiles, encodable, short_hash
from monitorbench.untrusted import DELIMITED
from monitorbench.untrusted_csv import header

VERSION = 5
"""Raised whenever the same files become other samples."""

_log = logging.getLogger(__name__)

SUFFIXES = (".jsonl", ".jsonl.gz", *DELIMITED)
REQUIRED = ("request", "response", "label", "category", "task")
OPTIONAL = (
    "id",
    "pair_id",
    "group_id",
    "subcategory",
    "label_source",
    "cue",
    "stratum",
    "subject_model",
    "source",
    "licence",
    "split",
    "gold_spans",
)

E = TypeVar("E", bound=StrEnum)


def load(files: SourceFiles, unknown: UnknownContent = "refuse") -> Iterator[Sample]:
    """The samples of a team's files (`fetch.local(name, path, SUFFIXES, on_bad_row)`), in their order.

    Raises `UserError` for a table whose columns are not the schema's, for a bad row where `on_bad_row` is
    `error`, and where no row is usable at all.
    """
    _check_encoding(files)
    rows = _Rows(unknown)
    count = 0
    tables = files.only(lambda path: path.name.lower().endswith(DELIMITED))
    lines = files.only(lambda path: not path.name.lower().endswith(DELIMITED))
    for table in tables.matching():
        _check_columns(files.name, table.path)
    for sample in chain(lines.jsonl("", rows.sample), tables.csv("", rows.cells)):
        count += 1
        yield sample
    if rows.n_doubtful:
        _log.warning(
            "%s: %d texts look like chats and are taken as text; expected JSON as in docs/data-formats.md",
            files.name,
            rows.n_doubtful,
        )
    if not count:
        names = ", ".join(file.path.name for file in files.matching())
        reasons = ", ".join(f"{reason} ({n})" for reason, n in files.bad_rows.most_common(3))
        passed_over = f" (passed over: {reasons})" if reasons else ""
        raise UserError(
            f"{files.name}: {names}: no usable row{passed_over}; expected one JSON object a line, or a row "
            "of a CSV below its header"
        )


class _Rows:
    """Reader of rows that checks each against earlier rows of the same text and the same pair."""

    def __init__(self, unknown: UnknownContent) -> None:
        self._unknown = unknown
        self.n_doubtful = 0
        """How many texts look like chats and are taken as they stand."""
        self._ids: set[str] = set()
        self._labels: dict[str, Label] = {}
        self._of_texts: dict[str, Label] = {}
        self._pairs: defaultdict[str, dict[Label, str]] = defaultdict(dict)

    def cells(self, row: Mapping[str, Any]) -> Sample:
        """A row of a table: empty cells are not there."""
        if None in (*row, *row.values()):  # csv.DictReader's, for a name or a value that is missing
            raise BadRow("not as many values as the header has names")
        return self.sample({name.strip(): value for name, value in row.items() if value != ""})

    def sample(self, row: Mapping[str, Any]) -> Sample:
        """A row of JSON lines."""
        sample, id_ = _sample(row, self._unknown), _text(row, "id")
        self.n_doubtful += count_unread_chats((*sample.request, *sample.response))
        if id_ in self._ids:
            raise BadRow(f"field 'id': an earlier line is {id_[:80]!r} already")
        unpaired = not _text(row, "pair_id")
        if sample.id in self._labels:
            same = self._labels[sample.id] is sample.label
            raise BadRow(
                f"an earlier line has the same texts and {'the same' if same else 'the other'} label"
                + ("; where both are meant, give each an id" if same and unpaired else "")
            )
        if unpaired:
            # Rows with ids of their own may have the same texts, but not deny each other's label.
            texts = _hash(sample.request, sample.response)
            if self._of_texts.setdefault(texts, sample.label) is not sample.label:
                raise BadRow("an earlier line has the same texts and the other label")
        if not unpaired:
            of_pair = self._pairs[sample.pair_id]
            if sample.label in of_pair:
                raise BadRow(
                    f"field 'pair_id': {sample.pair_id!r} has a {sample.label} sample already; "
                    "a pair is one misbehavior and one benign"
                )
            if of_pair and sample.group_id not in of_pair.values():
                raise BadRow(f"field 'group_id': not the one of its counterpart in pair {sample.pair_id!r}")
            of_pair[sample.label] = sample.group_id
        self._labels[sample.id] = sample.label
        self._ids |= {id_} - {""}
        return sample


def _sample(row: Mapping[str, Any], unknown: UnknownContent) -> Sample:
    for name in row:
        if name not in REQUIRED and name not in OPTIONAL:
            raise BadRow(f"unknown field {name!r}; expected {', '.join((*REQUIRED, *OPTIONAL))}")
    for name in REQUIRED:
        if name not in row:
            raise BadRow(f"missing field {name!r}")
    request = chat_in(row["request"], "request", Role.USER, unknown)
    response = chat_in(row["response"], "response", Role.ASSISTANT, unknown)
    return Sample(
        pair_id=_text(row, "pair_id") or _of_its_own(_text(row, "id"), request, response),
        group_id=_text(row, "group_id") or f"request-{_hash(request)}",
        category=_name(row, "category", Category),
        task=_name(row, "task", Task),
        subcategory=_text(row, "subcategory"),
        request=request,
        response=response,
        label=_one_of(row, "label", Label),
        label_source=_one_of(row, "label_source", LabelSource, LabelSource.ANNOTATORS),
        construction=Construction.LABELLED,
        cue=_text(row, "cue"),
        stratum=_text(row, "stratum"),
        subject_model=_text(row, "subject_model"),
        gold_spans=_spans(row.get("gold_spans"), response),
        source=_text(row, "source") or "team",
        licence=_text(row, "licence") or "not stated",
        split=_one_of(row, "split", Split) if row.get("split") is not None else None,
        own_id=_text(row, "id"),
    )


def _of_its_own(id_: str, request: tuple[Message, ...], response: tuple[Message, ...]) -> str:
    """The pair of a row without a counterpart: its own id's, or its content's."""
    return f"row-{short_hash(id_)}" if id_ else f"single-{_hash(request, response)}"


def _one_of(row: Mapping[str, Any], field: str, kind: type[E], default: E | None = None) -> E:
    value = row.get(field)
    if value is None and default is not None:
        return default
    if not isinstance(value, str) or value not in set(kind):
        *most, last = kind
        expected = f"{', '.join(most)} or {last}"
        raise BadRow(f"field {field!r}: {value!r} is no {field.replace('_', ' ')}; expected {expected}")
    return kind(value)


def _name(row: Mapping[str, Any], field: str, kind: type[StrEnum]) -> str:
    """One of the paper's names, or one of the team's own."""
    value = row.get(field)
    if not isinstance(value, str):
        raise BadRow(
            f"field {field!r}: {value!r} is not text; expected {', '.join(kind)}, or a name of your own"
        )
    if reason := wrong_name(value):
        raise BadRow(f"field {field!r}: {reason}")
    return value


def _text(row: Mapping[str, Any], field: str) -> str:
    """A name in the row, without blanks around it; empty where there is none."""
    value = row.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadRow(f"field {field!r}: {value!r} is not text")
    return encodable(value, f"field {field!r}").strip()


def _spans(value: object, response: tuple[Message, ...]) -> tuple[Span, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise BadRow("field 'gold_spans': expected a list of objects with message, start and end")
    return tuple(_span(item, f"field 'gold_spans' entry {n}", response) for n, item in enumerate(value))


def _span(item: object, where: str, response: tuple[Message, ...]) -> Span:
    required = {"message", "start", "end"}
    if not isinstance(item, Mapping) or not required <= set(item) <= required | {"field", "call"}:
        raise BadRow(f"{where}: expected an object with message, start, end, and perhaps field and call")
    message, call, start, end = item["message"], item.get("call", 0), item["start"], item["end"]
    if not all(isinstance(n, int) and not isinstance(n, bool) for n in (message, call, start, end)):
        raise BadRow(f"{where}: message, call, start and end are whole numbers")
    if not 0 <= message < len(response):
        raise BadRow(f"{where}: the response has no message {message}")
    field = _one_of(item, "field", QuoteField, QuoteField.CONTENT)
    if field is QuoteField.TOOL_CALL and not 0 <= call < len(response[message].tool_calls):
        raise BadRow(f"{where}: message {message} has no tool call {call}")
    length = len(response[message].text(field, call))
    if not 0 <= start < end <= length:
        raise BadRow(f"{where}: [{start}, {end}) is no part of a {field} of {length} characters")
    return Span(message=message, field=field, call=call, start=start, end=end)


def _hash(*parts: tuple[Message, ...]) -> str:
    text = json.dumps([[m.model_dump(mode="json") for m in turns] for turns in parts], ensure_ascii=False)
    return short_hash(text)


def _check_columns(name: str, table: Path) -> None:
    """Raise `UserError` where a table lacks a column that each row needs, or has one that no row may have."""
    present = header(table)
    missing = [column for column in REQUIRED if column not in present]
    unknown = [column for column in present if column not in REQUIRED + OPTIONAL]
    if not missing and not unknown:
        return
    faults = [f"missing {', '.join(missing)}"] if missing else []
    faults += [f"unknown {', '.join(map(repr, unknown[:20]))}"] if unknown else []
    raise UserError(
        f"{name}: {table}: columns {' and '.join(faults)}; rename, add or delete columns in the file: "
        f"expected {', '.join(REQUIRED)}, and where needed {', '.join(OPTIONAL)}"
    )


def _check_encoding(files: SourceFiles) -> None:
    for file in files.matching():
        with files.opened(file) as stream:
            if stream.read(2) in (b"\xff\xfe", b"\xfe\xff"):
                raise UserError(f"{files.name}: {file.path} is UTF-16; save it as UTF-8")
