"""Requests and responses of an import, where the file has them: texts, or chats.

Promises: a chat is read whole or refused with line and field; a text that merely looks like one stays a text,
and is counted; a sample without a text says so in its place, and is counted. Rows of one sample that have
different texts are refused.
"""

import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from monitorbench.config.imports import Import
from monitorbench.conversations.chats import MAY_BE_A_CHAT, chat_in, count_unread_chats
from monitorbench.conversations.read import NoChat, UnknownContent
from monitorbench.corpus.store import SAMPLE_SCHEMA
from monitorbench.interop.imports.columns import ImportedColumns
from monitorbench.interop.imports.keys import Keys, first_rows
from monitorbench.interop.imports.readers.open import ImportedFiles
from monitorbench.interop.imports.values import hashes, refuse, texts
from monitorbench.metrics.bootstrap import IntArray
from monitorbench.records import Message, Role, Sample, content_id

Chat = tuple[Message, ...]
_log = logging.getLogger(__name__)
_NO_REQUEST, _NO_RESPONSE = "[no request was imported]", "[no text was imported: {}]"
_AT_ONCE = 65_536


def lack_texts(samples: Iterable[Sample]) -> bool:
    """Whether no response among these samples has a text: they were imported for their scores."""
    start = _NO_RESPONSE.partition("{")[0]
    return all(sample.response[-1].content.startswith(start) for sample in samples)


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


def read_side(
    read: ImportedFiles, columns: ImportedColumns, keys: Keys, role: str, settings: Import
) -> ConversationSide:
    """`role` is `request` or `response`; of a trajectory the responses of its steps one after another.

    Raises `UserError` for a chat that can't be read, and where two rows of a sample, or of a step, have
    different texts. With `import.draws=max` one response may be the beginning of another.
    """
    n = len(keys.names)
    if role not in columns.names:
        return ConversationSide(pa.nulls(n, pa.string()), None)
    speaker = Role.USER if role == "request" else Role.ASSISTANT
    cells = _Cells(read, columns.names[role], speaker, settings.unknown_content)
    is_present = pc.is_valid(cells.values).to_numpy(zero_copy_only=False)
    may_be_pieces = role == "response" and settings.draws == "max"
    if len(keys.names) < len(cells.values):
        _refuse_other_texts(cells, keys, role, may_be_pieces=may_be_pieces)
    if role == "response" and keys.steps is not None:
        return _of_chats(_in_steps(cells, keys, is_present))
    first = first_rows(keys.samples, is_present, n)
    values = cells.values.take(pa.array(first, mask=first < 0))
    if not pc.any(pc.match_substring_regex(values, MAY_BE_A_CHAT)).as_py():
        return ConversationSide(values, None)
    return _of_chats(cells.chats(first.tolist()))


def _refuse_other_texts(cells: "_Cells", keys: Keys, role: str, *, may_be_pieces: bool) -> None:
    """Raise `UserError` where a row's text is not that of its sample's, or step's, first row with one."""
    of, values, where = keys.samples, cells.values, cells.read.where
    if keys.steps is not None:
        of = of * (int(keys.steps.max()) + 1) + keys.steps
    is_present = pc.is_valid(values).to_numpy(zero_copy_only=False)
    first = first_rows(of, is_present, int(of.max()) + 1)[of]
    differs = pc.fill_null(pc.not_equal(values, values.take(pa.array(first, mask=first < 0))), False)
    for row in np.flatnonzero(differs.to_numpy(zero_copy_only=False)).tolist():
        text, before = values[row].as_py(), values[int(first[row])].as_py()
        if may_be_pieces and (text.startswith(before) or before.startswith(text)):
            continue
        sample = keys.names[int(keys.samples[row])].as_py()
        expected = "an id for each text"
        if role == "response" and keys.draws is not None:
            expected += ", or import.draws=all for several answers to one question"
        expected += f" (import.columns.{role}='' reads no texts)"
        what = f"another text of sample {sample!r} is in {where(int(first[row]))}"
        refuse(cells.read, row, cells.name, what, expected)


def _in_steps(cells: "_Cells", keys: Keys, there: np.ndarray) -> list[Chat | None]:
    assert keys.steps is not None
    rows = np.flatnonzero(there)
    order = rows[np.lexsort((rows, keys.steps[rows], keys.samples[rows]))]
    samples, steps = keys.samples[order], keys.steps[order]
    begins = np.r_[True, (samples[1:] != samples[:-1]) | (steps[1:] != steps[:-1])][: len(order)]
    chats: list[Chat | None] = [None] * len(keys.names)
    for step, sample in zip(cells.chats(order[begins].tolist()), samples[begins].tolist(), strict=True):
        chats[sample] = (*(chats[sample] or ()), *(step or ()))
    return chats


class _Cells:
    """The cells of a column, read as chats one by one."""

    def __init__(self, read: ImportedFiles, name: str, speaker: Role, unknown: UnknownContent) -> None:
        self.read, self.name, self._speaker, self._unknown = read, name, speaker, unknown
        self.values = texts(read, name, keeps_words=True)

    def chats(self, rows: Sequence[int]) -> list[Chat | None]:
        """Return the chat in each row, None for row -1; says how many look like one and are text."""
        parsed: list[Chat | None] = []
        doubtful: list[int] = []
        for row in rows:
            if row < 0:
                parsed.append(None)
                continue
            try:
                chat = chat_in(self.values[row].as_py(), self.name, self._speaker, self._unknown)
            except NoChat as error:
                refuse(self.read, row, self.name, str(error), "text, or a chat as a list of messages")
            parsed.append(chat)
            doubtful += [row] if count_unread_chats(chat) else []
        if doubtful:
            _log.warning(
                "import: %s: %s cells look like chats and are taken as text (the first: %s)",
                self.name,
                f"{len(doubtful):,}",
                self.read.where(doubtful[0]),
            )
        return parsed


def _of_chats(chats: list[Chat | None]) -> ConversationSide:
    encoded = [
        None
        if chat is None
        else json.dumps([message.model_dump(mode="json") for message in chat], ensure_ascii=False)
        for chat in chats
    ]
    return ConversationSide(pa.array(encoded, pa.string()), chats)


@dataclass(frozen=True)
class Conversations:
    """Ids, requests and responses of samples, in the form that a split is stored in; all [samples]."""

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
        request_texts = pc.fill_null(request.plain.take(rows), _NO_REQUEST)
        response_texts = pc.coalesce(response.plain.take(rows), absent)
        return Conversations(
            _plain_ids(pairs, request_texts, response_texts),
            _plain(request_texts, Role.USER),
            _plain(response_texts, Role.ASSISTANT),
        )
    requests = _chats(request, at, [_NO_REQUEST] * len(at), Role.USER)
    responses = _chats(response, at, absent.to_pylist(), Role.ASSISTANT)
    ids = [content_id(*fields) for fields in zip(pairs.to_pylist(), requests, responses, strict=True)]
    return Conversations(
        pa.array(ids, pa.string()), _table(requests, "request"), _table(responses, "response")
    )


def _chats(side: ConversationSide, at: IntArray, absent: Sequence[str], speaker: Role) -> list[Chat]:
    chats = side.chats
    if chats is None:
        plain = side.plain.take(pa.array(at)).to_pylist()
        chats_here = [
            None if content is None else (Message(role=speaker, content=content),) for content in plain
        ]
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
    empty_fields = '"thinking":"","tool_call_id":"","tool_calls":[]}]'
    parts = []
    for start in range(0, len(pairs), _AT_ONCE):
        pair, request, response = (
            _quoted(column.slice(start, _AT_ONCE)) for column in (pairs, requests, responses)
        )
        asked = f',"role":"user",{empty_fields},[{{"content":'
        answered = f',"role":"assistant",{empty_fields}]'
        content = ("[", pair, ',[{"content":', request, asked, response, answered)
        parts.append(hashes(pc.binary_join_element_wise(*content, "")))
    return pa.concat_arrays(parts)


def _quoted(contents: pa.Array) -> pa.Array:
    """Texts as JSON has them."""
    codes = np.frombuffer(contents.buffers()[2] or b"", np.uint8)
    if ((codes < ord(" ")) | (codes == ord('"')) | (codes == ord("\\"))).any():
        return pa.array(map(json.encoder.encode_basestring, contents.to_pylist()), pa.string())
    return pc.binary_join_element_wise('"', contents, '"', "")
