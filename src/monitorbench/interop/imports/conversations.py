"""Requests and responses of an import, where the file has them: texts, or chats.

Promises: a chat is taken as `sources.chat` takes it or refused with line and field; a text that merely looks
like one stays a text; a sample without a text says so in its place, and is counted.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from monitorbench.interop.imports.columns import ImportedColumns
from monitorbench.interop.imports.readers.open import ImportedFiles
from monitorbench.interop.imports.samples import Keys
from monitorbench.interop.imports.unnest import is_list
from monitorbench.interop.imports.values import refuse, texts
from monitorbench.metrics.bootstrap import IntArray
from monitorbench.records import SAMPLE_SCHEMA, Message, Role, content_id
from monitorbench.sources.chat import from_cell, messages
from monitorbench.sources.read import BadRow

Chat = tuple[Message, ...]
_NO_REQUEST, _NO_RESPONSE = "[no request was imported]", "[no text was imported: {}]"
_quoted = json.encoder.encode_basestring
_AT_ONCE = 65_536


@dataclass(frozen=True)
class ConversationSide:
    """The requests, or the responses, of all samples: texts where all are, else chats."""

    plain: pa.Array
    """[samples]: strings, null where there is none; of chats their JSON."""
    chats: Sequence[Chat | None] | None

    @property
    def is_absent(self) -> bool:
        """Whether no sample has one."""
        return bool(self.plain.null_count == len(self.plain))


def read_side(read: ImportedFiles, columns: ImportedColumns, keys: Keys, role: str) -> ConversationSide:
    """`role` is `request` or `response`; of a trajectory the responses of its steps one after another."""
    n = len(keys.names)
    if role not in columns.names:
        return ConversationSide(pa.nulls(n, pa.string()), None)
    name, speaker = columns.names[role], Role.USER if role == "request" else Role.ASSISTANT
    nested = is_list(read.table.column(name).type)
    values = read.table.column(name).combine_chunks() if nested else texts(read, name)
    there = pc.is_valid(values).to_numpy(zero_copy_only=False)
    if role == "response" and keys.steps is not None:
        return _in_steps(read, values, keys, name, there)
    first = np.full(n, -1, dtype=np.int64)
    rows = np.flatnonzero(there)[::-1]
    first[keys.samples[rows]] = rows
    taken = values.take(pa.array(first, mask=first < 0))
    if not nested and not pc.any(pc.starts_with(taken, "[{")).as_py():
        return ConversationSide(taken, None)
    chats = [
        None if row < 0 else _chat(read, row, name, value, speaker)
        for row, value in zip(first.tolist(), taken.to_pylist(), strict=True)
    ]
    return _of_chats(chats)


def _in_steps(
    read: ImportedFiles, values: pa.Array, keys: Keys, name: str, there: np.ndarray
) -> ConversationSide:
    assert keys.steps is not None
    rows = np.flatnonzero(there)
    order = rows[np.lexsort((rows, keys.steps[rows], keys.samples[rows]))]
    samples, steps = keys.samples[order], keys.steps[order]
    begins = np.r_[True, (samples[1:] != samples[:-1]) | (steps[1:] != steps[:-1])][: len(order)]
    found: list[Chat | None] = [None] * len(keys.names)
    for row, sample in zip(order[begins].tolist(), samples[begins].tolist(), strict=True):
        step = _chat(read, row, name, values[row].as_py(), Role.ASSISTANT)
        found[sample] = (*(found[sample] or ()), *step)
    return _of_chats(found)


def _of_chats(chats: list[Chat | None]) -> ConversationSide:
    said = [
        None
        if chat is None
        else json.dumps([one.model_dump(mode="json") for one in chat], ensure_ascii=False)
        for chat in chats
    ]
    return ConversationSide(pa.array(said, pa.string()), chats)


def _chat(read: ImportedFiles, row: int, name: str, value: object, speaker: Role) -> Chat:
    if isinstance(value, str):
        value = from_cell(value)
    try:
        return messages(_without_nulls(value), name, speaker)
    except BadRow as error:
        refuse(read, row, name, str(error), "text, or a chat as a list of messages")
        raise AssertionError from error


def _without_nulls(value: object) -> object:
    """Arrow gives each object the fields of all: those that are null were not there."""
    if isinstance(value, dict):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_without_nulls(one) for one in value]
    return value


@dataclass(frozen=True)
class Conversations:
    """What some samples are about, in the form that a split is stored in; all [samples]."""

    ids: pa.Array
    requests: pa.Array
    responses: pa.Array


def stored(
    request: ConversationSide, response: ConversationSide, names: pa.Array, pairs: pa.Array, at: IntArray
) -> Conversations:
    """The samples at `at` with their ids, which hash request, response and pair (`records.content_id`)."""
    rows = pa.array(at)
    names, pairs = names.take(rows), pairs.take(rows)
    absent = pc.binary_join_element_wise(_NO_RESPONSE.split("{}")[0], names, "]", "")
    if request.chats is None and response.chats is None:
        asked = pc.fill_null(request.plain.take(rows), _NO_REQUEST)
        said = pc.coalesce(response.plain.take(rows), absent)
        return Conversations(
            _plain_ids(pairs, asked, said), _plain(asked, Role.USER), _plain(said, Role.ASSISTANT)
        )
    requests = _chats(request, at, [_NO_REQUEST] * len(at), Role.USER)
    responses = _chats(response, at, absent.to_pylist(), Role.ASSISTANT)
    ids = [content_id(*one) for one in zip(pairs.to_pylist(), requests, responses, strict=True)]
    return Conversations(
        pa.array(ids, pa.string()), _table(requests, "request"), _table(responses, "response")
    )


def _chats(side: ConversationSide, at: IntArray, absent: Sequence[str], speaker: Role) -> list[Chat]:
    chats = side.chats
    if chats is None:
        plain = side.plain.take(pa.array(at)).to_pylist()
        chats_here = [None if one is None else (Message(role=speaker, content=one),) for one in plain]
    else:
        chats_here = [chats[i] for i in at.tolist()]
    return [
        (Message(role=speaker, content=text),) if chat is None else chat
        for chat, text in zip(chats_here, absent, strict=True)
    ]


def _table(chats: Sequence[Chat], name: str) -> pa.Array:
    rows = [[message.model_dump(mode="json") for message in chat] for chat in chats]
    return pa.array(rows, SAMPLE_SCHEMA.field(name).type)


def _plain(contents: pa.Array, speaker: Role) -> pa.Array:
    """A list of one message for each text."""
    kind = SAMPLE_SCHEMA.field("request").type
    n = len(contents)
    empty = pa.array([""]).take(pa.array(np.zeros(n, dtype=np.int64)))
    role = pa.array([speaker.value]).take(pa.array(np.zeros(n, dtype=np.int64)))
    calls = pa.ListArray.from_arrays(
        pa.array(np.zeros(n + 1, dtype=np.int32)),
        pa.array([], kind.value_type.field("tool_calls").type.value_type),
    )
    fields = {
        "role": role,
        "content": contents,
        "thinking": empty,
        "tool_calls": calls,
        "tool_call_id": empty,
    }
    ordered = [fields[kind.value_type.field(i).name] for i in range(kind.value_type.num_fields)]
    messages_ = pa.StructArray.from_arrays(ordered, fields=list(kind.value_type))
    return pa.ListArray.from_arrays(pa.array(np.arange(n + 1, dtype=np.int32)), messages_)


def _plain_ids(pairs: pa.Array, requests: pa.Array, responses: pa.Array) -> pa.Array:
    """`records.content_id` of one message each, without a record for each."""
    rest = '"thinking":"","tool_call_id":"","tool_calls":[]}]'
    found: list[str] = []
    for start in range(0, len(pairs), _AT_ONCE):
        parts = (one.slice(start, _AT_ONCE).to_pylist() for one in (pairs, requests, responses))
        found += [
            hashlib.sha256(
                f'[{_quoted(pair)},[{{"content":{_quoted(asked)},"role":"user",{rest},'
                f'[{{"content":{_quoted(said)},"role":"assistant",{rest}]'.encode()
            ).hexdigest()[:16]
            for pair, asked, said in zip(*parts, strict=True)
        ]
    return pa.array(found, pa.string())
