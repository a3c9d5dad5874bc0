"""Chat messages as people write them in JSON: a plain string, or a list of messages, to `Message`.

Promises: nothing is guessed or dropped. An unknown field, role or type is a `BadRow` that names the field
and the message. Tool calls may be ours (id, name, arguments) or OpenAI's (id, type, function).
"""

import json
from collections.abc import Mapping
from typing import Any

from monitorbench import strict_json
from monitorbench.records import Message, Role, ToolCall
from monitorbench.sources.read import BadRow

_MESSAGE_FIELDS = ("role", "content", "thinking", "tool_calls", "tool_call_id")


def messages(value: object, field: str, speaker: Role) -> tuple[Message, ...]:
    """The messages of a row's field; a plain string is one message of `speaker`.

    Raises `BadRow` where the value is empty, has another type or can't be written as UTF-8.
    """
    if isinstance(value, str):
        found: tuple[Message, ...] = (Message(role=speaker, content=encodable(value, f"field {field!r}")),)
    elif isinstance(value, list):
        found = tuple(_message(item, f"field {field!r} message {n}") for n, item in enumerate(value))
    else:
        raise BadRow(f"field {field!r}: expected text or a list of messages, found {_kind(value)}")
    if not any(m.content.strip() or m.thinking.strip() or m.tool_calls for m in found):
        raise BadRow(f"field {field!r}: nothing in it")
    return found


def from_cell(text: str) -> object:
    """What a cell of a table holds: a chat where it is a JSON list of objects with a role, else its text."""
    if not text.startswith("[{"):
        return text
    try:
        parsed = strict_json.loads(text)
    except (ValueError, RecursionError):
        return text
    is_chat = isinstance(parsed, list) and all(isinstance(one, dict) and "role" in one for one in parsed)
    return parsed if is_chat else text


def _message(item: object, where: str) -> Message:
    if not isinstance(item, Mapping):
        raise BadRow(f"{where}: expected an object with role and content, found {_kind(item)}")
    for name in item:
        if name not in _MESSAGE_FIELDS:
            raise BadRow(f"{where}: unknown field {name!r}; expected {', '.join(_MESSAGE_FIELDS)}")
    role = item.get("role")
    if role not in set(Role):
        raise BadRow(f"{where}: {role!r} is no role; expected {', '.join(Role)}")
    calls = item.get("tool_calls") or []
    if not isinstance(calls, list):
        raise BadRow(f"{where}: 'tool_calls' is {_kind(calls)}; expected a list")
    return Message(
        role=Role(role),
        content=_text(item, "content", where),
        thinking=_text(item, "thinking", where),
        tool_calls=tuple(_tool_call(call, f"{where} tool call {n}") for n, call in enumerate(calls)),
        tool_call_id=_text(item, "tool_call_id", where),
    )


def _tool_call(call: object, where: str) -> ToolCall:
    if not isinstance(call, Mapping):
        raise BadRow(f"{where}: expected an object with id, name and arguments, found {_kind(call)}")
    function = call.get("function", call)
    if not isinstance(function, Mapping):
        raise BadRow(f"{where}: 'function' is {_kind(function)}; expected an object with name and arguments")
    name = _text(function, "name", where)
    if not name:
        raise BadRow(f"{where}: missing field 'name'")
    arguments = function.get("arguments", "")
    if isinstance(arguments, Mapping):
        arguments = json.dumps(arguments, ensure_ascii=False)
    if not isinstance(arguments, str):
        raise BadRow(f"{where}: 'arguments' is {_kind(arguments)}; expected JSON text or an object")
    return ToolCall(id=_text(call, "id", where), name=name, arguments=encodable(arguments, where))


def _text(item: Mapping[str, Any], name: str, where: str) -> str:
    value = item.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadRow(f"{where}: {name!r} is {_kind(value)}; expected text")
    return encodable(value, where)


def encodable(text: str, where: str) -> str:
    """The text itself, or `BadRow` where it can't be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadRow(f"{where}: half a surrogate pair at character {error.start}; no valid text") from error
    return text


def _kind(value: object) -> str:
    names = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "text"}
    return names.get(type(value), "a list" if isinstance(value, list) else "an object")
