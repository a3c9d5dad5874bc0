"""Code that stands in a text without a fence: a program below a sentence, JSON, a table, a shell's lines.

It is told by how lines begin and end, and rather too much is taken for code than too little: what is code
stays as it is. Each line is read once, and parsed three times at most.
"""

import ast
import json
import re
import warnings

from monitorbench.stress.changes.text.fences import FencedText

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


def cut_at_code(text: str, *, is_whole: bool) -> list[FencedText]:
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
                if is_python(program := "".join(lines[first:])):
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


def is_python(text: str) -> bool:
    """Whether a text without fences is a Python program, and no sentence that happens to parse."""
    if "\n" not in text.strip():
        return False
    tree = parsed(text)
    program = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign)
    return tree is not None and any(isinstance(statement, program) for statement in tree.body)


def _as_a_whole(text: str) -> FencedText | None:
    if is_python(text):
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
