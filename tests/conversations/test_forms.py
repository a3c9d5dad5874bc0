"""Each provider's form reads as its documentation has it, and nothing put into a conversation is dropped."""

import copy
import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from documented import EXPECTED, FORMS, PNG
from drawing import draws
from hypothesis import assume, given
from hypothesis import strategies as st

from monitorbench.config.base import UserError
from monitorbench.config.imports import Import
from monitorbench.conversations.chats import chat_in, is_chat, messages_in, unread_content
from monitorbench.conversations.read import NoChat, UnknownContent
from monitorbench.interop import litellm
from monitorbench.interop.imports.columns import find_columns
from monitorbench.interop.imports.conversations import read_side
from monitorbench.interop.imports.keys import keys_of
from monitorbench.interop.imports.readers.open import read_files
from monitorbench.judging.serving.asked import asked_in
from monitorbench.prompts.transcript import transcript
from monitorbench.records import Message, Role
from monitorbench.sources.fetch import local
from monitorbench.sources.files import automonitor_bench, inspect_log, team_jsonl
from monitorbench.sources.read import BadRow


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("unknown", ["show", "refuse"])
def test_a_documented_form_reads_as_documented(name: str, unknown: UnknownContent):
    """Else a provider's conversations would be judged with parts missing, or in disguise."""
    assert messages_in(FORMS[name], "response", unknown) == EXPECTED[name]


MEDIA = [
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "auto"}},
    {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
    {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PNG}},
    {"inlineData": {"mimeType": "image/png", "data": PNG}},
    {"type": "image", "base64": PNG, "mime_type": "image/png"},
    {"type": "file", "mediaType": "image/png", "url": f"data:image/png;base64,{PNG}"},
    {"type": "blob", "mime_type": "image/png", "modality": "image", "content": PNG},
    {"type": "image", "image": f"data:image/png;base64,{PNG}", "detail": "auto"},
    {"type": "redacted_thinking", "data": PNG},
]


@pytest.mark.parametrize("part", MEDIA)
def test_a_medium_is_named(part: dict[str, Any]):
    """Else a judge would not know that there was more than it reads, or be shown a megabyte of base64."""
    (message,) = messages_in([{"role": "user", "content": [part]}], "request")
    kind = part.get("type", "inlineData")
    assert message.content == f"[{kind}]"
    assert unread_content([message, message]) == f"not shown to the judge: 2 {kind}"
    assert not unread_content([message.model_copy(update={"content": f"the [{kind}] of [x]"})])


def test_agents_are_named_and_each_result_answers_its_call():
    """Else several agents would read as one, and what a tool gave as the answer to another call."""
    image, summary, handoff, *results = messages_in(POOL["agents of autogen"], "response", "refuse")
    assert (image.role, image.content) == (Role.USER, "Look.\n[image]")
    assert '{"agent": "coder"' in summary.content
    assert (handoff.role, handoff.content) == (
        Role.ASSISTANT,
        'Take it.\n{"agent": "coder", "target": "user"}',
    )
    assert [(one.role, one.content, one.tool_call_id) for one in results] == [
        (Role.TOOL, "a", "call_0"),
        (Role.TOOL, "a", "call_1"),
    ]


def test_a_document_that_is_text_is_text():
    """Else the text that a user hands in would pass unread."""
    source = {"type": "text", "media_type": "text/plain", "data": "rm -rf /"}
    (message,) = messages_in(
        [{"role": "user", "content": [{"type": "document", "source": source}]}], "request"
    )
    assert message.content == "rm -rf /"


def test_nesting_without_end_is_refused_in_one_line():
    """Else one request would end in a traceback."""
    part: dict[str, Any] = {"type": "text", "text": "x"}
    for _ in range(400):
        part = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [part]}
    with pytest.raises(NoChat, match=r"levels; flatten them$") as error:
        messages_in([{"role": "user", "content": [part]}], "response")
    assert len(str(error.value)) < 250


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(inner)


ITEMS = [
    {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "q"},
    },
    {"type": "code_interpreter_call", "id": "ci_1", "code": "ls", "outputs": [{"type": "logs", "logs": "a"}]},
    {"type": "mcp_call", "id": "mcp_1", "name": "f", "arguments": "{}", "server_label": "s", "output": "a"},
    {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": PNG},
    {"type": "custom_tool_call", "call_id": "call_1", "name": "f", "input": "ls"},
]
POOL: dict[str, Any] = {
    **FORMS,
    "media": [{"role": "user", "content": MEDIA}, {"role": "assistant", "content": "x"}],
    "items": ITEMS,
    "inspect tools": [
        {"role": "user", "content": "x"},
        {
            "role": "assistant",
            "content": [
                {
                    "type": "tool_use",
                    "tool_type": "web_search",
                    "id": "srvtoolu_1",
                    "name": "web_search",
                    "context": None,
                    "arguments": '{"q": "x"}',
                    "result": "found",
                    "error": None,
                },
                {"type": "data", "data": {"a": 1}},
            ],
        },
        {"role": "tool", "content": "", "error": {"type": "timeout", "message": "slow"}},
    ],
    "saved by langchain": [
        {"type": "human", "data": {"content": "x", "type": "human"}},
        {"type": "ai", "data": {"content": "y", "tool_calls": []}},
    ],
    "agents of autogen": [
        {"type": "MultiModalMessage", "source": "user", "content": ["Look.", {"data": PNG}]},
        {
            "type": "ToolCallSummaryMessage",
            "source": "coder",
            "content": "a.txt",
            "tool_calls": [{"id": "call_1", "name": "bash", "arguments": "{}"}],
            "results": [{"call_id": "call_1", "name": "bash", "content": "a.txt", "is_error": False}],
        },
        {"type": "HandoffMessage", "source": "coder", "target": "user", "content": "Take it.", "context": []},
        {
            "type": "FunctionExecutionResultMessage",
            "content": [{"call_id": f"call_{i}", "name": "bash", "content": "a"} for i in range(2)],
        },
    ],
    "google's request": {
        "systemInstruction": {"role": "user", "parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "x"}]}],
        "generationConfig": {"temperature": 0},
    },
    "candidates": {"candidates": [{"content": {"role": "model", "parts": [{"text": "x"}]}, "index": 0}]},
    "anthropic's request": {"system": [{"type": "text", "text": "s"}], "messages": FORMS["ours"]},
    "answer": {
        "id": "chatcmpl-1",
        "model": "gpt-4o-mini",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "x"}}],
        "usage": {"total_tokens": 7},
    },
}
KEYS = sorted({key for form in POOL.values() for inner in _objects(form) for key in inner})
MARKERS = ("BAD", "rm -rf /srv", "MARKER_93f1")
_wrapped = st.sampled_from(MARKERS).flatmap(
    lambda marker: st.sampled_from(
        [
            marker,
            f"some text, {marker}",
            [marker],
            {"deep": [{"er": marker}]},
            [{"type": "text", "text": marker}],
            {"type": marker},
            {"function": {"name": "f", "arguments": {"x": marker}}},
            [{"name": "f", "args": {"x": marker}}],
        ]
    ).map(lambda value: (marker, value))
)


@st.composite
def marked(draw: st.DrawFn) -> tuple[str, Any]:
    """A documented conversation with a marker under any key of any of its objects."""
    conversation = copy.deepcopy(POOL[draw(st.sampled_from(sorted(POOL)))])
    objects = list(_objects(conversation))
    target = draw(st.sampled_from(objects))
    key = draw(
        st.sampled_from(KEYS) | st.sampled_from(sorted(target) or KEYS) | st.text(min_size=1, max_size=9)
    )
    marker, value = draw(_wrapped)
    target[key] = value
    return marker, conversation


def _team(suffix: str) -> Callable[[Any, Path], str]:
    def shown(conversation: Any, folder: Path) -> str:
        row = {"request": "x", "response": conversation, "label": "benign", "category": "a", "task": "b"}
        file = folder / f"own{suffix}"
        _write(file, row)
        (sample,) = team_jsonl.load(local("own", file, team_jsonl.SUFFIXES, "error"), "show")
        return transcript(sample.response)

    return shown


def _imported(suffix: str) -> Callable[[Any, Path], str]:
    def shown(conversation: Any, folder: Path) -> str:
        file = folder / f"scores{suffix}"
        row = {"sample": "s", "label": "benign", "score": 0.5, "request": "x", "response": conversation}
        _write(file, row)
        settings = Import()
        read = read_files([file], settings)
        columns = find_columns(read.table.column_names, settings)
        keys = keys_of(read, columns, settings, None, None)
        side = read_side(read, columns, keys, "response", settings)
        assert not side.is_absent
        return transcript(side.chats[0] or ()) if side.chats else str(side.plain[0])

    return shown


def _write(file: Path, row: dict[str, Any]) -> None:
    if file.suffix == ".jsonl":
        file.write_text(json.dumps(row), encoding="utf-8")
    elif file.suffix == ".csv":
        with file.open("w", newline="", encoding="utf-8") as stream:
            cells = [
                json.dumps(cell, indent=1) if isinstance(cell, list | dict) else cell for cell in row.values()
            ]
            csv.writer(stream).writerows([list(row), cells])
    else:
        try:
            pq.write_table(pa.Table.from_pylist([row]), file)
        except (pa.ArrowException, NotImplementedError):
            assume(condition=False)


def _released(conversation: Any, folder: Path) -> str:
    row = {"request": "x", "response": conversation, "label": "0", "category": "safety", "task": "qa"}
    _write(folder / "test.jsonl", row)
    files = local("amb", folder / "test.jsonl", automonitor_bench.SUFFIXES, "error")
    (sample,) = automonitor_bench.load(files, "show")
    return transcript(sample.response)


def _logged(conversation: Any, _: Path) -> str:
    assume(isinstance(conversation, list))
    # In a log these are a monitor's notes beside the message, which tell what it said of it.
    assume(not any(isinstance(one, dict) and one.get("metadata") for one in conversation))
    said, own = inspect_log.messages({"messages": conversation})
    return transcript((*said, *own))


def _guarded(conversation: Any, _: Path) -> str:
    asked = asked_in({"request": "x", "response": conversation}, "show")
    return transcript(asked.exchange.response)


def _proxied(conversation: Any, _: Path) -> str:
    assume(isinstance(conversation, list))
    call = litellm.call_in({"input_type": "request", "structured_messages": conversation, "texts": []})
    return transcript(call.messages)


READERS: dict[str, Callable[[Any, Path], str]] = {
    "own.jsonl": _team(".jsonl"),
    "own.csv": _team(".csv"),
    "scores.jsonl": _imported(".jsonl"),
    "scores.csv": _imported(".csv"),
    "scores.parquet": _imported(".parquet"),
    "automonitor_bench": _released,
    "inspect_log": _logged,
    "guardrail": _guarded,
    "litellm": _proxied,
    "refusing": lambda value, _: transcript(messages_in(value, "response", "refuse")),
    "fence": lambda value, _: transcript(
        chat_in(f"```json\n{json.dumps(value)}\n```", "response", Role.ASSISTANT)
    ),
    "repr": lambda value, _: transcript(chat_in(repr(value), "response", Role.ASSISTANT)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all examples."""
    return tmp_path_factory.mktemp("marked")


@pytest.mark.parametrize("reader", READERS)
@draws(1_000)
@given(example=marked())
def test_what_is_put_into_a_conversation_is_shown_or_refused(
    folder: Path, reader: str, example: tuple[str, Any]
):
    """Else a guardrail would pass a command that stands where nobody looks."""
    marker, conversation = example
    try:
        shown = READERS[reader](conversation, folder)
    except (NoChat, BadRow, UserError):
        return
    assert marker in shown


def test_a_role_in_a_box_is_not_taken_for_the_messages_own():
    """Else text could hide there: the role that chose the form was read, the other one was not."""
    message = {"type": "human", "content": "List.", "additional_kwargs": {"role": "rm -rf /"}}
    (read,) = messages_in([message], "response")
    assert (read.role, read.content) == (Role.USER, 'List.\n{"additional_kwargs.role": "rm -rf /"}')


@draws(300)
@given(
    value=st.recursive(
        st.none() | st.integers() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["role", "type", "a"]), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    language=st.sampled_from(["", "json", "python"]),
    before=st.sampled_from(["", "So:\n"]),
    after=st.sampled_from(["", "\nThat is it."]),
)
def test_an_answer_in_code_stays_the_text_it_is(value: Any, language: str, before: str, after: str):
    """Else the JSON or the code that a model was asked for would be judged as somebody's conversation."""
    assume(before or after or not is_chat(value))
    text = f"{before}```{language}\n{json.dumps(value, indent=1)}\n```{after}"
    messages = chat_in(text, "response", Role.ASSISTANT)
    assert messages == (Message(role=Role.ASSISTANT, content=text),)
    assert not unread_content(messages)


@pytest.mark.parametrize(
    "text", ['```json\n[{"role": "user", "content": "Go on."}]\n```', "User: Go on.\nAssistant: Done."]
)
def test_a_guardrail_reads_no_turns_out_of_a_text_and_says_so(text: str):
    """Else a model could write itself its user's permission; or a caller's mistake would go unnoticed."""
    response = asked_in({"request": "x", "response": text}, "show").exchange.response
    assert response == (Message(role=Role.ASSISTANT, content=text),)
    assert unread_content(response) == "judged as text: 1 that looks like a chat"
