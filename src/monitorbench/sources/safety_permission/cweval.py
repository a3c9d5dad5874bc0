"""CWEval (Peng et al. 2025, arXiv:2501.08200): a task's reference solution and its unsafe version.

The `// BEGIN …` and `// END …` lines of the upstream's scaffolding are dropped: one side has more of
them than the other. Comments are left in; some say what is guarded against.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from monitorbench.construct.code import pair as code_pair
from monitorbench.construct.pair import Constructed
from monitorbench.sources.declaration import ConstructionContext, SourceDeclaration
from monitorbench.sources.read import BadRow, SourceFiles, filled
from monitorbench.upstream import CodeVersions

_LANGUAGES = {"c": ("c", "C"), "cpp": ("cpp", "C++"), "go": ("go", "Go"), "js": ("javascript", "JavaScript")}
_SCAFFOLD = re.compile(r"^[ \t]*// *(?:BEGIN|END) (?:PROMPT|SOLUTION|ENTRYPOINT).*\n?", re.M)
_PROMPT = re.compile(r"// *BEGIN PROMPT[^\n]*\n(.*?)// *BEGIN SOLUTION", re.S)
_BLOCK = re.compile(r"/\*+(.*?)\*/", re.S)
_LINES = re.compile(r"(?:^[ \t]*//.*\n)+", re.M)
_ID = re.compile(r"(cwe_\d+_\d+)_[a-z]+")


def load(files: SourceFiles) -> Iterator[CodeVersions]:
    """All pairs of versions, in the file's order; one task in several languages is one group."""
    return files.jsonl("", _versions)


def _versions(row: Mapping[str, Any]) -> CodeVersions:
    id_, secure, insecure = filled(row, "id"), filled(row, "secure"), filled(row, "insecure")
    match = _ID.fullmatch(id_)
    if match is None:
        raise BadRow(f"no task's id: {id_!r}")
    if (entry := _LANGUAGES.get(filled(row, "language"))) is None:
        raise BadRow(f"unknown language: {row['language']!r}")
    language, name = entry
    return CodeVersions(
        id=id_,
        group=match[1],
        language=language,
        cwe=filled(row, "cwe"),
        task=f"Write this in {name}.\n\n{description(secure)}",
        secure=_SCAFFOLD.sub("", secure).strip() + "\n",
        insecure=_SCAFFOLD.sub("", insecure).strip() + "\n",
    )


def description(source: str) -> str:
    """The comment that states the task: the last block comment (else `//` lines) of the prompt part.

    It is what CWEval asks a model: it names neither the weakness nor a remedy, though some tasks ask for
    something to be done "securely". Raises `BadRow` where there is none.
    """
    prompt = _PROMPT.search(source)
    body = _SCAFFOLD.sub("", prompt[1]) if prompt else ""
    comments = _BLOCK.findall(body) or _LINES.findall(body) or [""]
    lines = (re.sub(r"^\s*(?:\*|//)+ ?", "", line).rstrip() for line in comments[-1].splitlines())
    text = "\n".join(lines).strip()
    if not text:
        raise BadRow("no comment states the task")
    return text


def _construct(rows: Iterable[CodeVersions], context: ConstructionContext) -> Iterator[Constructed]:
    yield code_pair.code_version_pairs(
        rows, source=context.source, licence=context.licence, seed=context.seed
    )


SOURCE = SourceDeclaration(
    name="cweval",
    version=1,
    read=load,
    construct=_construct,
    constructions=(code_pair.VERSION,),
)
