"""A sample's conversation as Inspect's chat messages, so that its viewers show turns, tools and reasoning."""

import json
from typing import Any

from monitorbench import strict_json
from monitorbench.records import Message, Role, Sample, ToolCall


def chat(sample: Sample) -> list[dict[str, Any]]:
    """Request and response in one list; `source` tells the model's own turns from those that it was given."""
    called = {
        call.id: call.name for message in (*sample.request, *sample.response) for call in message.tool_calls
    }
    return [
        _message(message, f"{sample.id}-{number}", number >= len(sample.request), called)
        for number, message in enumerate((*sample.request, *sample.response))
    ]


def _message(message: Message, id_: str, is_response: bool, called: dict[str, str]) -> dict[str, Any]:
    fields: dict[str, Any] = {"id": id_, "role": message.role.value, "content": message.content}
    if message.thinking:
        text = [{"type": "text", "text": message.content}] if message.content else []
        fields["content"] = [{"type": "reasoning", "reasoning": message.thinking}, *text]
    match message.role:
        case Role.ASSISTANT:
            fields["source"] = "generate" if is_response else "input"
            if message.tool_calls:
                fields["tool_calls"] = [_tool_call(call) for call in message.tool_calls]
        case Role.TOOL:
            fields |= {"tool_call_id": message.tool_call_id, "function": called.get(message.tool_call_id)}
        case Role.SYSTEM | Role.USER:
            if not is_response:
                fields["source"] = "input"
    return fields


def _tool_call(call: ToolCall) -> dict[str, Any]:
    """Inspect wants an object of arguments; what is none stays as text, and says so."""
    fields = {"id": call.id, "function": call.name, "type": "function"}
    try:
        arguments = strict_json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        arguments = None
    if isinstance(arguments, dict):
        return {**fields, "arguments": arguments}
    return {**fields, "arguments": {"arguments": call.arguments}, "parse_error": "no JSON object"}


def opening(sample: Sample, characters: int) -> str:
    """Return the beginning of the request's last message from a user, for lists of samples."""
    texts = [message.content for message in sample.request if message.role is Role.USER and message.content]
    return (texts[-1] if texts else json.dumps(sample.id))[:characters]
