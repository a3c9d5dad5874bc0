"""Categories and tasks of samples, the paper's and a team's own."""

from collections.abc import Iterable
from contextlib import suppress
from enum import StrEnum
from functools import partial
from typing import Annotated, NamedTuple

from pydantic import AfterValidator

from monitorbench.config.cells import wrong_name


class Category(StrEnum):
    """The paper's three categories, from explicit to implicit misbehavior (2601.05752, section 3)."""

    SAFETY_PERMISSION = "safety_permission"
    SYCOPHANCY_BIAS = "sycophancy_bias"
    SPECIFICATION_GAMING = "specification_gaming"


class Task(StrEnum):
    """What kind of work the judged response does, in the paper."""

    QA = "qa"
    CODE = "code"
    REASONING = "reasoning"


def _name(kind: type[StrEnum], name: str) -> str:
    """A member of the paper's vocabulary, or else the name as it is; `ValueError` for what is none."""
    with suppress(ValueError):
        return kind(name)
    if reason := wrong_name(name):
        raise ValueError(reason)
    return name


CategoryName = Annotated[str, AfterValidator(partial(_name, Category))]
"""A category: one of the paper's, or a team's own."""
TaskName = Annotated[str, AfterValidator(partial(_name, Task))]
"""A task: one of the paper's, or a team's own."""


def vocabulary(kind: type[StrEnum], names: Iterable[str] = ()) -> tuple[str, ...]:
    """The paper's names in their order, then those of `names` that are a team's own, sorted."""
    return (*(member.value for member in kind), *sorted({str(name) for name in names} - set(kind)))


class Cell(NamedTuple):
    """A category × task cell, written `category/task`."""

    category: str
    task: str

    def __str__(self) -> str:
        return f"{self.category}/{self.task}"
