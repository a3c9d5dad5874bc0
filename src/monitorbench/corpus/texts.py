"""A sample as plain text: what overlap, surface checks and lengths are taken from."""

from collections.abc import Iterable
from typing import Any

from monitorbench.records import Message, Sample


def request_text(sample: Sample) -> str:
    """All text of the request."""
    return conversation_text(sample.request)


def response_text(sample: Sample) -> str:
    """All text of the judged response: traces, contents, and what was sent to tools."""
    return conversation_text(sample.response)


def conversation_text(messages: Iterable[Message]) -> str:
    """All text of some messages, a line each."""
    parts = (
        piece
        for message in messages
        for piece in (
            message.thinking,
            message.content,
            *(f"{call.name} {call.arguments}" for call in message.tool_calls),
        )
    )
    return "\n".join(filter(None, parts))


def row_text(messages: Iterable[dict[str, Any]]) -> str:
    """`conversation_text` of a request or response as it lies in a table's row."""
    parts = []
    for message in messages:
        parts += [message["thinking"], message["content"]]
        parts += [f"{call['name']} {call['arguments']}" for call in message["tool_calls"] or ()]
    return "\n".join(filter(None, parts))
