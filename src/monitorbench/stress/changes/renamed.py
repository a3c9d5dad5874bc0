"""Python's local variables under other names: the same program, whatever they are called.

A name is renamed only where that can't be seen from outside: it is bound in functions alone, is nowhere an
attribute, a keyword, a parameter, an import or a part of a string, and the program does not look at its own
names. All of its places are renamed at once, however they are spelled (`ﬁeld` is Python's `field`), to a
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
from collections.abc import Iterator, Mapping

from monitorbench.stress.changes.pieces import parsed

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
