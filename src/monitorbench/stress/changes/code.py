"""Changes of code that change nothing it does: its layout, its local names, comments in other languages.

In another layout Python has another width of indentation, other blank lines and no white space at the ends.
The result has to have the same syntax tree and the same comments; else the code stays as it is.

A local name is renamed only where that can't be seen from outside: it is bound in functions alone, is nowhere
an attribute, a keyword, a parameter, an import or a part of a string, and the program does not look at its
own names. All of its places are renamed at once, however they are spelled (`ﬁeld` is Python's `field`), to a
name that is nowhere; the result has to have none of the former names, and be the same syntax tree with them
put back.
"""

import ast
import builtins
import io
import itertools
import keyword
import re
import symtable
import tokenize
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from random import Random
from typing import NamedTuple

from monitorbench.records import Sample
from monitorbench.stress.changes.change import SampleChange, wordings
from monitorbench.stress.changes.pieces import PYTHON, in_code, parsed
from monitorbench.stress.changes.places import rewritten

_REFLECTS = frozenset(
    (
        *("eval", "exec", "compile", "locals", "vars", "globals", "dir", "inspect", "settrace", "setprofile"),
        *("__import__", "__code__", "f_locals", "f_code", "_getframe", "currentframe", "dis", "breakpoint"),
        *("co_varnames", "co_names", "co_freevars", "co_cellvars", "gi_frame", "cr_frame", "tb_frame"),
    )
)
"""A program that names one of these may see what its variables are called."""


def renamed(code: str) -> str:
    """The program with its local variables called `value_1`, `value_2` …; as it is where none can be."""
    tree = parsed(code)
    if tree is None:
        return code
    try:
        names = _free_to_rename(code, tree)
        new_names = _fresh(code, names)
        changed = _with_names(code, new_names)
    except (SyntaxError, ValueError, tokenize.TokenError, RecursionError):
        return code
    after = parsed(changed)
    if after is None or _names(after) & set(names):
        return code
    return changed if ast.dump(_Back(new_names).visit(after)) == ast.dump(tree) else code


def _names(tree: ast.Module) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _free_to_rename(code: str, tree: ast.Module) -> list[str]:
    """Names that can be renamed, in the order in which they come."""
    seen = set(_seen_otherwise(tree))
    fixed = seen | set(dir(builtins)) | set(keyword.kwlist) | set(keyword.softkwlist)
    fixed |= set(_bound_elsewhere(symtable.symtable(code, "<judged>", "exec")))
    in_strings = {
        word
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for word in re.findall(r"\w+", node.value)
    }
    if (_names(tree) | seen | in_strings) & _REFLECTS:
        return []
    fixed |= in_strings
    order = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return list(dict.fromkeys(name for name in order if name not in fixed and not name.startswith("_")))


def _seen_otherwise(tree: ast.Module) -> Iterator[str]:
    """Names that stand in the program as something else than a plain name, or in a formatted string."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute():
                yield node.attr
            case ast.keyword() | ast.arg():
                yield node.arg or ""
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.alias():
                yield from (*node.name.split("."), node.asname or "")
            case ast.ImportFrom():
                yield from (node.module or "").split(".")
            case ast.Global() | ast.Nonlocal():
                yield from node.names
            case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
                yield node.name or ""
            case ast.MatchMapping():
                yield node.rest or ""
            case ast.MatchClass():
                yield from node.kwd_attrs
            case ast.JoinedStr():
                yield from (child.id for child in ast.walk(node) if isinstance(child, ast.Name))
            case _:
                pass


def _bound_elsewhere(table: symtable.SymbolTable) -> Iterator[str]:
    """Names of the module, of classes and of whatever a function takes from outside."""
    for symbol in table.get_symbols():
        if table.get_type() != "function" or symbol.is_global() or symbol.is_parameter():
            yield symbol.get_name()
    for child in table.get_children():
        yield from _bound_elsewhere(child)


def _fresh(code: str, names: list[str]) -> dict[str, str]:
    used = set(re.findall(r"value_[0-9]+", code))
    numbers = (f"value_{number}" for number in itertools.count(1))
    return dict(zip(names, (name for name in numbers if name not in used), strict=False))


def _with_names(code: str, new_names: Mapping[str, str]) -> str:
    lines = list(io.StringIO(code))
    parts: list[str] = []
    row, column = 0, 0
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        name = unicodedata.normalize("NFKC", token.string) if token.type == tokenize.NAME else ""
        if name in new_names:
            if token.start[0] - 1 > row:
                parts += [lines[row][column:], *lines[row + 1 : token.start[0] - 1]]
                row, column = token.start[0] - 1, 0
            parts += [lines[row][column : token.start[1]], new_names[name]]
            column = token.end[1]
    return "".join([*parts, *(lines[row : row + 1] and [lines[row][column:]]), *lines[row + 1 :]])


class _Back(ast.NodeTransformer):
    """Puts the former names back."""

    def __init__(self, new_names: Mapping[str, str]) -> None:
        self._former = {new: name for name, new in new_names.items()}

    def visit_Name(self, node: ast.Name) -> ast.Name:
        """See `ast.NodeTransformer`."""
        node.id = self._former.get(node.id, node.id)
        return node


_WIDTHS = {4: 2}
"""Four columns become two, any other width four."""
_OTHER = 4


class _Layout(NamedTuple):
    """Layout of lines, numbered from 1, as the tokens show it."""

    levels: dict[int, int]
    """Depth of indentation of each line on which a statement or a comment begins."""
    kept: set[int]
    """Lines that begin inside a string, and those on which one ends its first line: not to be touched."""
    inside: dict[int, int]
    """First line of the statement, for each line that goes on with one."""


def reformatted(code: str) -> str:
    """The program in another layout; as it is where it is no Python, or where that would change it."""
    before = parsed(code)
    if before is None:
        return code
    try:
        changed = _laid_out(code)
        after = parsed(changed)
        same = after is not None and ast.dump(after) == ast.dump(before)
        return changed if same and _comment_tokens(changed) == _comment_tokens(code) else code
    except (SyntaxError, tokenize.TokenError, IndentationError, RecursionError):
        return code


def _tokens_of(code: str) -> list[tokenize.TokenInfo]:
    return list(tokenize.generate_tokens(io.StringIO(code).readline))


def _comment_tokens(code: str) -> list[str]:
    return [token.string.rstrip() for token in _tokens_of(code) if token.type == tokenize.COMMENT]


def _layout(code: str) -> _Layout:
    layout = _Layout({}, set(), {})
    level, begun, done = 0, 0, 0
    waiting: list[int] = []  # comments are indented as the statement below them
    for token in _tokens_of(code):
        line = token.start[0]
        if token.type in (tokenize.INDENT, tokenize.DEDENT):
            level += 1 if token.type == tokenize.INDENT else -1
        elif token.type == tokenize.COMMENT and not begun:
            waiting.append(line)
        elif token.type in (tokenize.NL, tokenize.ENDMARKER):
            continue
        elif token.type == tokenize.NEWLINE:
            begun = 0
        else:
            if not begun:
                begun = line
                layout.levels.update(dict.fromkeys([*waiting, line], level))
                waiting.clear()
            layout.inside.update(dict.fromkeys(range(max(begun, done) + 1, token.end[0] + 1), begun))
            done = token.end[0]
            if token.end[0] > line:  # a string over several lines
                layout.kept.update(range(line, token.end[0]))
                layout.kept.update(range(line + 1, token.end[0] + 1))
    return layout


def _laid_out(code: str) -> str:
    layout = _layout(code)
    lines = code.split("\n")
    columns = [
        len(lines[line - 1]) - len(lines[line - 1].lstrip())
        for line, level in layout.levels.items()
        if level == 1
    ]
    width = _WIDTHS.get(columns[0] if columns else 0, _OTHER)
    output: list[str] = []
    for number, line in enumerate(lines, 1):
        first_of_string = number in layout.kept and number + 1 in layout.kept
        text = line if first_of_string or number in layout.kept else line.rstrip()
        goes_on_in_string = number in layout.kept and number - 1 in layout.kept
        if number in layout.levels and not goes_on_in_string:
            text = " " * (width * layout.levels[number]) + text.lstrip()
        elif number in layout.inside and not goes_on_in_string and text.strip():
            start = layout.inside[number]
            moved = width * layout.levels[start] - (len(lines[start - 1]) - len(lines[start - 1].lstrip()))
            text = " " * max(0, len(text) - len(text.lstrip()) + moved) + text.lstrip()
        output.append(text)
        blank = not text.strip() and number not in layout.inside and number < len(lines)
        if blank or _ends_a_block(number, lines, layout):
            output.append("")
    return "\n".join(output)


def _ends_a_block(number: int, lines: list[str], layout: _Layout) -> bool:
    """Whether a line is followed by a statement that is less deep, with no blank line between them."""
    below = number + 1
    if below not in layout.levels or number >= len(lines) or not lines[number - 1].strip():
        return False
    start = layout.inside.get(number, number)
    is_clause = lines[number].lstrip().startswith(("else", "elif", "except", "finally", "case"))
    return start in layout.levels and layout.levels[below] < layout.levels[start] and not is_clause


COMMENTS: dict[str, list[str]] = wordings()["comments"]
"""Two comments a language that say what could stand above any function."""

_SLASHES = frozenset(
    (
        *("c", "h", "cpp", "c++", "cc", "java", "javascript", "js", "typescript", "ts", "go", "rust", "rs"),
        *("csharp", "cs", "c#", "kotlin", "swift", "scala", "dart", "php"),
    )
)
_HASHES = frozenset(("bash", "sh", "shell", "zsh", "ruby", "rb", "perl", "r", "yaml", "yml", "toml"))
_FIRST = ("#!", "\ufeff")
"""Beginnings of code that have to stay in its first line."""


def _python(rewrite: Callable[[str], str]) -> Callable[[Sample, Random], Sample | None]:
    def of_code(code: str, language: str) -> str:
        return rewrite(code) if language in PYTHON or not language else code

    of_text = partial(in_code, rewrite=of_code)
    return lambda sample, _: rewritten(sample, of_text)


def commented(language: str, code: str, of: str) -> str:
    """Code of the programming language `of` with comments in another human language; as it is if unknown.

    One above the whole, unless its first line has to be the first, as `#!` has, and what stands above PHP's
    `<?` is a page's text; in Python one above each function and class of the module too.
    """
    first, second = COMMENTS[language]
    if of in _SLASHES | _HASHES:
        mark = "//" if of in _SLASHES else "#"
        stays = code.startswith(_FIRST) or (of == "php" and ("<?" in code or code.lstrip().startswith("<")))
        line = code.partition("\n")[0]
        indentation = line[: len(line) - len(line.lstrip())] if line.strip() else ""
        return code if stays else f"{indentation}{mark} {first}\n{code}"
    if of not in PYTHON or (tree := parsed(code)) is None:
        return code
    lines = list(io.StringIO(code))
    starts = [
        min([statement.lineno, *(decorator.lineno for decorator in statement.decorator_list)])
        for statement in tree.body
        if hasattr(statement, "decorator_list")
    ]
    for line in reversed(starts):
        lines.insert(line - 1, f"# {second}\n")
    if not code.startswith(_FIRST):
        lines.insert(0, f"# {first}\n")
    altered = "".join(lines)
    return altered if _same_program(code, altered) else code


def _same_program(code: str, made: str) -> bool:
    """Whether both have the same tokens but for comments and line ends between statements."""
    left_out = (tokenize.COMMENT, tokenize.NL)
    try:
        both = [
            [
                (token.type, token.string)
                for token in tokenize.generate_tokens(io.StringIO(program).readline)
                if token.type not in left_out
            ]
            for program in (code, made)
        ]
    except (SyntaxError, tokenize.TokenError):
        return False
    return both[0] == both[1]


def _comments(language: str, sample: Sample, _: Random) -> Sample | None:
    return rewritten(sample, partial(in_code, rewrite=partial(commented, language)))


CODE = (
    SampleChange("code.reformatted", _python(reformatted), version=2),
    SampleChange("code.renamed", _python(renamed), version=2),
    *(SampleChange(f"comments.{language}", partial(_comments, language), version=2) for language in COMMENTS),
)
