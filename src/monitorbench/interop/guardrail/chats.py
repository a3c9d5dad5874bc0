"""Chat messages of other people as ours: OpenAI's form, or that of a sample.

Promise: text, reasoning and tool calls are all there. A part that is no text (an image, a sound) stands as
its type in square brackets, since a monitor reads text alone.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from monitorbench.records import Message, Role, ToolCall

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}
_THOUGHTS = ("thinking", "reasoning_content", "reasoning")


class NoChat(ValueError):
    """What is no list of chat messages; the text is one line."""


class Exchange(NamedTuple):
    """What is judged: what was asked, and what came of it."""

    request: tuple[Message, ...]
    response: tuple[Message, ...]


def messages_in(given: object, where: str) -> tuple[Message, ...]:
    """The messages of a list; `NoChat` names what of it, below `where`, is none."""
    if not isinstance(given, list) or not given:
        raise NoChat(f"{where}: expected a list of messages")
    return tuple(_message(one, f"{where}.{number}") for number, one in enumerate(given))


def trajectory_in(given: object, where: str) -> Exchange:
    """A whole run: what precedes the first assistant's message is the request, the rest the response."""
    messages = messages_in(given, where)
    start = next((n for n, one in enumerate(messages) if one.role is Role.ASSISTANT), None)
    if start is None:
        raise NoChat(f"{where}: no message of an assistant in it")
    return Exchange(messages[:start] or (Message(role=Role.USER),), messages[start:])


def has_something(messages: Sequence[Message]) -> bool:
    """Whether there is anything to read."""
    return any(one.content.strip() or one.thinking.strip() or one.tool_calls for one in messages)


def tool_calls_in(given: object, where: str) -> tuple[ToolCall, ...]:
    """Tool calls in OpenAI's form, or a sample's."""
    if given is None:
        return ()
    if not isinstance(given, list):
        raise NoChat(f"{where}: expected a list of tool calls")
    return tuple(_tool_call(one, f"{where}.{number}") for number, one in enumerate(given))


def _message(given: object, where: str) -> Message:
    if not isinstance(given, dict):
        raise NoChat(f"{where}: expected a message, an object with role and content")
    role = given.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise NoChat(f"{where}.role: expected one of {', '.join(_ROLES)}")
    content = _text(given.get("content"), f"{where}.content")
    thinking = next((found for name in _THOUGHTS if (found := given.get(name))), "")
    calls = tool_calls_in(given.get("tool_calls"), f"{where}.tool_calls")
    if given.get("function_call") is not None:
        calls += (_tool_call({"function": given["function_call"]}, f"{where}.function_call"),)
    return Message(
        role=_ROLES[role],
        content=content or _text(given.get("refusal"), f"{where}.refusal"),
        thinking=_text(thinking, f"{where}.thinking"),
        tool_calls=calls,
        tool_call_id=_text(given.get("tool_call_id"), f"{where}.tool_call_id"),
    )


def _text(given: object, where: str) -> str:
    if given is None:
        return ""
    if isinstance(given, str):
        return given
    if not isinstance(given, list):
        raise NoChat(f"{where}: expected a text, or a list of parts")
    return "\n".join(_part(one, f"{where}.{number}") for number, one in enumerate(given))


def _part(given: object, where: str) -> str:
    if isinstance(given, str):
        return given
    if not isinstance(given, dict):
        raise NoChat(f"{where}: expected a part, an object with type and text")
    for name in ("text", "refusal", "thinking"):
        if isinstance(given.get(name), str):
            return str(given[name])
    return f"[{str(given.get('type', 'part'))[:40]}]"


def _tool_call(given: object, where: str) -> ToolCall:
    if not isinstance(given, dict):
        raise NoChat(f"{where}: expected a tool call, an object with its function")
    function: Mapping[str, Any] = given
    if given.get("function") is not None:
        if not isinstance(given["function"], dict):
            raise NoChat(f"{where}.function: expected an object with name and arguments")
        function = given["function"]
    arguments = function.get("arguments", "")
    try:
        return ToolCall(
            id=str(given.get("id") or ""),
            name=str(function.get("name") or ""),
            arguments=arguments if isinstance(arguments, str) else json.dumps(arguments),
        )
    except ValidationError as error:
        raise NoChat(f"{where}: {error.errors(include_url=False)[0]['msg']}") from error
