"""The LiteLLM proxy's generic guardrail API (beta): what `POST /beta/litellm_basic_guardrail_api` is sent.

As its documentation of October 2026 and its handlers have it: the proxy calls once with what the user sends
(`input_type: request`) and once with what the model answers (`response`), joined by `litellm_call_id`. The
second call has the answer's `texts` and `tool_calls` alone, and no request beside them; a monitor judges
both, so that the first call is remembered. The answer is an `action`, `BLOCKED` with its reason or `NONE`.
Fields that are known to hold nothing to judge are let through; any other is judged as its JSON.
"""

import threading
from collections import OrderedDict
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from monitorbench.conversations.chats import Exchange, messages_in
from monitorbench.conversations.quiet import is_nothing
from monitorbench.conversations.read import NoChat, UnknownContent
from monitorbench.records import Message
from monitorbench.strict_json import as_json

PATH = "/beta/litellm_basic_guardrail_api"
_MOST_CALLS = 10_000
_MOST_CHARACTERS = 2**26
"""Most characters of all remembered requests together; the oldest are forgotten first."""
_OVERHEAD = 400
"""Size of a message, a tool call or an entry beside its text, counted as characters."""


_UNJUDGED = frozenset(
    (
        "tools",
        "model",
        "request_data",
        "request_headers",
        "litellm_version",
        "litellm_trace_id",
    )
)
"""Fields of the API about the call and its caller, and the tools that there are."""


class _Sent(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    input_type: Literal["request", "response"]
    texts: list[str] | None = None
    structured_messages: list[Any] | None = None
    tool_calls: list[Any] | None = None
    images: list[Any] | None = None
    litellm_call_id: str | None = None
    additional_provider_specific_params: dict[str, Any] | None = None


class Call(NamedTuple):
    """One call of the proxy."""

    id: str
    """Id of the LLM call; empty where the call gives none."""
    is_response: bool
    messages: tuple[Message, ...]
    """Messages that the user sent, or the model's answer as one message."""
    asked: tuple[Message, ...]
    """Conversation before an answer, where the call has it."""
    category: str | None
    """`additional_provider_specific_params.category`, for a point with a threshold a category."""


def call_in(value: object, unknown: UnknownContent = "show") -> Call:
    """Read a call from a body's JSON value; raises `NoChat` for what is no such call."""
    try:
        sent = _Sent.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"][:2])) or "body"
        raise NoChat(f"{where}: {first['msg']}") from error
    sent_messages = sent.structured_messages
    history = messages_in(sent_messages, "structured_messages", unknown) if sent_messages else ()
    category = (sent.additional_provider_specific_params or {}).get("category")
    if category is not None and not isinstance(category, str):
        raise NoChat("additional_provider_specific_params.category: expected a text")
    is_response = sent.input_type == "response"
    history_text = "\n".join(message.content for message in history)
    texts = [text for text in sent.texts or () if is_response or text not in history_text]
    images = [] if history and not is_response else sent.images or ()
    content: list[Any] = [*texts, *({"type": "image", "image": image} for image in images)]
    for name, extra in (sent.model_extra or {}).items():
        if name not in _UNJUDGED and not is_nothing(extra):
            if unknown == "refuse":
                raise NoChat(f"{name[:40]!r}: no field of the proxy's API that is known here")
            try:
                content.append(as_json({name: extra}))
            except RecursionError as error:
                raise NoChat(f"{name[:40]!r}: nested too deeply") from error
    calls = sent.tool_calls or None
    own: tuple[Message, ...] = ()
    if is_response or content or calls or not history:
        role = "assistant" if is_response else "user"
        own = messages_in([{"role": role, "content": content, "tool_calls": calls}], "body", unknown)
    return Call(
        sent.litellm_call_id or "",
        is_response,
        own if is_response else (*history, *own),
        history if is_response else (),
        category,
    )


def answer(action: Literal["flag", "pass"], reason: str) -> dict[str, str]:
    """Return the answer to the proxy: `BLOCKED` for a flag, otherwise `NONE`."""
    return {"action": "BLOCKED", "blocked_reason": reason} if action == "flag" else {"action": "NONE"}


class Requests:
    """Remembered requests of users, by the id of the LLM call; several threads may use it."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[Message, ...]] = OrderedDict()
        self._characters = 0
        self._lock = threading.Lock()

    def remember(self, call: Call) -> None:
        """Keep a request; one without an id can't be found again, and is not kept."""
        if not call.id:
            return
        with self._lock:
            self._forget(call.id)
            self._known[call.id] = call.messages
            self._characters += _characters(call.id, call.messages)
            while len(self._known) > _MOST_CALLS or self._characters > _MOST_CHARACTERS:
                self._forget(next(iter(self._known)))

    def exchange(self, call: Call) -> Exchange | None:
        """An answer beside its request; None where no request of its id is known."""
        with self._lock:
            request = call.asked or self._known.get(call.id, ())
        return Exchange(request, call.messages) if request else None

    def _forget(self, name: str) -> None:
        if (messages := self._known.pop(name, None)) is not None:
            self._characters -= _characters(name, messages)


def _characters(name: str, messages: tuple[Message, ...]) -> int:
    """Return the size of a remembered request, counted as characters."""
    texts = [name]
    for message in messages:
        texts += (message.content, message.thinking, message.tool_call_id)
        for call in message.tool_calls:
            texts += (call.id, call.name, call.arguments)
    n = 1 + len(messages) + sum(len(message.tool_calls) for message in messages)
    return n * _OVERHEAD + sum(map(len, texts))
