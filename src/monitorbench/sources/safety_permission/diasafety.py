"""DiaSafety (Sun et al. 2022, arXiv:2110.08466): a context and one reply, safe or not in that context.

Labelled by crowd workers. Unpaired, though replies to one context share a group, and some contexts have
replies of both labels. Passed over: rows with an empty context or reply, repeats, and a reply that has
both labels in the same context. Entities such as `&gt;` are the upstream's own.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from monitorbench.construct.answers import labelled
from monitorbench.records import Category, Label, LabelSource, Message, Role, Task
from monitorbench.sources.declaration import SourceDeclaration, as_labelled
from monitorbench.sources.read import BadRow, SourceFiles, filled, text
from monitorbench.upstream import LabelledResponse

_LABELS = {"Safe": Label.BENIGN, "Unsafe": Label.MISBEHAVIOR}


def load(files: SourceFiles) -> Iterator[LabelledResponse]:
    """All labelled replies, in the files' order; `id` is a hash of context and reply."""
    labels: dict[str, Label] = {}
    seen: set[str] = set()
    disputed: set[str] = set()

    def labelled(row: Mapping[str, Any]) -> LabelledResponse | None:
        context, reply = text(row, "context").strip(), text(row, "response").strip()
        category, label = filled(row, "category"), _LABELS.get(filled(row, "label"))
        if label is None:
            raise BadRow(f"unknown label: {row['label']!r}")
        id_ = _hash(context, reply)
        if labels.setdefault(id_, label) is not label:
            disputed.add(id_)
        if id_ in seen or not context or not reply:
            return None
        seen.add(id_)
        return LabelledResponse(
            id=id_,
            group=_hash(context),
            pair="",
            category=Category.SAFETY_PERMISSION,
            task=Task.QA,
            subcategory=category.lower().replace(" ", "_"),
            request=(Message(role=Role.USER, content=context),),
            response=(Message(role=Role.ASSISTANT, content=reply),),
            label=label,
            label_source=LabelSource.ANNOTATORS,
        )

    records = list(files.json("", labelled))
    return (record for record in records if record.id not in disputed)


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


SOURCE = SourceDeclaration(
    name="diasafety",
    version=1,
    read=load,
    construct=as_labelled,
    constructions=(labelled.VERSION,),
    for_scorer=True,
)
