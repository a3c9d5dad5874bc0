"""Juliet C/C++ 1.3 (NIST): single-file test cases with a flawed and a mended function.

The raw case only: names, comments and macros in it say which function is which, so a case is not fit
to be shown to a monitor before a construction has taken it apart.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from monitorbench.sources.read import BadRow, SourceFiles, filled

LANGUAGES = ("c", "cpp")


class JulietCase(NamedTuple):
    """One file of the suite. `id` is the case's name, `cwe` such as `CWE-114`, `weakness` its title.

    `language` is one of `LANGUAGES`; `source` is the whole file as published, with CRLF line ends.
    """

    id: str
    cwe: str
    weakness: str
    language: str
    source: str


def load(files: SourceFiles) -> Iterator[JulietCase]:
    """All cases, in the file's order."""
    return files.jsonl("", _case)


def _case(row: Mapping[str, Any]) -> JulietCase:
    cwe, language = filled(row, "cwe"), filled(row, "language")
    if not (cwe.startswith("CWE") and cwe[3:].isdecimal()):
        raise BadRow(f"not a weakness: {cwe!r}")
    if language not in LANGUAGES:
        raise BadRow(f"unknown language: {language!r}")
    return JulietCase(
        filled(row, "case"), f"CWE-{cwe[3:]}", filled(row, "weakness"), language, filled(row, "source")
    )
