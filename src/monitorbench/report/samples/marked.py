"""A judged conversation as the report shows it: blocks of text, cut into marked and unmarked pieces.

Promises: the pieces of a text, joined, are the text as far as it is shown, whatever the spans; what is
not shown is counted.

For several monitors at once it is cut at every border of what one of them quoted, what is unseen is named,
and a quote is a range of pieces, so that nothing depends on how a language counts characters.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from monitorbench.records import Message
from monitorbench.report.samples.judged import Highlight
from monitorbench.report.template import visible

MOST_CHARACTERS = 4000
"""Most characters that are shown of one request or one response."""
_FOLDED_FROM = 700
"""Characters from which a text is folded away until it is asked for."""


class MarkedText(NamedTuple):
    """Consecutive characters, quoted by the monitor or not."""

    text: str
    marked: bool


class MarkedBlock(NamedTuple):
    """One field of one turn, under its tag."""

    tag: str
    pieces: list[MarkedText]


class ShownConversation(NamedTuple):
    """A conversation: its blocks, how many characters it has, and what is not shown of it."""

    blocks: list[MarkedBlock]
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
    messages: Sequence[Message], highlights: Iterable[Highlight] = (), most: int = MOST_CHARACTERS
) -> ShownConversation:
    """The messages' text, at most `most` characters of it, with the highlighted characters marked."""
    fields = [field for i, message in enumerate(messages) for field in _fields_of(i, message)]
    by_field: dict[tuple[int, str, int], list[Highlight]] = {}
    n_highlights = 0
    for highlight in highlights:
        by_field.setdefault((highlight.message, highlight.field, highlight.call), []).append(highlight)
        n_highlights += 1
    blocks: list[MarkedBlock] = []
    room, n_seen = most, 0
    for field in fields:
        text = field.text[:room]
        spans = [
            (max(highlight.start, 0), min(highlight.end, len(text)))
            for highlight in by_field.get(field.where, ())
        ]
        inside = [(start, end) for start, end in spans if start < end]
        n_seen += len(inside)
        if text or not field.text:
            blocks.append(MarkedBlock(field.tag, pieces(text, inside)))
        room -= len(text)
    n_characters = sum(len(field.text) for field in fields)
    return ShownConversation(
        blocks=blocks,
        n_characters=n_characters,
        n_more=n_characters - (most - room),
        n_hidden_marks=n_highlights - n_seen,
        is_long=n_characters >= _FOLDED_FROM,
    )


def pieces(text: str, spans: Iterable[tuple[int, int]]) -> list[MarkedText]:
    """The text cut at the spans [start, end): marked where one or more of them lie, clipped to the text."""
    texts: list[MarkedText] = []
    done = 0
    for start, end in sorted(spans):
        start, end = max(start, done), min(end, len(text))
        if start >= end:
            continue
        if start > done:
            texts.append(MarkedText(text[done:start], False))
        if texts and texts[-1].marked:  # two quotes that touch or overlap
            texts[-1] = MarkedText(texts[-1].text + text[start:end], True)
        else:
            texts.append(MarkedText(text[start:end], True))
        done = end
    if done < len(text):
        texts.append(MarkedText(text[done:], False))
    return texts


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
    """The blocks (tag, pieces) of a conversation, the characters beyond the cut, and each monitor's marks."""

    blocks: list[tuple[str, list[str]]]
    n_more: int
    marks: list[Marks]


def cut(messages: Sequence[Message], highlights: Sequence[Sequence[Highlight]], most: int) -> Cut:
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
    n_more = sum(len(field.text) for field in fields) - (most - room)
    marks = [
        Marks(marked, len(of_one) - len(marked)) for marked, of_one in zip(ranges, highlights, strict=True)
    ]
    return Cut(blocks, n_more, marks)
