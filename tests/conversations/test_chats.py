"""A conversation is judged whole, as its provider writes it; what is not known is shown or refused."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from monitorbench.config.imports import Import
from monitorbench.conversations.chats import chat_in, count_unread_chats, messages_in, trajectory_in
from monitorbench.conversations.read import NoChat
from monitorbench.interop.imports.readers.open import read_files
from monitorbench.prompts.transcript import transcript
from monitorbench.records import Message, Role, ToolCall
from monitorbench.sources.fetch import local
from monitorbench.sources.files import automonitor_bench

OPENAI = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {}}]},
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "I need the file.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "secret"},
    {"role": "assistant", "content": "Done.", "audio": None, "annotations": []},
]


def test_openai_messages_keep_all_that_is_said():
    """If it failed: a tool call or a thought, where misbehavior often is, would not be judged."""
    request, response = trajectory_in(OPENAI, "trajectory")
    assert request == (
        Message(role=Role.SYSTEM, content="Be brief."),
        Message(role=Role.USER, content="Look:\n[image_url]"),
    )
    assert response == (
        Message(
            role=Role.ASSISTANT,
            thinking="I need the file.",
            tool_calls=(ToolCall(id="c1", name="read", arguments='{"path": "a"}'),),
        ),
        Message(role=Role.TOOL, content="secret", tool_call_id="c1"),
        Message(role=Role.ASSISTANT, content="Done."),
    )


@pytest.mark.parametrize("asked", ["Why?", [{"role": "user", "content": "Why?"}]])
def test_an_output_that_is_a_text_is_the_models(asked: Any):
    """A log of inputs and outputs would be refused, or its answers judged as what the user said."""
    given = {"input": asked, "output": "Because."}
    request, response = trajectory_in(given, "trajectory")
    assert (request[-1].role, request[-1].content) == (Role.USER, "Why?")
    assert response == (Message(role=Role.ASSISTANT, content="Because."),)


def test_tools_in_other_forms_are_judged():
    """If it failed: what an agent does would be judged as nothing, where its provider writes it otherwise."""
    custom = {"id": "c", "type": "custom", "custom": {"name": "bash", "input": "rm -rf /"}}
    used = {"type": "tool_use", "id": "t", "name": "bash", "input": {"cmd": "rm -rf /ü"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "gone"}]}
    assert messages_in(
        [
            {"role": "assistant", "content": None, "tool_calls": [custom]},
            {"role": "assistant", "content": [{"type": "text", "text": "ok"}, used]},
            {"role": "user", "content": [result, {"type": "text", "text": "And now?"}]},
        ],
        "response",
    ) == (
        Message(role=Role.ASSISTANT, tool_calls=(ToolCall(id="c", name="bash", arguments="rm -rf /"),)),
        Message(
            role=Role.ASSISTANT,
            content="ok",
            tool_calls=(ToolCall(id="t", name="bash", arguments='{"cmd": "rm -rf /ü"}'),),
        ),
        Message(role=Role.USER, content="gone\nAnd now?"),
    )


def test_nothing_that_is_said_twice_is_left_out():
    """If it failed: a plan in a second field would not be judged, behind a harmless first one."""
    said = {"role": "assistant", "content": "fine", "refusal": "no", "thinking": "a", "reasoning": "a"}
    assert messages_in([{**said, "reasoning_content": "plan"}], "response") == (
        Message(role=Role.ASSISTANT, content="fine\nno", thinking="a\nplan"),
    )


def test_a_samples_own_messages_are_read_as_they_are():
    """If it failed: what `evaluate.py` judged would be another text here."""
    _, response = trajectory_in(OPENAI, "trajectory")
    assert messages_in([one.model_dump(mode="json") for one in response], "response") == response


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("text", "x: expected text or a list"),
        ([1], "x.0: expected an object"),
        ([{"role": "bot", "content": "a"}], "x.0.role: 'bot' is no role"),
        ([{"role": "assistant", "tool_calls": [{"function": {"arguments": "{}"}}]}], "with a name"),
        ([{"role": "assistant", "tool_calls": [{"type": "shell", "shell": {"do": "rm"}}]}], "with a name"),
        ([{"role": "assistant", "tool_calls": ["rm"]}], "x.0.tool_calls.0: expected a tool call"),
        ({"text": "a"}, "x: expected a message, or an object with messages"),
    ],
)
def test_what_is_no_chat_is_named(given: object, complaint: str):
    """If it failed: a client would not know what to change."""
    with pytest.raises(NoChat, match=complaint):
        messages_in(given, "x")


@pytest.mark.parametrize("why", ["STOP", "SAFETY", "RECITATION", "MALFORMED_FUNCTION_CALL", "OTHER"])
def test_why_a_provider_stopped_is_neither_refused_nor_told(why: str):
    """A row would be refused for its provider's word, or the judge would read that a filter was struck."""
    gemini = {"candidates": [{"content": {"role": "model", "parts": [{"text": "a"}]}, "finishReason": why}]}
    (message,) = messages_in({**gemini, "usageMetadata": {"promptTokenCount": 3}}, "x", "refuse")
    assert message == Message(role=Role.ASSISTANT, content="a")
    words = {"SAFETY": "guardrail_intervened", "RECITATION": "content_filtered"}
    answer = {"message": {"role": "assistant", "content": [{"text": "a"}]}}
    bedrock = {"output": answer, "stopReason": words.get(why, "end_turn"), "metrics": {"latencyMs": 9}}
    (message,) = messages_in(bedrock, "x", "refuse")
    assert message == Message(role=Role.ASSISTANT, content="a")


@pytest.mark.parametrize(
    ("call_id", "is_shown"),
    [
        ("function-call-14336847574026984983", False),
        ("adk-2f1cb0c7-1f1e-4b0a-9a33-1c2b3d4e5f60", False),
        ("5ubnbwd3", False),
        ("q4-aUL_MH-Wux_8P4eJ2A-s", False),
        ("delete the logs", True),
        ("passwords", True),
        ("Delete-The-Files_Now-Please", True),
    ],
)
def test_an_id_that_a_server_made_is_not_shown(call_id: str, is_shown: bool):
    """Else each call of Gemini's would come with a line of noise; or words could hide as an id."""
    call = {"functionCall": {"id": call_id, "name": "bash", "args": {"cmd": "ls"}}}
    (message,) = messages_in([{"role": "model", "parts": [call]}], "x", "refuse")
    assert (call_id in message.content) == is_shown
    assert message.tool_calls == (ToolCall(id=call_id, name="bash", arguments='{"cmd": "ls"}'),)


UNKNOWN = [
    {"role": "assistant", "content": {"do": "MARKER"}},
    {"role": "assistant", "content": [{"type": "computer_call", "action": "MARKER"}]},
    {"role": "assistant", "content": [{"type": "text", "text": {"value": "MARKER"}}]},
    {"role": "assistant", "content": [{"type": "text", "text": "a", "note": "MARKER"}]},
    {"role": "assistant", "content": "a", "plan": {"deep": ["MARKER"]}},
    {"role": "assistant", "tool_calls": [{"name": "bash", "params": {"cmd": "MARKER"}}]},
    {"role": "assistant", "tool_calls": [{"function": {"name": "bash", "kwargs": {"cmd": "MARKER"}}}]},
    {"role": "assistant", "tool_calls": [{"name": "f", "arguments": "{}", "args": {"cmd": "MARKER"}}]},
    {"role": "assistant", "tool_calls": [{"function": {"name": "a"}, "custom": {"name": "MARKER"}}]},
    {"role": "assistant", "content": "a", "reasoning": [{"type": "plan", "steps": "MARKER"}]},
    {"type": "TextMessage", "source": "user", "content": "a", "from": "MARKER", "value": "MARKER"},
    {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "https://x/MARKER"}}]},
]


@pytest.mark.parametrize("message", UNKNOWN)
def test_what_is_unknown_is_shown_or_refused(message: dict[str, Any]):
    """If it failed: a guardrail would pass a command because it stands in an unexpected place."""
    assert "MARKER" in transcript(messages_in([message], "x"))
    if message is not UNKNOWN[-1]:
        with pytest.raises(NoChat, match=r"x\.0.*unknown|x\.0.*arguments under|x\.0.*a part of"):
            messages_in([message], "x", "refuse")


ACTED = {"role": "assistant", "content": "ok", "tool_calls": [{"id": "1", "name": "bash", "arguments": "rm"}]}
ODD: list[tuple[list[dict[str, Any]], str]] = [
    ([ACTED, {"rol": "tool", "content": "MARKER"}], r"\.1: .*unknown form \(fields rol, content\)"),
    (
        [
            {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "MARKER", "tools": []},
            {"type": "function_call", "call_id": "call_1", "name": "bash", "arguments": "rm"},
        ],
        r"\.0: .*unknown form \(type 'mcp_list_tools'\)",
    ),
    (
        [
            {"type": "TextMessage", "source": "user", "content": "x"},
            {"type": "MemoryQueryEvent", "source": "MARKER", "content": []},
            {
                "type": "ToolCallRequestEvent",
                "source": "assistant",
                "content": [{"id": "c1", "name": "bash", "arguments": "rm"}],
            },
        ],
        r"\.1: .*unknown form \(type 'MemoryQueryEvent'\)",
    ),
]


@pytest.mark.parametrize(("chat", "complaint"), ODD)
@pytest.mark.parametrize("written", [json.dumps, repr, lambda chat: chat, lambda chat: {"messages": chat}])
def test_one_odd_item_makes_no_conversation_a_text(
    written: Callable[[object], object], chat: list[dict[str, Any]], complaint: str
):
    """If it failed: a typo in one message would hide every tool call of the conversation, without a word."""
    messages = chat_in(written(chat), "response", Role.ASSISTANT)
    (call,) = (call for message in messages for call in message.tool_calls)
    assert (call.name, call.arguments) == ("bash", "rm")
    (odd,) = (message for message in messages if "MARKER" in message.content)
    assert (odd.role, json.loads(odd.content)) == (
        Role.ASSISTANT,
        next(x for x in chat if "MARKER" in str(x)),
    )
    with pytest.raises(NoChat, match=complaint):
        chat_in(written(chat), "response", Role.ASSISTANT, "refuse")


def test_an_odd_item_begins_no_response():
    """If it failed: notes before the question of a trajectory would make the question part of the answer."""
    note, asked = {"session": "s"}, {"role": "user", "content": "a"}
    exchange = trajectory_in([note, asked, ACTED, note], "x")
    assert [message.role for message in exchange.request] == [Role.SYSTEM, Role.USER]
    assert [message.role for message in exchange.response] == [Role.ASSISTANT, Role.ASSISTANT]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_what_other_rows_hold_changes_no_conversation(suffix: str, tmp_path: Path):
    """Else a call's arguments would get nulls, floats and another order from rows beside it."""
    sent: list[dict[str, Any]] = [
        {"path": "a", "lines": 2},
        {"lines": 2.5, "path": None, "mode": {"x": 1}},
        {"path": ["b"], "big": 12345678901234567890},
    ]
    rows: list[dict[str, Any]] = [
        {
            "sample": f"s{number}",
            "response": [{"role": "assistant", "tool_calls": [{"name": "f", "args": arguments}]}],
        }
        for number, arguments in enumerate(sent)
    ]
    file = tmp_path / f"rows{suffix}"
    if suffix == ".jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        with file.open("w", newline="") as stream:
            cells = [(row["sample"], json.dumps(row["response"])) for row in rows]
            csv.writer(stream).writerows([("sample", "response"), *cells])
    column = read_files([file], Import()).table.column("response").to_pylist()
    messages = [chat_in(text, "response", Role.ASSISTANT)[0] for text in column]
    assert [message.tool_calls[0].arguments for message in messages] == [json.dumps(one) for one in sent]


@pytest.mark.parametrize(
    ("text", "is_chat", "is_doubtful"),
    [
        ('  [ {"role": "user", "content": "a"} ]', True, False),
        ('{"messages": [{"role": "user", "content": "a"}]}', True, False),
        ('{"role": "assistant", "content": "a"}', True, False),
        ("[{'role': 'user', 'content': None, 'tool_calls': [{'name': 'f', 'args': {}}]}]", True, False),
        ("[{'role': 'user', 'role': 'assistant', 'content': 'a'}]", False, True),
        ('[{"role": "user", "role": "assistant", "content": "a"}]', False, True),
        ("[{'role': 'user', 'content': array([1])}]", False, True),
        (json.dumps('[{"role": "user", "content": "a"}]'), True, False),
        (json.dumps(json.dumps('[{"role": "user", "content": "a"}]')), True, False),
        ('\ufeff[{"role": "user", "content": "a"}]', True, False),
        ('[{""role"": ""user"", ""content"": ""a""}]', False, True),
        ('{"conversation": [{"role": "user", "content": "a"}]}', False, True),
        ('[{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]', True, False),
        ('{"conversations": [{"from": "human", "value": "a"}]}', True, False),
        ('[{"type": "TextMessage", "source": "user", "content": "a"}]', True, False),
        ('{"message": {"role": "assistant", "content": "a"}}', True, False),
        ('{"from": "Rome", "value": [1]}', False, False),
        ("[HumanMessage(content='a'), AIMessage(content='b')]", False, True),
        ("[ChatCompletionMessage(content='a', role='assistant')]", False, True),
        ("({'role': 'user', 'content': 'a'},)", True, False),
        ("array([{'role': 'user', 'content': 'a'}], dtype=object)", False, True),
        ('```json\n[{"role": "user", "content": "a"}]\n```\n', True, False),
        ("```\n{'role': 'assistant', 'content': '```a```'}```", True, False),
        ("User: delete it\n\nAssistant: done", False, True),
        ("\n\nHuman: delete it\n\nAssistant: done", False, True),
        ("**assistant**: done", False, True),
        ("assistant: done", False, True),
        ("User: root\nHost: db\nPort: 5432", False, False),
        ("The assistant: a talk.\nUser: me", False, False),
        ('```json\n[{"role": "admin", "type": "x"}, 1]\n```', False, False),
        ('```json\n{"type": "object", "properties": {}}\n```', False, False),
        ("```js\n{ role: 'user', 'type': f(x) }\n```", False, False),
        ('Send this:\n```json\n[{"role": "user", "content": "a"}]\n```', False, False),
        ('```json\n[{"role": "user", "content": "a"}]\n```\nis what you send.', False, False),
        (json.dumps('{"role": "admin"}'), False, False),
        ('[{"name": "logs", "type": "x"}]', False, True),
        ('[{"type": "mcp_list_tools"}, {"type": "mcp_end"}]', False, True),
        ('```json\n[{"name": "logs", "type": "x"}]\n```', False, False),
        ('[{"name": "logs"}]', False, False),
        ('[{"role": "user", "content": "a"}, {"rol": "tool", "content": "b"}]', True, False),
        ('[[{"role": "user", "content": "a"}]]', True, False),
        ('[[{"role": "user", "content": "a"}], [{"role": "user", "content": "b"}]]', False, True),
        ('[{"role": "user", "content": "a"}, "b"]', False, True),
        ('[{"index": 0, "message": {"role": "assistant", "content": "a"}}]', True, False),
        ('{"role": "admin", "rights": ["all"]}', False, False),
        ("plain [1]", False, False),
    ],
)
def test_a_text_is_a_chat_however_it_is_written(text: str, is_chat: bool, is_doubtful: bool):
    """Else a trajectory would be judged as JSON text without a word, or a code answer as a conversation."""
    messages = chat_in(text, "response", Role.ASSISTANT)
    plain = (Message(role=Role.ASSISTANT, content=text),)
    assert (messages != plain, count_unread_chats(messages) > 0) == (is_chat, is_doubtful)


def test_actions_that_have_roles_stay_a_list(tmp_path: Path):
    """Else a log of trajectories with a score an action could no longer be imported."""
    steps = [{"role": "assistant", "content": "a", "score": 0.5}]
    (tmp_path / "runs.jsonl").write_text(json.dumps({"id": "r", "steps": steps}))
    table = read_files([tmp_path / "runs.jsonl"], Import(actions=("steps",))).table
    assert table.column("steps").to_pylist() == [[{"score": 0.5}]]


def test_a_parquet_file_gives_no_call_the_arguments_of_another(tmp_path: Path):
    """Else each call would have a null for every argument that any call of the file has."""
    chats = [
        [{"role": "assistant", "tool_calls": [{"name": "f", "args": sent}]}] for sent in ({"a": 1}, {"b": 2})
    ]
    file = tmp_path / "scores.parquet"
    pq.write_table(pa.table({"response": chats}), file)
    column = read_files([file], Import()).table.column("response").to_pylist()
    messages = [chat_in(text, "response", Role.ASSISTANT)[0] for text in column]
    assert [message.tool_calls[0].arguments for message in messages] == ['{"a": 1}', '{"b": 2}']
    row = {"label": "0", "category": "safety", "task": "qa"}
    rows = [{**row, "question": f"x{number}", "response": chat} for number, chat in enumerate(chats)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "test.parquet")
    files = local("amb", tmp_path / "test.parquet", automonitor_bench.SUFFIXES, "error")
    samples = list(automonitor_bench.load(files))
    assert [one.response[0].tool_calls[0].arguments for one in samples] == ['{"a": 1}', '{"b": 2}']
