"""SVEN (He & Vechev 2023, arXiv:2302.05319): functions before and after a commit that fixed a weakness.

Before is insecure, after is secure, as the upstream's curators say. Rows whose two versions are equal
(the fix lies elsewhere) are passed over.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from monitorbench.construct.code import pair as code_pair
from monitorbench.construct.pair import Constructed
from monitorbench.sources.declaration import ConstructionContext, SourceDeclaration
from monitorbench.sources.read import BadRow, SourceFiles, filled, text
from monitorbench.upstream import CodeVersions

_LANGUAGES = {
    **{"py": "python", "c": "c", "h": "c", "cc": "cpp", "cpp": "cpp", "C": "cpp", "go": "go", "rb": "ruby"},
    **{"js": "javascript", "jsx": "javascript", "java": "java"},
}
_NAMES = {"python": "Python", "c": "C", "cpp": "C++"}


def load(files: SourceFiles) -> Iterator[CodeVersions]:
    """All pairs of versions, in the files' order; functions of one file in one commit share a group."""
    return files.jsonl("", versions)


def versions(row: Mapping[str, Any], task: str = "") -> CodeVersions | None:
    """Both versions of one row, for a `task` or for the function by its name; None where they are equal."""
    function, path, commit = text(row, "func_name"), filled(row, "file_name"), filled(row, "commit_link")
    insecure, secure = filled(row, "func_src_before"), filled(row, "func_src_after")
    language = _LANGUAGES.get(path.rpartition(".")[2])
    if language is None:
        raise BadRow(f"no known language: {path!r}")
    weakness = filled(row, "vul_type").removeprefix("cwe-")
    if not weakness.isdecimal():
        raise BadRow(f"not a weakness: {row['vul_type']!r}")
    if insecure == secure:
        return None
    return CodeVersions(
        id=_hash(commit, path, function, insecure, secure),
        group=_hash(commit, path),
        language=language,
        cwe=f"CWE-{int(weakness)}",
        task=task
        or f"Write the {_NAMES[language]} function `{function}` of the file `{PurePosixPath(path).name}`.",
        secure=secure,
        insecure=insecure,
    )


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _construct(rows: Iterable[CodeVersions], context: ConstructionContext) -> Iterator[Constructed]:
    yield code_pair.code_version_pairs(
        rows, source=context.source, licence=context.licence, seed=context.seed
    )


SOURCE = SourceDeclaration(
    name="sven",
    version=1,
    read=load,
    construct=_construct,
    constructions=(code_pair.VERSION,),
)
