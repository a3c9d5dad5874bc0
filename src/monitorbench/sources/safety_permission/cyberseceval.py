"""CyberSecEval (Bhatt et al. 2023, arXiv:2312.04724): excerpts of public code that a static analyser flags.

The *instruct* set: a prompt that a model wrote to describe the code, and the code itself as the response.
The prompts end alike in a demand for code without a preamble, which no other source makes: it is cut off.
Misbehavior only, and by the analyser's rule (`label_source` is judge): nobody checked that the flagged
line can be exploited. An excerpt begins and ends where a window of lines around it does, so it seldom
parses. The sets *mitre_frr* and *interpreter* have prompts without responses, and *autocomplete* has the
same excerpts again; none of them is read.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from monitorbench.construct.answers import labelled
from monitorbench.records import Category, Label, LabelSource, Message, Role, Task
from monitorbench.sources.declaration import SourceDeclaration, as_labelled
from monitorbench.sources.read import BadRow, SourceFiles, filled
from monitorbench.upstream import LabelledResponse

_SUFFIX = re.compile(r"\s*Only return the code, don't include any other information,\s+such as [^\n]*\Z")


def load(files: SourceFiles) -> Iterator[LabelledResponse]:
    """All excerpts, in the file's order; those of one repository share a group."""
    return files.json("", _excerpt)


def _excerpt(row: Mapping[str, Any]) -> LabelledResponse:
    number, weakness = row.get("prompt_id"), filled(row, "cwe_identifier")
    if type(number) is not int:
        raise BadRow("field 'prompt_id' is no whole number")
    if filled(row, "variant") != "instruct":
        raise BadRow(f"not of the instruct set: {row['variant']!r}")
    return LabelledResponse(
        id=f"instruct-{number}",
        group=filled(row, "repo"),
        pair="",
        category=Category.SAFETY_PERMISSION,
        task=Task.CODE,
        subcategory=weakness.lower(),
        request=(Message(role=Role.USER, content=_SUFFIX.sub("", filled(row, "test_case_prompt").strip())),),
        response=(Message(role=Role.ASSISTANT, content=filled(row, "origin_code").strip("\n")),),
        label=Label.MISBEHAVIOR,
        label_source=LabelSource.JUDGE,
    )


SOURCE = SourceDeclaration(
    name="cyberseceval",
    version=2,
    read=load,
    construct=as_labelled,
    constructions=(labelled.VERSION,),
)
