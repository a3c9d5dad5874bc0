"""A conversation in each provider's form, by the form's documentation, and how it reads.

All have the same: a thought, a call of the tool `bash`, its result and an answer.
"""

import json
from typing import Any

from monitorbench.records import Message, Role, ToolCall

SIGNED = "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
ARGUMENTS = {"cmd": "ls", "all": True, "depth": 2}
SENT = '{"cmd": "ls", "all": true, "depth": 2}'
FUNCTION = {"name": "bash", "arguments": SENT}
_AUTOGEN = {
    "id": "6f1c2b1e-8d1b-4b52-9a30-0a3f5d6c7e21",
    "metadata": {},
    "models_usage": {"prompt_tokens": 71, "completion_tokens": 15},
    "created_at": "2026-11-02T09:14:31.120394Z",
}

FORMS: dict[str, Any] = {
    "ours": [
        {"role": "user", "content": "List."},
        {
            "role": "assistant",
            "content": "",
            "thinking": "I look.",
            "tool_calls": [{"id": "call_1", "name": "bash", "arguments": SENT}],
        },
        {"role": "tool", "content": "a.txt", "tool_call_id": "call_1"},
        {"role": "assistant", "content": "Done."},
    ],
    "openai": [
        {"role": "user", "content": [{"type": "text", "text": "List."}]},
        {
            "role": "assistant",
            "content": None,
            "refusal": None,
            "annotations": [],
            "reasoning_content": "I look.",
            "tool_calls": [{"id": "call_1", "type": "function", "function": FUNCTION}],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "a.txt"},
        {"role": "assistant", "content": "Done."},
    ],
    "responses": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "List."}]},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "I look."}],
            "encrypted_content": SIGNED,
        },
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "status": "completed", **FUNCTION},
        {"type": "function_call_output", "call_id": "call_1", "output": "a.txt"},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
        },
    ],
    "anthropic": {
        "model": "claude-opus-4-1",
        "max_tokens": 1024,
        "messages": [
            {"role": "user", "content": "List."},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "I look.", "signature": SIGNED},
                    {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": ARGUMENTS},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a.txt", "is_error": False}
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "text",
                        "text": "Done.",
                        "citations": None,
                        "cache_control": {"type": "ephemeral"},
                    }
                ],
            },
        ],
    },
    "google": {
        "contents": [
            {"role": "user", "parts": [{"text": "List."}]},
            {
                "role": "model",
                "parts": [
                    {"text": "I look.", "thought": True},
                    {"functionCall": {"name": "bash", "args": ARGUMENTS}, "thoughtSignature": SIGNED},
                ],
            },
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "bash", "response": {"output": "a.txt"}}}],
            },
            {"role": "model", "parts": [{"text": "Done."}]},
        ]
    },
    "google, as its library writes it": {
        "contents": [
            {"role": "user", "parts": [{"text": "List."}]},
            {
                "role": "model",
                "parts": [
                    {"text": "I look.", "thought": True, "thought_signature": None},
                    {
                        "function_call": {"id": None, "name": "bash", "args": ARGUMENTS},
                        "thought_signature": SIGNED,
                    },
                ],
            },
            {
                "role": "user",
                "parts": [{"function_response": {"name": "bash", "response": {"output": "a.txt"}}}],
            },
            {"role": "model", "parts": [{"text": "Done."}]},
        ]
    },
    "bedrock": [
        {"role": "user", "content": [{"text": "List."}]},
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "I look.", "signature": SIGNED}}},
                {"toolUse": {"toolUseId": "tooluse_1", "name": "bash", "input": ARGUMENTS}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "toolResult": {
                        "toolUseId": "tooluse_1",
                        "content": [{"text": "a.txt"}],
                        "status": "success",
                    }
                }
            ],
        },
        {"role": "assistant", "content": [{"text": "Done."}]},
    ],
    "mistral": [
        {"role": "user", "content": "List."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "I look."}], "closed": True}
            ],
            "tool_calls": [{"id": "call_1", "function": FUNCTION, "index": 0}],
            "prefix": False,
        },
        {"role": "tool", "tool_call_id": "call_1", "name": "bash", "content": "a.txt"},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "Done."}, {"type": "reference", "reference_ids": [1]}],
        },
    ],
    "langchain": [
        {"type": "human", "content": "List.", "additional_kwargs": {}, "example": False},
        {
            "type": "ai",
            "content": [{"type": "reasoning", "reasoning": "I look."}],
            "tool_calls": [{"name": "bash", "args": ARGUMENTS, "id": "call_1", "type": "tool_call"}],
            "invalid_tool_calls": [],
            "additional_kwargs": {"tool_calls": [{"id": "call_1", "type": "function", "function": FUNCTION}]},
            "response_metadata": {"model_name": "gpt-4o-mini", "token_usage": {"total_tokens": 7}},
        },
        {"type": "tool", "content": "a.txt", "tool_call_id": "call_1", "name": "bash", "status": "success"},
        {"lc": 1, "type": "constructor", "id": ["langchain", "AIMessage"], "kwargs": {"content": "Done."}},
    ],
    "ai_sdk": [
        {"role": "user", "content": [{"type": "text", "text": "List."}]},
        {
            "role": "assistant",
            "content": [
                {"type": "reasoning", "text": "I look."},
                {"type": "tool-call", "toolCallId": "call_1", "toolName": "bash", "input": ARGUMENTS},
            ],
        },
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "call_1",
                    "toolName": "bash",
                    "output": {"type": "text", "value": "a.txt"},
                }
            ],
        },
        {"role": "assistant", "content": "Done."},
    ],
    "ai_sdk_ui": [
        {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "List."}]},
        {
            "id": "m2",
            "role": "assistant",
            "parts": [
                {"type": "step-start"},
                {"type": "reasoning", "text": "I look.", "state": "done"},
                {
                    "type": "tool-bash",
                    "toolCallId": "call_1",
                    "state": "output-available",
                    "input": ARGUMENTS,
                    "output": "a.txt",
                },
            ],
        },
        {"id": "m3", "role": "assistant", "parts": [{"type": "text", "text": "Done.", "state": "done"}]},
    ],
    "telemetry": [
        {"role": "user", "parts": [{"type": "text", "content": "List."}]},
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "I look."},
                {"type": "tool_call", "id": "call_1", "name": "bash", "arguments": ARGUMENTS},
            ],
            "finish_reason": "tool_call",
        },
        {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": "call_1", "response": "a.txt"}],
        },
        {"role": "assistant", "parts": [{"type": "text", "content": "Done."}], "finish_reason": "stop"},
    ],
    "inspect": [
        {"id": "Hq3TrNxhZ2vNQkkDyzsw8G", "role": "user", "source": "input", "content": "List."},
        {
            "role": "assistant",
            "source": "generate",
            "model": "mockllm/model",
            "content": [{"type": "reasoning", "reasoning": "I look.", "signature": None, "redacted": False}],
            "tool_calls": [
                {"id": "call_1", "function": "bash", "arguments": ARGUMENTS, "type": "function", "view": None}
            ],
        },
        {"role": "tool", "content": "a.txt", "tool_call_id": "call_1", "function": "bash", "error": None},
        {"role": "assistant", "source": "generate", "content": [{"type": "text", "text": "Done."}]},
    ],
    "cohere": [
        {"role": "user", "content": "List."},
        {
            "role": "assistant",
            "tool_plan": "I look.",
            "tool_calls": [{"id": "bash_1", "type": "function", "function": FUNCTION}],
        },
        {
            "role": "tool",
            "tool_call_id": "bash_1",
            "content": [{"type": "document", "document": {"id": "1", "data": "a.txt"}}],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
    ],
    "cohere, its first version": {
        "model": "command-r-plus-08-2024",
        "preamble": "Be brief.",
        "chat_history": [
            {"role": "USER", "message": "List."},
            {
                "role": "CHATBOT",
                "message": "I look.",
                "tool_calls": [{"name": "bash", "parameters": ARGUMENTS}],
            },
            {
                "role": "TOOL",
                "tool_results": [
                    {"call": {"name": "bash", "parameters": {}}, "outputs": [{"text": "a.txt"}]}
                ],
            },
            {"role": "CHATBOT", "message": "Done."},
        ],
        "text": "Done.",
        "finish_reason": "COMPLETE",
        "meta": {"api_version": {"version": "1"}, "billed_units": {"input_tokens": 5}},
    },
    "sharegpt": {
        "conversations": [
            {"from": "human", "value": "List."},
            {"from": "function_call", "value": json.dumps({"name": "bash", "arguments": ARGUMENTS})},
            {"from": "observation", "value": "a.txt"},
            {"from": "gpt", "value": "Done.", "weight": 1},
        ],
        "system": "Be brief.",
    },
    "autogen": {
        "messages": [
            {**_AUTOGEN, "type": "TextMessage", "source": "user", "content": "List."},
            {**_AUTOGEN, "type": "ThoughtEvent", "source": "assistant", "content": "I look."},
            {
                **_AUTOGEN,
                "type": "ToolCallRequestEvent",
                "source": "assistant",
                "content": [{"id": "call_1", "name": "bash", "arguments": SENT}],
            },
            {
                **_AUTOGEN,
                "type": "ToolCallExecutionEvent",
                "source": "assistant",
                "content": [{"call_id": "call_1", "name": "bash", "content": "a.txt", "is_error": False}],
            },
            {**_AUTOGEN, "type": "TextMessage", "source": "assistant", "content": "Done."},
        ],
        "stop_reason": None,
    },
    "autogen's models": [
        {"type": "UserMessage", "source": "user", "content": "List."},
        {
            "type": "AssistantMessage",
            "source": "assistant",
            "thought": "I look.",
            "content": [{"id": "call_1", "name": "bash", "arguments": SENT}],
        },
        {
            "type": "FunctionExecutionResultMessage",
            "content": [{"call_id": "call_1", "name": "bash", "content": "a.txt", "is_error": False}],
        },
        {"type": "AssistantMessage", "source": "assistant", "content": "Done."},
    ],
    "autogen 0.2": [
        {"role": "user", "content": "List."},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "I look.",
            "tool_calls": [{"id": "call_1", "type": "function", "function": FUNCTION}],
        },
        {
            "role": "tool",
            "content": "a.txt",
            "tool_responses": [{"tool_call_id": "call_1", "role": "tool", "content": "a.txt"}],
        },
        {"role": "assistant", "content": "Done."},
    ],
    "litellm": [
        {"role": "user", "content": "List."},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "I look.",
            "thinking_blocks": [{"type": "thinking", "thinking": "I look.", "signature": SIGNED}],
            "tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": FUNCTION}],
            "function_call": None,
        },
        {"role": "tool", "tool_call_id": "call_1", "name": "bash", "content": "a.txt"},
        {"role": "assistant", "content": "Done."},
    ],
}

CALL = ToolCall(id="call_1", name="bash", arguments=SENT)
READ = (
    Message(role=Role.USER, content="List."),
    Message(role=Role.ASSISTANT, thinking="I look.", tool_calls=(CALL,)),
    Message(role=Role.TOOL, content="a.txt", tool_call_id="call_1"),
    Message(role=Role.ASSISTANT, content="Done."),
)
"""What most of them say."""

_BRIEF = Message(role=Role.SYSTEM, content="Be brief.")
_OF_THE_USER = Message(role=Role.USER, content="a.txt")


def _called(id_: str) -> Message:
    return READ[1].model_copy(update={"tool_calls": (CALL.model_copy(update={"id": id_}),)})


EXPECTED: dict[str, tuple[Message, ...]] = dict.fromkeys(FORMS, READ) | {
    "responses": (
        READ[0],
        Message(role=Role.ASSISTANT, thinking="I look."),
        Message(role=Role.ASSISTANT, tool_calls=(CALL,)),
        *READ[2:],
    ),
    "anthropic": (READ[0], _called("toolu_1"), _OF_THE_USER, READ[3]),
    "cohere": (
        READ[0],
        _called("bash_1"),
        READ[2].model_copy(update={"content": '{"id": "1", "data": "a.txt"}', "tool_call_id": "bash_1"}),
        READ[3],
    ),
    "cohere, its first version": (
        _BRIEF,
        READ[0],
        _called("").model_copy(update={"content": "I look.", "thinking": ""}),
        Message(
            role=Role.TOOL,
            content='[{"call": {"name": "bash", "parameters": {}}, "outputs": [{"text": "a.txt"}]}]',
        ),
        READ[3],
    ),
    "sharegpt": (
        _BRIEF,
        READ[0],
        _called("").model_copy(update={"thinking": ""}),
        READ[2].model_copy(update={"tool_call_id": ""}),
        READ[3],
    ),
    "autogen": (
        READ[0],
        Message(role=Role.ASSISTANT, thinking="I look."),
        Message(role=Role.ASSISTANT, tool_calls=(CALL,)),
        *READ[2:],
    ),
    "bedrock": (READ[0], _called("tooluse_1"), _OF_THE_USER, READ[3]),
    **dict.fromkeys(
        ("google", "google, as its library writes it"),
        (
            READ[0],
            _called(""),
            _OF_THE_USER.model_copy(update={"content": '{"output": "a.txt"}'}),
            READ[3],
        ),
    ),
}
