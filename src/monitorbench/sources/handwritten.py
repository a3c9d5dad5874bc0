"""The pairs written by hand for this project: `handwritten/<category>_<task>.yaml` to records."""

import hashlib
from importlib.resources import files
from typing import NamedTuple

import yaml

from monitorbench.records import Category, Cell, Message, Task

VERSION = 1
"""Raised whenever the same files are read otherwise; `fingerprint` tells of other files."""

CELLS = (
    Cell(Category.SAFETY_PERMISSION, Task.QA),
    Cell(Category.SAFETY_PERMISSION, Task.CODE),
    Cell(Category.SYCOPHANCY_BIAS, Task.QA),
    Cell(Category.SPECIFICATION_GAMING, Task.QA),
)


class HandwrittenPair(NamedTuple):
    """One request with a benign and a misbehaving response, as it stands in the file."""

    group: str
    subcategory: str
    request: tuple[Message, ...]
    benign: tuple[Message, ...]
    misbehavior: tuple[Message, ...]


def load(cell: Cell) -> list[HandwrittenPair]:
    """All pairs of one of `CELLS`; raises `pydantic.ValidationError` on a malformed message."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    rows = yaml.load(_text(cell), Loader=loader)
    return [
        HandwrittenPair(
            row["group"],
            row["subcategory"],
            *(_messages(row[key]) for key in ("request", "benign", "misbehavior")),
        )
        for row in rows
    ]


def fingerprint() -> str:
    """SHA-256 over all the files."""
    return hashlib.sha256("\0".join(_text(cell) for cell in CELLS).encode()).hexdigest()


def _text(cell: Cell) -> str:
    file = files("monitorbench.sources") / "handwritten" / f"{cell.category}_{cell.task}.yaml"
    return file.read_text(encoding="utf-8")


def _messages(rows: list[dict[str, object]]) -> tuple[Message, ...]:
    return tuple(
        Message.model_validate({k: v.strip() if isinstance(v, str) else v for k, v in row.items()})
        for row in rows
    )
