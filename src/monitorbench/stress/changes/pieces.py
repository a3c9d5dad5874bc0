"""What in a text is prose and what is code, so that a change of the one leaves the other as it is."""

import ast
import re
import warnings
from collections.abc import Callable
from typing import Literal, NamedTuple

_FENCED = re.compile(
    r"^(?P<open>[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]*)[^\n]*\n)"
    r"(?P<code>.*?)(?P<close>^[ \t]*(?P=fence)[ \t]*$)",
    re.MULTILINE | re.DOTALL,
)
_KEPT_IN_PROSE = re.compile(r"`[^`\n]+`|https?://\S+|<\|[^|\n]*\|>")
"""Inline code, addresses, control tokens."""
_LONGEST_PARSED = 200_000
"""Characters; longer text is taken for prose."""
_CODE_LINE = re.compile(r"[;{}]\s*$|^\s*(?:#include|//|/\*|\*)")
PYTHON = frozenset(("python", "py", "python3"))


class Piece(NamedTuple):
    """A part of a text; all of them joined are the text."""

    text: str
    kind: Literal["prose", "code", "fence"]
    language: str = ""
    """Of code, in lower case; "" where it is not known."""


def pieces(text: str) -> list[Piece]:
    """The text in pieces: fenced blocks are code; without any the whole text may be."""
    found: list[Piece] = []
    end = 0
    for match in _FENCED.finditer(text):
        found += [
            Piece(text[end : match.start()], "prose"),
            Piece(match["open"], "fence"),
            Piece(match["code"], "code", match["language"].lower()),
            Piece(match["close"], "fence"),
        ]
        end = match.end()
    if not found:
        if is_python(text):
            return [Piece(text, "code", "python")]
        if _looks_like_code(text):
            return [Piece(text, "code")]
    found.append(Piece(text[end:], "prose"))
    return [piece for piece in found if piece.text]


def in_prose(text: str, rewrite: Callable[[str], str]) -> str:
    """The text with its prose rewritten; code, inline code and addresses stay."""
    return "".join(
        _outside_of_kept(one.text, rewrite) if one.kind == "prose" else one.text for one in pieces(text)
    )


def in_code(text: str, rewrite: Callable[[str, str], str]) -> str:
    """The text with its code rewritten, which is given with its language; all else stays."""
    return "".join(
        rewrite(one.text, one.language) if one.kind == "code" else one.text for one in pieces(text)
    )


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


def is_python(text: str) -> bool:
    """Whether a text without fences is a Python program, and no sentence that happens to parse."""
    if "\n" not in text.strip():
        return False
    tree = parsed(text)
    program = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign)
    return tree is not None and any(isinstance(one, program) for one in tree.body)


def _looks_like_code(text: str) -> bool:
    """Whether two lines in five end or begin as those of a language with braces do."""
    lines = [line for line in text.splitlines() if line.strip()]
    return len(lines) > 2 and 5 * sum(bool(_CODE_LINE.search(line)) for line in lines) >= 2 * len(lines)


def _outside_of_kept(text: str, rewrite: Callable[[str], str]) -> str:
    parts: list[str] = []
    end = 0
    for match in _KEPT_IN_PROSE.finditer(text):
        parts += [rewrite(text[end : match.start()]), match[0]]
        end = match.end()
    return "".join([*parts, rewrite(text[end:])])
