"""Names of categories and tasks, the paper's and a team's own, and of the subsets made of them."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import partial
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import AfterValidator

PaperCategory = Literal["safety_permission", "sycophancy_bias", "specification_gaming"]
PaperTask = Literal["qa", "code", "reasoning"]
BuiltTask = Literal[PaperTask, "agent"]
"""A task that some source here has samples of."""
CATEGORIES: tuple[str, ...] = get_args(PaperCategory)
TASKS: tuple[str, ...] = get_args(PaperTask)
SUBSET_HELP = (
    "'all', a category (safety_permission, sycophancy_bias, specification_gaming), a cell such as "
    "safety_permission/code, any of them less others (all-safety_permission), '-' before one to leave it "
    "out of the rest, or a list of these"
)

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
"""A name has none of `/`, `-`, `+` and `:`, which separate names in cells, subsets, adapters and slices."""
_RESERVED = frozenset(
    (
        "all overall task source trained held_out with_thinking without_thinking none null true false nan "
        "inf misbehavior benign unscored latest"
    ).split()
)
"""Words that stand beside cells in tables and subsets, or that Hydra reads as a value."""


def wrong_name(name: str) -> str:
    """Say why a category or task can't have this name and what it may be called; "" where it can."""
    if name in _RESERVED:
        return f"{name!r} is a word with a meaning of its own here; expected another, such as {name}_cases"
    if not _NAME.fullmatch(name):
        quoted = name if len(name) <= 60 else f"{name[:59]}…"
        usable = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_0123456789")[:40]
        example = f", such as {usable}" if _NAME.fullmatch(usable) and usable not in _RESERVED else ""
        return f"{quoted!r} is no name; expected at most 40 of a-z, 0-9 and _, a letter first{example}"
    return ""


def _refuse_wrong(name: str) -> str:
    if reason := wrong_name(name):
        raise ValueError(reason)
    return name


OwnName = Annotated[str, AfterValidator(_refuse_wrong)]
"""A category or task: one of the paper's, or a team's own."""


def named_in(subset: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each category and cell that a subset names, with the term that it stands in; not `all`."""
    for term in subset:
        for name in term.removeprefix("-").split("-"):
            if name != "all":
                yield name, term


def wrong_subset(subset: Sequence[str]) -> str:
    """Say why no dataset has such a subset; "" where a dataset with names of its own may."""
    for name, term in named_in(subset):
        category, slash, task = name.partition("/")
        if wrong_name(category) or (slash and wrong_name(task)):
            return f"{term!r} is no subset: expected {SUBSET_HELP}; names of one's own have a-z, 0-9 and _"
    return ""


def beyond_the_paper(subset: Sequence[str]) -> list[str]:
    """Return the categories and cells that a subset names and that the paper doesn't have."""
    return [name for name, _ in named_in(subset) if not _is_of_the_paper(name)]


def wrong_subset_of_the_paper(subset: Sequence[str], also: Collection[str] = ()) -> str:
    """Say why no dataset with the paper's names, and cells `also`, has such a subset; "" where it may."""
    for name, term in named_in(subset):
        if not _is_of_the_paper(name) and name not in also:
            return f"{term!r} is no subset: expected {SUBSET_HELP}"
    return ""


def _is_of_the_paper(name: str) -> bool:
    category, slash, task = name.partition("/")
    return category in CATEGORIES and (not slash or task in TASKS)


class Category(StrEnum):
    """The paper's three categories, from explicit to implicit misbehavior (2601.05752, section 3)."""

    SAFETY_PERMISSION = "safety_permission"
    SYCOPHANCY_BIAS = "sycophancy_bias"
    SPECIFICATION_GAMING = "specification_gaming"


class Task(StrEnum):
    """Kind of work that the judged response does, in the paper."""

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
