"""Chat messages of other people as ours: OpenAI's form, with Anthropic's parts of tools, or that of a sample.

Promise: text, reasoning and tool calls are all there, or it is no chat. A part that is known to be no text
(an image, a sound, a file) stands as its type in square brackets, since a monitor reads text alone.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

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
_TEXTS = ("text", "refusal", "thinking")
_CALLS = ("tool_use", "server_tool_use")
_NO_TEXT = (
    "image",
    "image_url",
    "image_file",
    "input_image",
    "audio",
    "audio_url",
    "input_audio",
    "video",
    "video_url",
    "input_video",
    "file",
    "input_file",
)
"""Types of parts that show nothing to who reads text."""


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
    content, used = _content(given.get("content"), f"{where}.content")
    thoughts = (_text(given.get(name) or "", f"{where}.{name}") for name in _THOUGHTS)
    calls = tool_calls_in(given.get("tool_calls"), f"{where}.tool_calls")
    if given.get("function_call") is not None:
        calls += (_tool_call({"function": given["function_call"]}, f"{where}.function_call"),)
    return Message(
        role=_ROLES[role],
        content=_joined((content, _text(given.get("refusal"), f"{where}.refusal"))),
        thinking=_joined(dict.fromkeys(thoughts)),  # some servers say one thought under two names
        tool_calls=calls + used,
        tool_call_id=_text(given.get("tool_call_id"), f"{where}.tool_call_id"),
    )


def _joined(texts: Iterable[str]) -> str:
    return "\n".join(filter(None, texts))


def _content(given: object, where: str) -> tuple[str, tuple[ToolCall, ...]]:
    """A content's text, and the tool calls that stand among its parts."""
    if not isinstance(given, list):
        return _text(given, where), ()
    calls, others = [], []
    for number, one in enumerate(given):
        if isinstance(one, dict) and one.get("type") in _CALLS:
            calls.append(_tool_call(one, f"{where}.{number}"))
        else:
            others.append(_part(one, f"{where}.{number}"))
    return "\n".join(others), tuple(calls)


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
    kind = given.get("type")
    texts = [given[name] for name in _TEXTS if isinstance(given.get(name), str)]
    if kind == "tool_result":
        return _joined((_text(given.get("content"), f"{where}.content"), *texts))
    if texts:
        return _joined(texts)
    if kind in _NO_TEXT:
        return f"[{kind}]"
    raise NoChat(f"{where}: a part of type {str(kind)[:40]!r} without a text; it can't be judged")


def _tool_call(given: object, where: str) -> ToolCall:
    if not isinstance(given, dict):
        raise NoChat(f"{where}: expected a tool call, an object with its function")
    kinds = [kind for kind in _GIVEN if given.get(kind) is not None]
    if len(kinds) > 1:
        raise NoChat(f"{where}: expected one of {' and '.join(kinds)}")
    function: Mapping[str, Any] = given
    for kind in kinds:
        if not isinstance(given[kind], dict):
            raise NoChat(f"{where}.{kind}: expected an object with name and {_GIVEN[kind]}")
        function = given[kind]
    name = function.get("name")
    if not isinstance(name, str) or not name.strip():
        raise NoChat(f"{where}: expected a tool call with a name")
    sent = [_as_text(function[one]) for one in _GIVEN.values() if function.get(one) is not None]
    return ToolCall(id=str(given.get("id") or ""), name=name, arguments="\n".join(sent))


_GIVEN = {"function": "arguments", "custom": "input"}
"""What a call of either kind calls that which it sends."""


def _as_text(given: object) -> str:
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
