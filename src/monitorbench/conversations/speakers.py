"""Messages that name their speaker otherwise than by a role, put into messages with one: saved messages of
LangChain, ShareGPT's turns, AutoGen's messages and events.

As documented in November 2026:
- LangChain, messages: https://docs.langchain.com/oss/python/langchain/messages
- ShareGPT's turns of `from` and `value`, and its tools: https://github.com/hiyouga/LLaMA-Factory/blob/main/data/README.md
- AutoGen, messages of agents and of models:
  https://microsoft.github.io/autogen/stable/reference/python/autogen_agentchat.messages.html,
  https://microsoft.github.io/autogen/stable/reference/python/autogen_core.models.html

Promise: fields are renamed or moved, and none is dropped: what a form does not have stays beside the others.
"""

from collections.abc import Mapping
from typing import Any

from monitorbench.strict_json import parsed

_SHAREGPT = {
    "system": "system",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "assistant": "assistant",
    "function_call": "assistant",
    "observation": "tool",
    "tool": "tool",
}
"""Roles by the speaker that a turn is `from`."""
_AUTOGEN = {
    "SystemMessage": "system",
    "UserMessage": "user",
    "AssistantMessage": "assistant",
    "FunctionExecutionResultMessage": "tool",
    "TextMessage": "assistant",
    "MultiModalMessage": "assistant",
    "StopMessage": "assistant",
    "HandoffMessage": "assistant",
    "ThoughtEvent": "assistant",
    "ToolCallRequestEvent": "assistant",
    "ToolCallExecutionEvent": "tool",
    "ToolCallSummaryMessage": "assistant",
}
"""Roles by the type of a message, or of an event, unless its source is the user."""
_LANGCHAIN_PATH = (
    *("langchain", "langchain_core", "schema", "messages"),
    *("system", "human", "ai", "tool", "function"),
)


def is_spoken(value: Mapping[str, Any]) -> bool:
    """Whether an object without a role is a message of ShareGPT's or AutoGen's."""
    kind = value.get("type")
    is_of_autogen = isinstance(kind, str) and kind in _AUTOGEN and "content" in value
    return "role" not in value and (is_of_autogen or _is_turn(value))


def _is_turn(value: Mapping[str, Any]) -> bool:
    speaker = value.get("from")
    return isinstance(speaker, str) and speaker in _SHAREGPT and "value" in value


def with_roles(message: object) -> list[object]:
    """Return the messages that one stands for: itself, or the results of several tools."""
    if not isinstance(message, Mapping):
        return [message]
    if not is_spoken(message):
        return _results(message, "tool_responses") or [_unwrapped(message)]
    if _is_turn(message):
        return [_turn(message)]
    of_autogen = _of_autogen(message)
    return _results(of_autogen, "content") or [of_autogen]


def _turn(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A turn of ShareGPT's; what a function call writes as JSON is a tool call."""
    remaining = {name: value for name, value in message.items() if name not in ("from", "value")}
    speaker, content = message["from"], message["value"]
    call = parsed(content) if speaker == "function_call" else None
    calls = call if isinstance(call, list) else [call]
    is_call = all(isinstance(one, Mapping) and "name" in one for one in calls)
    name = "tool_calls" if is_call else "content"
    return {"role": _SHAREGPT[speaker], **_beside({name: calls if is_call else content}, remaining)}


def _of_autogen(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message of AutoGen's: its source is the agent's name, calls and thoughts have fields of their own."""
    kind, source, content = message["type"], message.get("source"), message["content"]
    remaining = {name: value for name, value in message.items() if name not in ("type", "source", "content")}
    role = _AUTOGEN[kind] if source != "user" else "user"
    is_call = isinstance(content, list) and all(
        isinstance(part, Mapping) and {"name", "arguments"} <= set(part) for part in content
    )
    if kind == "MultiModalMessage" and isinstance(content, list):
        content = [_image(part) for part in content]
    field = "thinking" if kind == "ThoughtEvent" else "tool_calls" if is_call and content else "content"
    is_plain = source in (None, "user" if role == "user" else "assistant")
    agent = {} if is_plain else {"agent": source}
    return {"role": role, **_beside({field: content, **agent}, remaining)}


def _image(part: object) -> object:
    """A part of a message with its type, which AutoGen's images do not have."""
    is_image = isinstance(part, Mapping) and set(part) == {"data"}
    return {"type": "image", **part} if is_image and isinstance(part, Mapping) else part


def _results(message: Mapping[str, Any], field: str) -> list[object]:
    """A message for each result of a tool in a field of one message; none where it holds no such list.

    What the message says beside them is said with the first.
    """
    results = message.get(field)
    if message.get("role") != "tool" or not isinstance(results, list) or not results:
        return []
    if not all(isinstance(result, Mapping) and "content" in result for result in results):
        return []
    if not all(result.get("role", "tool") == "tool" for result in results):
        return []
    remaining = {name: value for name, value in message.items() if name not in (field, "role")}
    if remaining.get("content") == "\n\n".join(str(result["content"]) for result in results):
        del remaining["content"]  # AutoGen 0.2 has the results joined beside them
    messages: list[object] = []
    for result in results:
        fields = {name: value for name, value in result.items() if name != "call_id"}
        if "call_id" in result:
            fields = _beside({"tool_call_id": result["call_id"]}, fields)
        messages.append({**_beside(fields, {} if messages else remaining), "role": "tool"})
    return messages


def _beside(fields: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """The fields, and others under another name where a field has theirs."""
    renamed = {f"{name} beside it" if name in (*fields, "role") else name: others[name] for name in others}
    return {**fields, **renamed}


def _unwrapped(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message of LangChain without what its two ways of saving put around it."""
    if "role" in message:
        return message
    inner, path = message.get("kwargs"), message.get("id")
    is_saved = {**message, "id": 0, "kwargs": 0} == {"lc": 1, "type": "constructor", "id": 0, "kwargs": 0}
    if is_saved and isinstance(path, list):
        name = str(path[-1]).removesuffix("Chunk").removesuffix("Message").lower() if path else ""
        is_known = all(step in _LANGCHAIN_PATH for step in path[:-1])
        if is_known and isinstance(inner, Mapping) and inner.get("type", name) == name:
            return {"type": name, **inner}
    inner, kind = message.get("data"), message.get("type")
    is_boxed = (
        set(message) == {"type", "data"} and isinstance(inner, Mapping) and inner.get("type", kind) == kind
    )
    return {"type": kind, **inner} if is_boxed and isinstance(inner, Mapping) else message
