"""What training did to a cell, in a word: the reading of a transfer matrix.

A word rests on three tests of tuned against base over the same samples: AUROC, miss rate and false alarm
rate (`cluster_tests`). A difference counts where its p, corrected by Holm over *all* tests of the matrix
(every adapter, prompt and cell), is below `LEVEL`:

- *improved*: AUROC rose;
- *discrimination lost*: AUROC fell;
- *threshold moved*: no difference in AUROC was found, but one in MR or FAR;
- *no change*: none was found in any of the three.

Not finding a difference does not show that there is none. So beside the last two stands whether AUROC was
*shown* unchanged: its 95 % interval lies within the margin that somebody chose. None of the words is given
where AUROC can't be had (an engine without log-probabilities, one label).
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TypedDict

from monitorbench.metrics.cells import OVERALL
from monitorbench.metrics.compare import holm
from monitorbench.metrics.transfer import Difference

LEVEL = 0.05
MEASURES = ("auroc", "miss_rate", "false_alarm_rate")


class Word(StrEnum):
    """What happened in a cell."""

    IMPROVED = "improved"
    THRESHOLD_MOVED = "threshold moved"
    DISCRIMINATION_LOST = "discrimination lost"
    NO_CHANGE = "no change"


class Told(TypedDict):
    """One adapter, under one prompt, in one cell."""

    word: str | None
    """A value of `Word`."""
    auroc_shown_unchanged: bool | None
    """Whether the 95 % interval of the AUROC difference lies within ± the margin; None without one."""
    auroc_p_holm: float | None
    miss_rate_p_holm: float | None
    false_alarm_rate_p_holm: float | None


class Matrix(TypedDict):
    """The words of a transfer matrix, and what they rest on."""

    words: dict[str, dict[str, dict[str, Told]]]
    """Adapter, prompt, cell: `overall` and each `category/task`."""
    n_tests: int
    """The family of Holm's correction."""
    level: float
    auroc_margin: float


Transfer = Mapping[str, Mapping[str, Mapping[str, Difference]]]


def matrix(transfer: Transfer, auroc_margin: float) -> Matrix:
    """The words of all differences of `results["transfer"]`; `auroc_margin` in (0, 1]."""
    entries = list(_entries(transfer))
    ps = [
        (i, name, p)
        for i, (*_, d) in enumerate(entries)
        for name in MEASURES
        if (p := _p(d, name)) is not None
    ]
    corrected: list[dict[str, float]] = [{} for _ in entries]
    for (i, name, _), value in zip(ps, holm([p for *_, p in ps]), strict=True):
        corrected[i][name] = value
    words: dict[str, dict[str, dict[str, Told]]] = {}
    for (adapter, prompt, cell, d), found in zip(entries, corrected, strict=True):
        bounds = d["auroc_difference_ci"]
        words.setdefault(adapter, {}).setdefault(prompt, {})[cell] = Told(
            word=_word(d, found),
            auroc_shown_unchanged=(-auroc_margin <= bounds[0] and bounds[1] <= auroc_margin)
            if bounds
            else None,
            auroc_p_holm=found.get("auroc"),
            miss_rate_p_holm=found.get("miss_rate"),
            false_alarm_rate_p_holm=found.get("false_alarm_rate"),
        )
    return Matrix(words=words, n_tests=len(ps), level=LEVEL, auroc_margin=auroc_margin)


def _entries(transfer: Transfer) -> Iterator[tuple[str, str, str, Difference]]:
    """Each test cell, and all of them together; what is neither would be counted twice."""
    for adapter, by_prompt in transfer.items():
        for prompt, by_cell in by_prompt.items():
            for cell, difference in by_cell.items():
                if cell == OVERALL or "/" in cell:
                    yield adapter, prompt, cell, difference


def _p(difference: Difference, measure: str) -> float | None:
    match measure:
        case "auroc":
            return difference["auroc_p"]
        case "miss_rate":
            return difference["miss_rate_p"]
        case _:
            return difference["false_alarm_rate_p"]


def _word(difference: Difference, corrected: Mapping[str, float]) -> str | None:
    change = difference["auroc_difference"]
    if change is None or "auroc" not in corrected:
        return None
    if corrected["auroc"] < LEVEL:
        return (Word.IMPROVED if change > 0 else Word.DISCRIMINATION_LOST).value
    moved = any(corrected.get(name, 1.0) < LEVEL for name in ("miss_rate", "false_alarm_rate"))
    return (Word.THRESHOLD_MOVED if moved else Word.NO_CHANGE).value
