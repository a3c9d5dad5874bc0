r"""A text divided into prose and code, so that a change of the one leaves the other as it is.

Judged text is hostile: each line is read once, and parsed three times at most, whatever the text holds. It is
cut at its fences, as CommonMark reads them: a fence is closed by one of its own kind that is at least as
long, else it runs to the end of the text or, where it is quoted, of the quotation. Code that stands without a
fence (a program below a sentence, JSON, a table, a shell's lines) is told by how lines begin and end, and
rather too much is taken for code than too little: what is code stays as it is.

Of prose inline code, formulas, quotations and words of machines stay as spelled. A word of machines is one
between white space with something in it that words of people don't have: a path, an address, a host, a
variable, `snake_case`, `camelCase`, `NAME`, `call()`, `--option`, `\command{}`. A path that is respelled is
another path, and an address in letters of another alphabet is what frauds use. Rather too much is kept.
"""

import ast
import io
import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

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


def _cut_at_fences(text: str) -> list[FencedText]:
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


_LONGEST_PARSED = 200_000
"""Number of characters; longer text is taken for no program."""
_PYTHON = re.compile(
    r"(?:async def|def) \w++\(|class \w++[(:]|import [\w.]++(?: as \w++)?+(?:, [\w.]++)*+[ \t]*+$"
    r"|from [\w.]++ import |@\w[\w.]*+(?:\(|[ \t]*+$)|if __name__"
)
"""How a line of Python begins and no prose does."""
_SURE = re.compile(r"#include\b|#!|>>> |\$ \w|\||<\?|<!DOCTYPE", re.IGNORECASE)
"""How a line of another language, a session, a table or a page begins and no prose does."""
_GOES_ON = re.compile(
    r"[\w.\[\]]++(?:, ?[\w.]++)*+ ?(?:[-+*/|&^%@]|//|\*\*|<<|>>|:)?+= ?"
    r"|(?:for|while|if|elif|else|try|except|finally|with|match)\b[^\n]*+(?<=:)[ \t]*+$"
    r"|(?:return|raise|assert|print|pass|break|continue|yield|del|global)\b"
    r"|[)\]}]|#|\"{3}|'{3}|[\w.]++\("
)
"""How a line begins that belongs to the code it stands below or above."""
_ITEM = re.compile(r"[ \t]*+(?:[-*+•]|\d{1,9}[.)])[ \t]")
_WIDE = ("    ", "\t")


def _cut_at_code(text: str, *, is_whole: bool) -> list[FencedText]:
    """Text without fences as prose and code; `is_whole`: no part of a text that has fences elsewhere."""
    if is_whole and (piece := _as_a_whole(text)):
        return [piece]
    lines = text.splitlines(keepends=True)
    has_items = any(_ITEM.match(line) for line in lines)
    pieces: list[FencedText] = []
    index = done = 0
    has_tried_the_rest = False
    while index < len(lines):
        if not _begins(lines, index, has_items=has_items):
            index += 1
            continue
        start, end = _run(lines, done, index)
        if _PYTHON.match(lines[index]) and not has_tried_the_rest:
            has_tried_the_rest = True
            for first in dict.fromkeys((start, index)):
                if _is_python(program := "".join(lines[first:])):
                    return [*pieces, *_prose(lines[done:first]), FencedText(program, "code", "python")]
        if _is_code(lines[start:end], is_wide=lines[index].startswith(_WIDE)):
            is_of_python = any(_PYTHON.match(line) for line in lines[start:end])
            code = FencedText("".join(lines[start:end]), "code", "python" if is_of_python else "")
            pieces += [*_prose(lines[done:start]), code]
            done = end
        index = end
    return [*pieces, *_prose(lines[done:])]


def parsed(code: str) -> ast.Module | None:
    """Python's syntax tree; None where it is none. Nothing of it is run."""
    if len(code) > _LONGEST_PARSED:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in judged code is no matter of ours
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_python(text: str) -> bool:
    """Whether a text without fences is a Python program, and no sentence that happens to parse."""
    if "\n" not in text.strip():
        return False
    tree = parsed(text)
    program = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign)
    return tree is not None and any(isinstance(statement, program) for statement in tree.body)


def _as_a_whole(text: str) -> FencedText | None:
    if _is_python(text):
        return FencedText(text, "code", "python")
    lines = [line for line in text.splitlines() if line.strip()]
    if _is_json(text) or (len(lines) > 2 and _is_of_braces(lines)):
        return FencedText(text, "code")
    return None


def _is_of_braces(lines: list[str]) -> bool:
    """Whether two lines in five are of a language with braces, and no sentence stands around them."""
    is_said = lines[0].rstrip().endswith((".", ":", "!", "?")) or not _has_braces(lines[-1])
    return not is_said and 5 * sum(map(_has_braces, lines)) >= 2 * len(lines)


def _is_json(text: str) -> bool:
    if text.strip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _has_braces(line: str) -> bool:
    """Whether a line ends or begins as those of a language with braces do."""
    begins = line.lstrip().startswith(("#include", "//", "/*", "*/"))
    return begins or (line.rstrip().endswith((";", "{", "}")) and not _ITEM.match(line))


def _is_sure(line: str) -> bool:
    return bool(_PYTHON.match(line) or _SURE.match(line)) or _is_json(line)


def _begins(lines: list[str], at: int, *, has_items: bool) -> bool:
    line = lines[at]
    if not line.strip():
        return False
    is_below_blank = at == 0 or not lines[at - 1].strip()
    is_wide = is_below_blank and not has_items and line.startswith(_WIDE)
    return is_wide or _has_braces(line) or _is_sure(line)


def _run(lines: list[str], low: int, at: int) -> tuple[int, int]:
    """Return lines [start, end) of the code around the line `at`; none is before `low`."""
    start, end = at, at + 1
    while start > low and (_GOES_ON.match(lines[start - 1]) or not lines[start - 1].strip()):
        start -= 1
    while not lines[start].strip():
        start += 1
    while end < len(lines) and _belongs(lines[end]):
        end += 1
    while not lines[end - 1].strip():
        end -= 1
    return start, end


def _belongs(line: str) -> bool:
    is_deep = not line.strip() or line[0].isspace()
    return is_deep or _has_braces(line) or _is_sure(line) or bool(_GOES_ON.match(line))


def _is_code(lines: list[str], *, is_wide: bool) -> bool:
    return is_wide or any(map(_is_sure, lines)) or sum(map(_has_braces, lines)) > 1


def _prose(lines: list[str]) -> list[FencedText]:
    return [FencedText("".join(lines), "prose")] if lines else []


PYTHON = frozenset(("python", "py", "python3"))


def pieces(text: str) -> list[FencedText]:
    """The text in pieces: what stands between fences is code, and so is what looks like it elsewhere."""
    fenced = _cut_at_fences(text)
    is_whole = len(fenced) == 1
    return [
        piece
        for section in fenced
        for piece in (_cut_at_code(section.text, is_whole=is_whole) if section.kind == "prose" else [section])
    ]


def in_prose(text: str, rewrite: Callable[[str, Sequence[TextSpan]], str]) -> str:
    """The text with its prose rewritten, which is given with the spans in it that have to stay."""
    return "".join(
        rewrite(piece.text, kept_spans(piece.text)) if piece.kind == "prose" else piece.text
        for piece in pieces(text)
    )


def in_code(text: str, rewrite: Callable[[str, str], str]) -> str:
    """The text with its code rewritten, which is given with its language; all else stays."""
    return "".join(
        rewrite(piece.text, piece.language) if piece.kind == "code" else piece.text for piece in pieces(text)
    )
