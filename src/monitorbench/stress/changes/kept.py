r"""Parts of prose that have to stay as spelled: inline code, formulas, quotations, and words of machines.

A word of machines is one between white space with something in it that words of people don't have: a path,
an address, a host, a variable, `snake_case`, `camelCase`, `NAME`, `call()`, `--option`, `\command{}`. A
path that is respelled is another path, and an address in letters of another alphabet is what frauds use.
Rather too much is kept.
"""

import io
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_MARK = re.compile(r"`++|\$\$?|\\[()\[\]]|[\"'“”„«»‘’]")
_OPENED_BY = {
    '"': '"',
    "'": "'",
    "”": "“„",
    "“": "„",
    "’": "‘",
    "»": "«",
    "«": "»",
    "$": "$",
    "$$": ("$$",),
    r"\)": (r"\(",),
    r"\]": (r"\[",),
}
"""Opening marks of each closing mark; a run of backticks closes one that is as long."""
_OPENING = frozenset(mark for marks in _OPENED_BY.values() for mark in marks)
_TIGHT = frozenset("\"'“”„‘’$")
"""Marks with no space between them and what they hold."""
_APOSTROPHES = frozenset("\"'’$")
"""Marks that inside of a word, or in front of a price, are none."""
_LONGEST_RUN = 8
"""Longest run of backticks that opens: so few marks at most are open at a time."""
_WORD = re.compile(r"\S++")
_OF_MACHINES = re.compile(
    r"[/\\@_={}<>|~^#$&+*]|%[a-z]|::|\w[.:]\w|\w\(|[a-z][A-Z]|[A-Z]{2}|[^\W\d]\d|\d[^\W\d]|^\.\w|^--?[^\W\d]"
    r"|^[b-zB-HJ-Z]$"
)
_OF_MACHINES_OUTSIDE = re.compile(r"\w\(|^\(?[A-Z][).:]")
"""Pattern of a word of machines with what stands around it: a call, an option's letter."""
_AROUND = "*\"'“”„‘’«»[],;:!?…—–("
"""Characters that stand around words of people too: quotation marks, stops, emphasis."""


class TextSpan(NamedTuple):
    """Characters [start, end) of a text."""

    start: int
    end: int


def kept_spans(text: str) -> list[TextSpan]:
    """Spans of prose that have to stay as spelled: in order, none touching the next."""
    spans = [*_machine_words(text)]
    offset = 0
    for paragraph in _paragraphs(text):
        spans += [TextSpan(start + offset, end + offset) for start, end in _marked(paragraph)]
        offset += len(paragraph)
    return united(spans)


def outside(spans: Sequence[TextSpan], text: str) -> Iterator[tuple[str, bool]]:
    """The text in parts, each with whether it is outside of the spans."""
    position = 0
    for start, end in spans:
        yield text[position:start], True
        yield text[start:end], False
        position = end
    yield text[position:], True


def _machine_words(text: str) -> Iterator[TextSpan]:
    for word in _WORD.finditer(text):
        core = word[0].strip(_AROUND).rstrip(".)")
        if _OF_MACHINES.search(core) or _OF_MACHINES_OUTSIDE.search(word[0]):
            yield TextSpan(*word.span())


def _paragraphs(text: str) -> Iterator[str]:
    lines: list[str] = []
    for line in io.StringIO(text):
        lines.append(line)
        if not line.strip():
            yield "".join(lines)
            lines.clear()
    yield "".join(lines)


def _marked(text: str) -> Iterator[TextSpan]:
    """Yield the span of each pair of marks. Each kind is paired for itself, and the nearest two."""
    opened: dict[str, int] = {}
    for match in _MARK.finditer(text):
        mark, (start, end) = match[0], match.span()
        before, after = text[max(0, start - 1) : start], text[end : end + 1]
        is_run = mark[0] == "`"
        opens = len(mark) <= _LONGEST_RUN if is_run else mark in _OPENING
        closed = [
            opening for opening in ((mark,) if is_run else _OPENED_BY.get(mark, ())) if opening in opened
        ]
        if closed and _fits(mark, inside=before, outside=after):
            begun = max(opened.pop(opening) for opening in closed)
            yield TextSpan(begun, end)
            if is_run:  # what stands in code opens nothing
                opened = {opening: position for opening, position in opened.items() if position < begun}
        elif opens and _fits(mark, inside=after, outside=before):
            opened[mark] = start


def _fits(mark: str, *, inside: str, outside: str) -> bool:
    """Whether a mark may open or close something, by the characters on both of its sides."""
    is_loose = mark in _TIGHT and not inside.strip()
    return not is_loose and not (mark in _APOSTROPHES and (outside.isalnum() or outside == "_"))


def united(spans: Sequence[TextSpan]) -> list[TextSpan]:
    """Unite spans: they hold the same characters, are in order, and none touches the next."""
    merged: list[TextSpan] = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            merged[-1] = TextSpan(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged
