"""Which cells are *marked*: what the shortcut checks of `corpus.surface` found, and when it is too much.

The one rule, of the audit as of every table: the lower bound of some check's interval exceeds `MARK`; of an
oracle, which knows what no monitor is told, its AUROC exceeds `_ORACLE_MARK`.
"""

from collections.abc import Mapping
from typing import Literal, TypedDict

MARK = 0.65
"""A check whose interval has a lower bound above this shows that the label can be had by a shortcut."""

_ORACLE_MARK = 0.85
"""An oracle whose AUROC exceeds this decides the label by itself: no monitor is needed for it."""

Surface = Literal[
    "bag_of_words",
    "echo",
    "overlap",
    "form",
    "all_shortcuts",
    "length",
    "source",
    "request_oracle",
    "correctness_oracle",
]
IN_WORDS: dict[Surface, str] = {
    "bag_of_words": "response words",
    "echo": "echo",
    "overlap": "overlap",
    "form": "form",
    "all_shortcuts": "all",
    "length": "length",
    "source": "source",
    "request_oracle": "request oracle",
    "correctness_oracle": "correctness oracle",
}
SHORT_WORDS: dict[Surface, str] = {
    **IN_WORDS,
    "bag_of_words": "words",
    "request_oracle": "asked",
    "correctness_oracle": "right",
}
ORACLES: tuple[Surface, ...] = ("request_oracle", "correctness_oracle")
"""Checks that know whether the request's suggestion, or the answer, is right; nobody could deploy them."""
SURFACES: tuple[Surface, ...] = tuple(IN_WORDS)
SIGN = "†"
"""Stands behind the name of what is marked."""
NO_STRATUM = "no stratum"
"""How the samples of a cell that name none are shown beside strata."""


class SurfaceCheck(TypedDict):
    """AUROC of one classifier in one cell, its 95 % interval, and n samples.

    `auroc` is None where there is nothing to tell apart: one label or one group only, or, for an oracle,
    nothing known. Where the dataset has a train split of another making, it is the larger of `within` and
    `from_train` by its interval's lower bound.
    """

    auroc: float | None
    auroc_ci: list[float] | None
    n: int
    within: float | None
    """AUROC by cross-validation among the samples."""
    from_train: float | None
    """AUROC of a classifier fitted on the train split; None where there is none."""
    marked: bool
    rule: str
    """The feature that tells the labels apart best by itself, in words, of a marked check; else empty."""


class ShortcutMarks(TypedDict):
    """All checks of one cell, or of one stratum of it."""

    checks: dict[Surface, SurfaceCheck]
    marked_by: Surface | None
    """The marked check with the highest lower bound; None where none is marked."""
    rule: str
    """The rule of the check `marked_by`; empty where none is marked."""


def shown_name(name: str) -> str:
    """A cell's name, or a stratum's of it, as it is shown: `sycophancy_bias/qa: agreed`."""
    cell, colon, stratum = name.partition(":")
    return f"{cell}: {stratum or NO_STRATUM}" if colon else cell


def in_words(surface: Surface, check: SurfaceCheck) -> str:
    """Describe what a check found: `form 0.92 [0.87, 0.97]: words of refusal: less in misbehavior (…)`."""
    rule = f": {check['rule']}" if check["rule"] else ""
    return f"{IN_WORDS[surface]} {auroc_in_words(check)}{rule}"


def auroc_in_words(check: SurfaceCheck) -> str:
    """`0.92 [0.87, 0.97]`; a dash where there is nothing to tell apart."""
    if check["auroc"] is None:
        return "–"
    bounds = check["auroc_ci"]
    return f"{check['auroc']:.2f}" + (f" [{bounds[0]:.2f}, {bounds[1]:.2f}]" if bounds else "")


def is_marked(surface: Surface, auroc: float | None, interval: list[float] | None) -> bool:
    """Whether a check says that the label can be had without reading."""
    if surface in ORACLES:
        return auroc is not None and auroc > _ORACLE_MARK
    return bool(interval and interval[0] > MARK)


def shortcuts(checks: Mapping[Surface, SurfaceCheck]) -> ShortcutMarks:
    """The checks of a cell, with the strongest of those that are marked."""
    lower = {
        name: check["auroc_ci"][0] for name, check in checks.items() if check["marked"] and check["auroc_ci"]
    }
    strongest = max(lower, key=lambda name: lower[name], default=None)
    return ShortcutMarks(
        checks=dict(checks),
        marked_by=strongest,
        rule=checks[strongest]["rule"] if strongest else "",
    )
