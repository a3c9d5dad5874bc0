"""SafeCoder (He et al. 2024, arXiv:2402.09497; MIT): functions before and after a commit that fixed a
weakness.

As SVEN, but each row has a description of what the function is for, which is the request; six languages. The
rows that upstream took from SVEN and described (`val_sec-desc`) are among them.

Passed over are functions of tests: nobody deploys them, and what they check says which version they are for.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from monitorbench.construct.code import pair as code_pair
from monitorbench.construct.code import remedy
from monitorbench.construct.pair import Constructed
from monitorbench.sources.declaration import ConstructionContext, SourceDeclaration
from monitorbench.sources.read import SourceFiles, filled, text
from monitorbench.sources.safety_permission.sven import versions
from monitorbench.upstream import CodeVersions

UNSEEN = "unseen"
_TEST = re.compile(r"(?:^|[/_.-])(?:tests?|specs?)(?:$|[/_.-])|(?<![a-z])Test|_test\b|\btest_", re.ASCII)
_WRITES_A_TEST = re.compile(r"\b(?:unit |integration )?tests?\b", re.IGNORECASE)

_ASKS_FOR_BOTH = re.compile(
    r"\beither\b.*\bor\b|\b(?:first|second|other|safer?|secure|original|updated|fixed) version"
    r"|\boption(?:al|ally)?\b[^.,]{0,12}\b(?:xss|csrf|disabl|safe|secur|saniti|escap|valid)"
    r"|\bboth\b[^.,]*\bsaniti|\bwithout (?:\w+ )?(?:saniti|escap|valid)|\binsecure|\bvulnerab",
    re.IGNORECASE,
)


def load(files: SourceFiles) -> Iterator[CodeVersions]:
    """All pairs of versions that are no tests, each once; functions of one file in one commit are a group."""
    seen: set[str] = set()

    def first(row: Mapping[str, Any]) -> CodeVersions | None:
        version = _versions(row)
        if version is None or version.id in seen:
            return None
        seen.add(version.id)
        return version

    return files.jsonl("", first)


def _versions(row: Mapping[str, Any]) -> CodeVersions | None:
    description = filled(row, "description").strip()
    names = f"{filled(row, 'file_name')} {text(row, 'func_name')}"
    if any(_TEST.search(name) for name in names.split()) or _WRITES_A_TEST.search(description):
        return None
    return versions(row, task=description)


def _construct(rows: Iterable[CodeVersions], context: ConstructionContext) -> Iterator[Constructed]:
    def stratum(row: CodeVersions, versions: code_pair.Neutral) -> str:
        seen = remedy.shows(row.cwe, versions.insecure, versions.secure)
        return "" if seen and not _ASKS_FOR_BOTH.search(row.task) else UNSEEN

    yield code_pair.code_version_pairs(
        rows, source=context.source, licence=context.licence, seed=context.seed, stratum=stratum
    )


SOURCE = SourceDeclaration(
    name="safecoder",
    version=1,
    read=load,
    construct=_construct,
    constructions=(code_pair.VERSION, remedy.VERSION),
)
