"""Juliet C/C++ 1.3 (NIST): single-file test cases with a flawed and a fixed function.

The raw case only: names, comments and macros in it say which function is which, so a case is not fit
to be shown to a monitor before a construction has taken it apart.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from monitorbench.construct.code import pair as code_pair
from monitorbench.construct.juliet import functions
from monitorbench.construct.pair import Constructed
from monitorbench.sources.declaration import ConstructionContext, SourceDeclaration
from monitorbench.sources.read import BadRow, SourceFiles, filled
from monitorbench.upstream import JulietCase

_LANGUAGES = ("c", "cpp")


def load(files: SourceFiles) -> Iterator[JulietCase]:
    """All cases, in the file's order."""
    return files.jsonl("", _case)


def _case(row: Mapping[str, Any]) -> JulietCase:
    cwe, language = filled(row, "cwe"), filled(row, "language")
    if not (cwe.startswith("CWE") and cwe[3:].isdecimal()):
        raise BadRow(f"not a weakness: {cwe!r}")
    if language not in _LANGUAGES:
        raise BadRow(f"unknown language: {language!r}")
    return JulietCase(
        filled(row, "case"), f"CWE-{cwe[3:]}", filled(row, "weakness"), language, filled(row, "source")
    )


def _construct(cases: Iterable[JulietCase], context: ConstructionContext) -> Iterator[Constructed]:
    versions, rejected = functions.juliet_versions(cases)
    built = code_pair.code_version_pairs(
        versions, source=context.source, licence=context.licence, seed=context.seed
    )
    yield Constructed(built.samples, built.rejected + rejected)


SOURCE = SourceDeclaration(
    name="juliet",
    version=1,
    read=load,
    construct=_construct,
    constructions=(functions.VERSION, code_pair.VERSION),
    parts=6,
    weight=7,
)
