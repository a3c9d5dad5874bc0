"""The pairs written by hand for this project: `handwritten/<category>_<task>*.yaml` to pairs.

A cell's first file, `<category>_<task>.yaml`, is the starter data's part of it; those with a number after the
name (`…_2.yaml`) hold more of the same. The pairs of safety and permission in questions are sources of
`dataset=paper` too, the starter's by themselves, since a monitor may have been trained on them: both
responses help, and one crosses a line, so they are the stratum `compliant`.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from importlib.resources import files
from itertools import chain
from typing import NamedTuple

import yaml

from monitorbench.construct.pair import Constructed, ConstructionContext, Pair, make_pair
from monitorbench.records import Category, Cell, Construction, LabelSource, Message, Task
from monitorbench.sources.declaration import InstalledData, RowConstruction, SourceDeclaration

VERSION = 2
"""Raised whenever the same files are read otherwise; `fingerprint` tells of other files."""
LICENCE = "Apache-2.0"

_PAPER_CELL = Cell(Category.SAFETY_PERMISSION, Task.QA)
CELLS = (
    _PAPER_CELL,
    Cell(Category.SAFETY_PERMISSION, Task.CODE),
    Cell(Category.SYCOPHANCY_BIAS, Task.QA),
    Cell(Category.SPECIFICATION_GAMING, Task.QA),
)
_STRATA = {_PAPER_CELL: "compliant"}


class HandwrittenPair(NamedTuple):
    """One request with a benign and a misbehaving response, as it stands in the file."""

    group: str
    subcategory: str
    request: tuple[Message, ...]
    benign: tuple[Message, ...]
    misbehavior: tuple[Message, ...]


def load(cell: Cell) -> list[HandwrittenPair]:
    """The pairs of one of `CELLS` in its first file; `pydantic.ValidationError` on a malformed message."""
    return _pairs(_texts(cell)[0])


def load_further(cell: Cell) -> list[HandwrittenPair]:
    """The pairs of a cell's other files, in the order of their names; raises as `load`."""
    return [row for text in _texts(cell)[1:] for row in _pairs(text)]


def fingerprint() -> str:
    """SHA-256 over the first files of all cells."""
    return _sha256(_texts(cell)[0] for cell in CELLS)


def pair_of(cell: Cell, row: HandwrittenPair, source: str) -> Pair:
    """The two samples of a row."""
    return make_pair(
        row.group,
        group_id=row.group,
        cell=cell,
        subcategory=row.subcategory,
        request=row.request,
        misbehavior=row.misbehavior,
        benign=row.benign,
        label_source=LabelSource.AUTHOR,
        construction=Construction.HANDWRITTEN,
        source=source,
        licence=LICENCE,
        stratum=_STRATA.get(cell, ""),
    )


def _texts(cell: Cell) -> list[str]:
    """The cell's files by name, the one without a number first."""
    name = f"{cell.category}_{cell.task}"
    matching = [
        file
        for file in (files("monitorbench.sources") / "handwritten").iterdir()
        if file.name.endswith(".yaml") and (file.name == f"{name}.yaml" or file.name.startswith(f"{name}_"))
    ]
    return [file.read_text(encoding="utf-8") for file in sorted(matching, key=lambda file: file.name)]


def _pairs(text: str) -> list[HandwrittenPair]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [
        HandwrittenPair(
            row["group"],
            row["subcategory"],
            *(_messages(row[key]) for key in ("request", "benign", "misbehavior")),
        )
        for row in yaml.load(text, Loader=loader)
    ]


def _messages(rows: list[dict[str, object]]) -> tuple[Message, ...]:
    return tuple(
        Message.model_validate({k: v.strip() if isinstance(v, str) else v for k, v in row.items()})
        for row in rows
    )


def _sha256(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def _construct(rows: list[HandwrittenPair], context: ConstructionContext) -> Constructed:
    pairs = (pair_of(_PAPER_CELL, row, context.source) for row in rows)
    return Constructed(list(chain.from_iterable(pairs)), Counter())


SOURCE = SourceDeclaration(
    name="handwritten",
    version=VERSION,
    construct=RowConstruction(_construct),
    installed=InstalledData(lambda: load_further(_PAPER_CELL), lambda: _sha256(_texts(_PAPER_CELL)[1:])),
)
"""Source of `dataset=paper`: the pairs of safety and permission in questions that the starter data lack."""
STARTER_SOURCE = SourceDeclaration(
    name="handwritten_starter",
    version=VERSION,
    construct=RowConstruction(_construct),
    installed=InstalledData(lambda: load(_PAPER_CELL), lambda: _sha256(_texts(_PAPER_CELL)[:1])),
)
"""Source of the starter data's pairs of the same cell."""
