"""A judged conversation cut for several monitors at once, at every border of what one of them quoted.

Promises: the pieces of a block, joined, are its text as far as it is shown, with what is unseen in it named;
a quote is a range of pieces, so nothing depends on how a language counts characters.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from monitorbench.records import Message
from monitorbench.report.samples.marked import fields_of
from monitorbench.report.samples.visible import visible
from monitorbench.report.samples.worst import Highlight


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
    fields = [field for i, message in enumerate(messages) for field in fields_of(i, message)]
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
