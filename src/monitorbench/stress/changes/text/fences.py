"""A text cut at its fences, line by line, as CommonMark reads them.

A fence is closed by one of its own kind that is at least as long, else it runs to the end of the text or,
where it is quoted, of the quotation. Each line is read once.
"""

import io
import re
from typing import Literal, NamedTuple

_FENCE = re.compile(
    r"(?P<before>[ \t>]*+)(?P<item>(?:[-*+]|\d{1,9}[.)])[ \t]++)?+(?P<marks>`{3,}+|~{3,}+)(?P<info>[^\n]*+)"
)
_LANGUAGE = re.compile(r"[ \t{.]*+(?P<language>[\w+#.-]*+)")
_QUOTED = re.compile(r"[ \t]*+>")


class FencedText(NamedTuple):
    """A part of a text; all of them joined are the text."""

    text: str
    kind: Literal["prose", "code", "fence"]
    language: str = ""
    """Language of code, in lower case; "" where it is not known, or where each of its lines is quoted."""


class _Fence(NamedTuple):
    marks: str
    info: str
    is_quoted: bool
    is_item: bool

    def opens(self) -> bool:
        return self.marks[0] == "~" or "`" not in self.info

    def closes(self, opened: "_Fence") -> bool:
        same = self.marks.startswith(opened.marks) and self.is_quoted == opened.is_quoted
        return same and not self.info.strip() and not self.is_item

    def language(self) -> str:
        match = None if self.is_quoted else _LANGUAGE.match(self.info)
        return match["language"].lower() if match else ""


def cut_at_fences(text: str) -> list[FencedText]:
    """The text as prose, fences and the code between them. A fence that opens nothing is code."""
    pieces: list[FencedText] = []
    lines: list[str] = []
    opened: _Fence | None = None

    def take(fence: _Fence | None) -> None:
        if lines:
            kind: Literal["prose", "code"] = "code" if fence else "prose"
            pieces.append(FencedText("".join(lines), kind, fence.language() if fence else ""))
            lines.clear()

    for line in io.StringIO(text):
        if opened and opened.is_quoted and not _QUOTED.match(line):
            take(opened)
            opened = None
        fence = _fence(line)
        if fence and (fence.closes(opened) if opened else fence.opens()):
            take(opened)
            pieces.append(FencedText(line, "fence"))
            opened = None if opened else fence
        else:
            lines.append(line)
    if opened and not lines:
        lines.append(pieces.pop().text)
    take(opened)
    return pieces


def _fence(line: str) -> _Fence | None:
    match = _FENCE.match(line)
    if match is None:
        return None
    return _Fence(match["marks"], match["info"], ">" in match["before"], match["item"] is not None)
