"""The texts, thoughts, tool calls and results in an object, and how those of several fields are joined."""

import json
from dataclasses import dataclass, field

from monitorbench.records import ToolCall

_ENCODE = json.JSONEncoder(ensure_ascii=False).encode


@dataclass
class Pieces:
    """Content of the fields of one object."""

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[tuple[str, str]] = field(default_factory=list)
    """Id of the call, and what the tool gave."""
    link: str = ""

    def append(self, others: "Pieces") -> None:
        """Append what other parts of the same content say."""
        self.texts += others.texts
        self.thoughts += others.thoughts
        self.calls += others.calls
        self.results += others.results
        self.link = self.link or others.link

    def merge(self, others: "Pieces") -> None:
        """Append what another field says, less what it repeats: some servers say the same under two names."""
        if others.texts == self.texts:
            others.texts = []
        others.thoughts = [text for text in others.thoughts if text not in self.thoughts]
        own_calls = [_compared(call) for call in self.calls]
        calls, others.calls = others.calls, []
        for call in calls:
            if _compared(call) in own_calls:
                own_calls.remove(_compared(call))
            else:
                others.calls.append(call)
        self.append(others)


def _compared(call: ToolCall) -> tuple[str, str, str]:
    return call.id, call.name, as_json(parsed(call.arguments))


def parsed(value: object) -> object:
    """The value that a text writes as JSON; any other value, or other text, as it is."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def as_json(value: object) -> str:
    """Return a value's JSON, on one line."""
    return _ENCODE(value)
