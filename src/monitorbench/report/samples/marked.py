"""A judged conversation as the report shows it: blocks of text, cut into marked and unmarked pieces.

Promises: the pieces of a text, joined, are the text as far as it is shown, whatever the spans; what is
not shown is counted.

For several monitors at once it is cut at every border of what one of them quoted, what is unseen is named,
and a quote is a range of pieces, so that nothing depends on how a language counts characters.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from monitorbench.records import Message, Span
from monitorbench.report.template import visible

MOST_CHARACTERS = 4000
"""Most characters that are shown of one request or one response."""
_FOLDED_FROM = 700
"""Characters from which a text is folded away until it is asked for."""


class ShownConversation(NamedTuple):
    """A conversation: its blocks, how many characters it has, and what is not shown of it."""

    blocks: list[tuple[str, list[tuple[str, bool]]]]
    """Of each field of a turn its tag, and pieces of its text: whether each is quoted by the monitor."""
    n_characters: int
    n_more: int
    n_hidden_marks: int
    """Spans of which nothing is shown: beyond the cut, or pointing at nothing."""
    is_long: bool


class TurnField(NamedTuple):
    """One field of one turn: its tag, its text, and the message, field and call that it is."""

    tag: str
    text: str
    where: tuple[int, str, int]


def shown_conversation(
    messages: Sequence[Message], highlights: Sequence[Span] = (), most: int = MOST_CHARACTERS
) -> ShownConversation:
    """The messages' text, at most `most` characters of it, with the highlighted characters marked."""
    shown = cut(messages, [highlights], most)
    (marks,) = shown.marks
    marked = {(block, i) for block, start, end in marks.ranges for i in range(start, end)}
    return ShownConversation(
        blocks=[
            (tag, [(text, (block, i) in marked) for i, text in enumerate(pieces)])
            for block, (tag, pieces) in enumerate(shown.blocks)
        ],
        n_characters=shown.n_characters,
        n_more=shown.n_more,
        n_hidden_marks=marks.n_hidden,
        is_long=shown.n_characters >= _FOLDED_FROM,
    )


def _fields_of(index: int, message: Message) -> list[TurnField]:
    """The fields of a turn that have a text; its empty content where it has nothing else."""
    fields = []
    if message.thinking:
        fields.append(TurnField(f"{message.role}, thinking", message.thinking, (index, "thinking", 0)))
    if message.content or not (message.thinking or message.tool_calls):
        fields.append(TurnField(str(message.role), message.content, (index, "content", 0)))
    for number, call in enumerate(message.tool_calls):
        text = f"{call.name} {call.arguments}"
        fields.append(TurnField(f"{message.role}, tool call", text, (index, "tool_call", number)))
    return fields


class Marks(NamedTuple):
    """Quotes of one monitor: (block, first piece, piece behind the last), and how many are not shown."""

    ranges: list[tuple[int, int, int]]
    n_hidden: int


class Cut(NamedTuple):
    """The blocks (tag, pieces) of a conversation, its characters, those cut off, each monitor's marks."""

    blocks: list[tuple[str, list[str]]]
    n_characters: int
    n_more: int
    marks: list[Marks]


def cut(messages: Sequence[Message], highlights: Sequence[Sequence[Span]], most: int) -> Cut:
    """Cut the messages' text to at most `most` characters; `highlights` are each monitor's, in its order."""
    fields = [field for i, message in enumerate(messages) for field in _fields_of(i, message)]
    blocks: list[tuple[str, list[str]]] = []
    ranges: list[list[tuple[int, int, int]]] = [[] for _ in highlights]
    room = most
    for field in fields:
        text = field.text[:room]
        room -= len(text)
        if not text and field.text:
            continue
        spans = [
            (monitor, max(highlight.start, 0), min(highlight.end, len(text)))
            for monitor, of_one in enumerate(highlights)
            for highlight in of_one
            if (highlight.message, highlight.field, highlight.call) == field.where
        ]
        spans = [span for span in spans if span[1] < span[2]]
        borders = sorted({0, len(text)}.union(*(span[1:] for span in spans)))
        place = {border: i for i, border in enumerate(borders)}
        for monitor, start, end in spans:
            ranges[monitor].append((len(blocks), place[start], place[end]))
        inner = [visible(text[a:b]) for a, b in pairwise(borders)]
        blocks.append((visible(field.tag), inner))
    n_characters = sum(len(field.text) for field in fields)
    marks = [
        Marks(marked, len(of_one) - len(marked)) for marked, of_one in zip(ranges, highlights, strict=True)
    ]
    return Cut(blocks, n_characters, n_characters - (most - room), marks)
