"""Code as a real parser sees it: comments taken out, names that tell a label replaced, nothing else touched.

Promises: string literals, calls of foreign interfaces and layout stay as they are; a name is replaced
only where the code itself declares it, everywhere at once; both functions are idempotent.
"""

import importlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

import yaml
from tree_sitter import Language, Node, Parser, Query, QueryCursor

LEAK_WORDS = frozenset(
    "bad good goodness insecure secure secured securely unsafe unsafely safe safely safer vulnerable vuln "
    "vulnerability flaw flawed fix fixed fixes fixing patched hardened benign malicious exploit exploited "
    "exploitable cwe cve evil wrong correct incorrect juliet".split()
)
"""Words of a name that say which version it stands in. `sanitize` and `escape` say what is done, and stay."""

_SEGMENT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|_+|[^A-Za-z0-9_]+")
_SUSPECT = re.compile("|".join(sorted(LEAK_WORDS)), re.IGNORECASE)
_RESERVED = frozenset(
    "as in is if do for new not and or del def try let var int get set use fn go end case else goto char "
    "void this self with from none true false null type func enum long auto break class const float short "
    "union while yield raise return static struct switch import global lambda string default double signed "
    "unsigned volatile register continue pass final assert except finally package super throw public "
    "private protected delete function".split()
)
_RAW_PIECE = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/|\w+', re.DOTALL)


_GRAMMARS = yaml.safe_load(
    (files("monitorbench.construct.code") / "grammars.yaml").read_text(encoding="utf-8")
)


class _Tools(NamedTuple):
    parser: Parser
    comments: Query
    names: Query
    declarations: Query


class Names(NamedTuple):
    """Names in a piece of code: declared and reachable after a dot, declared as variables, and all."""

    reachable: frozenset[str]
    local: frozenset[str]
    all: frozenset[str]

    @property
    def declared(self) -> frozenset[str]:
        """Every name the code declares."""
        return self.reachable | self.local


@cache
def _tools(language: str) -> _Tools:
    grammar = _GRAMMARS[language]
    module = importlib.import_module(grammar["module"])
    compiled = Language(getattr(module, grammar.get("function", "language"))())
    return _Tools(
        Parser(compiled), *(Query(compiled, grammar[name]) for name in ("comments", "names", "declarations"))
    )


def parses(code: str, language: str) -> bool:
    """Whether the parser finds no error; raises `KeyError` for a language without a grammar."""
    return not _read(code, language)[1].has_error


def without_comments(code: str, language: str) -> str:
    """The code without comments and docstrings; a line that held nothing else goes with them."""
    data = _encoded(code)
    tools = _tools(language)
    captures = QueryCursor(tools.comments).captures(tools.parser.parse(data).root_node)
    edits = [(node.start_byte, node.end_byte, b"") for node in captures.get("c", ())]
    edits += [_docstring_edit(node) for node in captures.get("doc", ())]
    for node in captures.get("raw", ()):
        raw = data[node.start_byte : node.end_byte].decode(errors="surrogateescape")
        bare = _RAW_PIECE.sub(lambda m: "" if m[0][:2] in ("//", "/*") else m[0], raw)
        if bare != raw:
            edits.append((node.start_byte, node.end_byte, _encoded(bare)))
    for start, end, new in sorted(edits, reverse=True):
        data = _cut(data, start, end) if not new else data[:start] + new + data[end:]
    return _decoded(data).strip("\n") + "\n"


def names(code: str, language: str) -> Names:
    """The names in the code, and which of them it declares."""
    _, root, used = _read(code, language)
    declared = QueryCursor(_tools(language).declarations).captures(root)
    pinned = _texts(used.get("k", ()))
    return Names(
        frozenset(_texts(declared.get("any", ())) - pinned),
        frozenset(_texts(declared.get("local", ())) - pinned),
        frozenset().union(*(_texts(used.get(kind, ())) for kind in "nmk")),
    )


def renamed(code: str, language: str, mapping: Mapping[str, str], declared: Names) -> str:
    """The code with every name of `mapping` replaced; after a dot only where it is declared reachable."""
    data, _, used = _read(code, language)
    members = {(node.start_byte, node.end_byte) for node in used.get("m", ())}
    spots = {(node.start_byte, node.end_byte) for node in used.get("n", ())} | members
    edits = []
    for start, end in spots:
        name = data[start:end].decode(errors="surrogateescape")
        if name in mapping and ((start, end) not in members or name in declared.reachable):
            edits.append((start, end, mapping[name]))
    for node in used.get("raw", ()):
        raw = data[node.start_byte : node.end_byte].decode(errors="surrogateescape")
        edits.append((node.start_byte, node.end_byte, _RAW_PIECE.sub(_replacing(mapping), raw)))
    for start, end, new in sorted(edits, reverse=True):
        data = data[:start] + _encoded(new) + data[end:]
    return _decoded(data)


@lru_cache(maxsize=4)
def _read(code: str, language: str) -> tuple[bytes, Node, dict[str, list[Node]]]:
    """Bytes, tree and names of a code; what was just read for its names is not parsed again to rename it."""
    data, tools = _encoded(code), _tools(language)
    root = tools.parser.parse(data).root_node
    return data, root, QueryCursor(tools.names).captures(root)


def may_leak(code: str) -> bool:
    """Cheap and generous: whether a leaking name may be in the code at all."""
    return _SUSPECT.search(code) is not None


def neutral(name: str) -> str:
    """The name without its leaking words: `is_bad_path` gives `is_path`; one that has none is unchanged."""
    segments = _SEGMENT.findall(name)
    remaining = [s for s in segments if s.lower() not in LEAK_WORDS]
    if len(remaining) == len(segments):
        return name
    text = re.sub(r"__+", "_", "".join(remaining))
    text = text.rstrip("_") if not name.endswith("_") else text
    text = text.lstrip("_") if not name.startswith("_") else text
    text = text.lstrip("0123456789")
    if name[:1].islower() and text[:1].isupper() and not text.isupper():
        text = text[0].lower() + text[1:]
    if not text.strip("_0123456789"):
        text = "item"
    return unreserved(text)


def unreserved(name: str) -> str:
    """The name, or another one where it is a word of one of the languages."""
    return f"{name}_value" if name.lower() in _RESERVED else name


def neutral_names(leaking: Iterable[str], texts: Sequence[Collection[str]]) -> dict[str, str]:
    """A neutral name for each, in their order, free in every one of `texts` (the names in it) that has it.

    Names that never stand in the same text may get the same new one: `path_safe` of one version and
    `path_unsafe` of the other are both `path`.
    """
    used = [set(text) for text in texts]
    mapping = {}
    for name in leaking:
        here = [u for u, text in zip(used, texts, strict=True) if name in text]
        base = new = neutral(name)
        number = 2
        while any(new in u for u in here):
            new = f"{base}{number}"
            number += 1
        for u in here:
            u.add(new)
        mapping[name] = new
    return mapping


def _docstring_edit(node: Node) -> tuple[int, int, bytes]:
    statement = node.parent
    block = statement.parent if statement else None
    alone = (
        block is not None
        and block.type == "block"
        and sum(c.type != "comment" for c in block.named_children) == 1
    )
    return node.start_byte, node.end_byte, b"pass" if alone else b""


def _cut(data: bytes, start: int, end: int) -> bytes:
    """Take out [start, end): the whole line where nothing else is on it, never joining two tokens."""
    end -= data[start:end].endswith(b"\n")
    line_start = data.rfind(b"\n", 0, start) + 1
    line_end = data.find(b"\n", end)
    line_end = len(data) if line_end < 0 else line_end
    before, after = data[line_start:start], data[end:line_end]
    if not before.strip() and not after.strip():
        return data[:line_start] + data[line_end + 1 :]
    if not after.strip():
        return data[:line_start] + before.rstrip() + data[line_end:]
    if not before.strip():
        return data[:start] + after.lstrip() + data[line_end:]
    return data[:start].rstrip(b" \t") + b" " + data[end:].lstrip(b" \t")


def _replacing(mapping: Mapping[str, str]) -> Callable[[re.Match[str]], str]:
    return lambda match: mapping.get(match[0], match[0])


def _texts(nodes: Iterable[Node]) -> set[str]:
    return {node.text.decode(errors="surrogateescape") for node in nodes if node.text}


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
