"""Other systems' shapes: chat messages, the LiteLLM proxy's calls, OpenTelemetry's event."""

import json
from typing import Any

import pytest

from monitorbench.interop.guardrail import litellm
from monitorbench.interop.guardrail.chats import NoChat, messages_in, trajectory_in
from monitorbench.interop.guardrail.telemetry import EVENT, evaluation_event
from monitorbench.records import Message, Role, ToolCall

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
CALL = {
    "input_type": "response",
    "texts": ["Sure."],
    "tool_calls": OPENAI[2]["tool_calls"],
    "structured_messages": None,
    "images": None,
    "tools": None,
    "request_data": {"user_api_key_hash": "h"},
    "request_headers": {"User-Agent": "[present]"},
    "litellm_version": "1.90.0",
    "litellm_call_id": "call-1",
    "litellm_trace_id": "trace-1",
    "additional_provider_specific_params": {},
}
"""As the proxy sends it."""


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
    ("given", "said"),
    [
        ("text", "x: expected a list"),
        ([1], "x.0: expected a message"),
        ([{"role": "assistant", "content": {"a": 1}}], "x.0.content: expected a text"),
        ([{"role": "assistant", "tool_calls": [{"function": "f"}]}], "x.0.tool_calls.0.function"),
        ([{"role": "assistant", "tool_calls": [{"function": {"arguments": "{}"}}]}], "with a name"),
        ([{"role": "assistant", "tool_calls": [{"type": "shell", "shell": {"do": "rm"}}]}], "with a name"),
        (
            [{"role": "assistant", "tool_calls": [{"function": {"name": "a"}, "custom": {"name": "b"}}]}],
            "one of",
        ),
        ([{"role": "assistant", "content": [{"type": "computer_call", "action": "x"}]}], "'computer_call'"),
        ([{"role": "assistant", "content": [{"type": "text", "text": {"value": "a"}}]}], "without a text"),
        ([{"role": "assistant", "reasoning": [{"type": "tool_use", "name": "a"}]}], "x.0.reasoning.0"),
    ],
)
def test_what_is_no_chat_is_named(given: object, said: str):
    """If it failed: a client would not know what to change."""
    with pytest.raises(NoChat, match=said):
        messages_in(given, "x")


def test_an_answer_is_judged_with_the_request_of_its_call():
    """If it failed: the monitor would judge answers without what was asked, for which it has no threshold."""
    requests = litellm.Requests()
    asked = {**CALL, "input_type": "request", "tool_calls": None, "structured_messages": OPENAI[:2]}
    requests.remember(litellm.call_in(asked))
    found = requests.exchange(litellm.call_in(CALL))
    assert found is not None
    assert [one.content for one in found.request] == ["Be brief.", "Look:\n[image_url]"]
    (said,) = found.response
    assert (said.role, said.content, said.tool_calls[0].name) == (Role.ASSISTANT, "Sure.", "read")
    assert requests.exchange(litellm.call_in({**CALL, "litellm_call_id": "other"})) is None


TEXT = "x" * 30 * litellm._OVERHEAD
CALLING = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": TEXT}}]}
EMPTY = {"role": "user", "content": ""}


@pytest.mark.parametrize(
    "what", [{"texts": [TEXT]}, {"structured_messages": [CALLING]}, {"structured_messages": [EMPTY] * 30}]
)
def test_remembered_requests_take_bounded_memory(what: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    """If it failed: a long life of the server would end in memory's."""
    monkeypatch.setattr(litellm, "_MOST_CHARACTERS", 100 * litellm._OVERHEAD)
    requests = litellm.Requests()
    for n in range(9):
        call = {"input_type": "request", "litellm_call_id": f"{n}", **what}
        requests.remember(litellm.call_in(call))
    known = [n for n in range(9) if requests.exchange(litellm.call_in({**CALL, "litellm_call_id": f"{n}"}))]
    assert known == [6, 7, 8]


def test_the_proxys_answer_has_its_words():
    """If it failed: the proxy would let pass what is flagged, as an action that it doesn't know."""
    assert litellm.answer("flag", "why") == {"action": "BLOCKED", "blocked_reason": "why"}
    assert litellm.answer("pass", "") == {"action": "NONE"}


def test_the_event_is_opentelemetrys():
    """If it failed: a collector would drop the lines, or dashboards not find their attributes."""
    logs = pytest.importorskip("opentelemetry.proto.collector.logs.v1.logs_service_pb2")
    known = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    from google.protobuf.json_format import Parse

    trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    line = evaluation_event(
        name="misbehavior",
        score=0.75,
        label="misbehavior",
        explanation="score 0.75, threshold 0.5",
        response_id="chatcmpl-1",
        error=None,
        more={"monitorbench.shadow": True, "monitorbench.threshold": 0.5},
        nanoseconds=1_700_000_000_000_000_000,
        traceparent=f"00-{trace}-{span}-01",
    )
    request = Parse(line, logs.ExportLogsServiceRequest())
    (record,) = request.resource_logs[0].scope_logs[0].log_records
    assert record.event_name == EVENT
    assert record.time_unix_nano == 1_700_000_000_000_000_000
    values = {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in record.attributes}
    assert values == {
        known.GEN_AI_EVALUATION_NAME: "misbehavior",
        known.GEN_AI_EVALUATION_SCORE_VALUE: 0.75,
        known.GEN_AI_EVALUATION_SCORE_LABEL: "misbehavior",
        known.GEN_AI_EVALUATION_EXPLANATION: "score 0.75, threshold 0.5",
        known.GEN_AI_RESPONSE_ID: "chatcmpl-1",
        "monitorbench.shadow": True,
        "monitorbench.threshold": 0.5,
    }
    sent = json.loads(line)["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]
    assert (sent["traceId"], sent["spanId"]) == (trace, span), "hex, as OTLP's JSON has them"


def test_an_event_without_a_result_says_why():
    """If it failed: an outage would look like a quiet hour."""
    line = evaluation_event(
        name="misbehavior",
        score=None,
        label=None,
        explanation="",
        response_id="",
        error="timed_out",
        more={},
        nanoseconds=1,
        traceparent="nonsense",
    )
    record = json.loads(line)["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]
    keys = [one["key"] for one in record["attributes"]]
    assert keys == ["gen_ai.evaluation.name", "error.type"]
    assert (record["severityNumber"], "traceId" in record) == (13, False)
