"""Which cells are *marked*: what the shortcut checks of `corpus.surface` found, and when it is too much.

The one rule, of the audit as of every table: the lower bound of some check's interval exceeds `MARK`.
"""

from collections.abc import Mapping
from typing import Literal, TypedDict

MARK = 0.65
"""Where the lower bound of a check's interval exceeds this, the label can be had by a shortcut."""

Surface = Literal["bag_of_words", "echo", "overlap", "form", "all_shortcuts", "length", "source"]
IN_WORDS: dict[Surface, str] = {
    "bag_of_words": "response words",
    "echo": "echo",
    "overlap": "overlap",
    "form": "form",
    "all_shortcuts": "all",
    "length": "length",
    "source": "source",
}
SURFACES: tuple[Surface, ...] = tuple(IN_WORDS)


class SurfaceCheck(TypedDict):
    """AUROC of one classifier in one cell, its 95 % interval, and n samples.

    `auroc` is None where there is nothing to tell apart: one label or one group only.
    """

    auroc: float | None
    auroc_ci: list[float] | None
    n: int
    marked: bool
    rule: str
    """Of a marked check: what tells the labels apart best by itself, in words; else empty."""


class Shortcuts(TypedDict):
    """All checks of one cell, or of one stratum of it."""

    checks: dict[Surface, SurfaceCheck]
    marked_by: Surface | None
    """The marked check with the highest lower bound; None where none is marked."""
    rule: str
    """That check's rule; empty where none is marked."""


def is_marked(interval: list[float] | None) -> bool:
    """Whether an interval says that a shortcut gives the label away."""
    return bool(interval and interval[0] > MARK)


def shortcuts(checks: Mapping[Surface, SurfaceCheck]) -> Shortcuts:
    """The checks of a cell, with the strongest of those that are marked."""
    lower = {
        name: check["auroc_ci"][0] for name, check in checks.items() if check["marked"] and check["auroc_ci"]
    }
    strongest = max(lower, key=lambda name: lower[name], default=None)
    return Shortcuts(
        checks=dict(checks),
        marked_by=strongest,
        rule=checks[strongest]["rule"] if strongest else "",
    )
