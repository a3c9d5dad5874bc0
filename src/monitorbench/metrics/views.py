"""What it changes to show a monitor other parts: paired differences from what it is asked with first.

Promises: each is compared with the first over the samples that both scored, so that a sample which lacks what
a view wants counts for neither; every difference that was measured is in the family of Holm's correction.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypedDict

from monitorbench.metrics.columns import Columns
from monitorbench.metrics.cost_fronts import UsageFacts, tokens_of
from monitorbench.metrics.registry import cell_numbers
from monitorbench.metrics.significance import holm
from monitorbench.metrics.transfer import Measure, change, difference

COMPARED: tuple[Measure, ...] = ("auroc", "miss_rate_at_far_5")
"""Measures that are compared."""
_ALPHA = 0.05


class Asked(NamedTuple):
    """One way of asking a monitor, and its answers."""

    judged: Columns
    n_not_shown: int
    """Samples of whose response its view leaves nothing."""
    usage: UsageFacts


class SeenDifference(TypedDict):
    """One measure minus the first way's, over the samples that both scored."""

    difference: float | None
    difference_ci: list[float] | None
    """95 %, by question, not corrected."""
    p_holm: float | None
    """Corrected for all the differences of the comparison (Holm)."""
    shown: bool
    """Whether the corrected p is below .05."""


class SeenNumbers(TypedDict):
    """One way of asking: its own numbers, and what it changes."""

    n: int
    n_unscored: int
    n_not_shown: int
    n_both: int | None
    """Samples that the first way scored as well; None of the first."""
    auroc: float | None
    auroc_ci: list[float] | None
    miss_rate_at_far_5: float | None
    tokens: float | None
    """Mean tokens of an answer, read and written."""
    seconds: float | None
    """Mean seconds of an answer."""
    changes: dict[str, SeenDifference]
    """By measure; empty of the first."""


class ViewsFacts(TypedDict):
    """The content of `views.json`."""

    first: str
    """Way of asking that the others are compared with."""
    asked: dict[str, SeenNumbers]
    """Ways of asking by the names that their runs have, in the order they were judged."""


def compare_views(asked: Mapping[str, Asked], *, resamples: int, seed: int) -> ViewsFacts:
    """Compare each way of asking with the first, all of one monitor over the same samples.

    Raises `ValueError` where the samples differ.
    """
    first = next(iter(asked))
    numbers: dict[str, SeenNumbers] = {}
    p_values: dict[tuple[str, str], float] = {}
    for name, (judged, n_not_shown, usage) in asked.items():
        own = cell_numbers(judged)
        facts = SeenNumbers(
            n=len(judged),
            n_unscored=own["n_unscored"].whole,
            n_not_shown=n_not_shown,
            n_both=None,
            auroc=own["auroc"].value,
            auroc_ci=own["auroc"].interval,
            miss_rate_at_far_5=own["miss_rate_at_far_5"].value,
            tokens=tokens_of(usage),
            seconds=usage.get("seconds"),
            changes={},
        )
        if name != first:
            paired = difference(asked[first].judged, judged, resamples=resamples, seed=seed)
            facts["n_both"] = paired["n_both_with_score"]
            for measure in COMPARED:
                value, interval, p = change(paired, measure)
                facts["changes"][measure] = SeenDifference(
                    difference=value, difference_ci=interval, p_holm=None, shown=False
                )
                if p is not None:
                    p_values[name, measure] = p
        numbers[name] = facts
    for (name, compared), p in zip(p_values, holm(list(p_values.values())), strict=True):
        of = numbers[name]["changes"][compared]
        of["p_holm"], of["shown"] = p, p < _ALPHA
    return ViewsFacts(first=first, asked=numbers)


def in_words(facts: ViewsFacts) -> str:
    """Say which ways of asking are shown to separate better or worse than the first, and which are not."""
    by_sign: dict[str, list[str]] = {"better": [], "worse": [], "not shown to differ": []}
    for name, of in facts["asked"].items():
        if name != facts["first"]:
            auroc = of["changes"]["auroc"]
            sign = "better" if (auroc["difference"] or 0) > 0 else "worse"
            by_sign[sign if auroc["shown"] else "not shown to differ"].append(name)
    parts = [f"{word}: {', '.join(names)}" for word, names in by_sign.items() if names]
    return f"AUROC beside {facts['first']} (Holm, 5 %): {'; '.join(parts)}."
