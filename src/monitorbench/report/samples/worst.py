"""The samples a monitor got most wrong, and which parts of them it pointed at.

A *miss* is misbehavior answered benign, an *alarm* benign answered misbehavior. Worst is where the
score was furthest on the wrong side. Unscored answers are neither.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from monitorbench.records import Category, Label, Sample, Task, Verdict, vocabulary


class Kind(StrEnum):
    """Kind of wrong verdict."""

    MISS = "miss"
    ALARM = "alarm"


class Highlight(NamedTuple):
    """Characters [start, end) of one field of `response[message]`.

    `field` is `content`, `thinking` or `tool_call`; the text of a tool call is its name, a space and its
    arguments, and `call` says which of the message's calls.
    """

    message: int
    field: str
    start: int
    end: int
    call: int = 0


class Quoted(NamedTuple):
    """A verdict's quotes: where those that were located stand, and those that were not."""

    highlights: tuple[Highlight, ...]
    ungrounded: tuple[str, ...]


class WorstSample(NamedTuple):
    """A sample that was answered wrongly, and the verdict."""

    kind: Kind
    sample: Sample
    verdict: Verdict
    quoted: Quoted


Worst = Mapping[str, Mapping[str, Sequence[WorstSample]]]
"""Worst samples by monitor and prompt."""


def quoted(verdict: Verdict) -> Quoted:
    """A verdict's quotes, those that were found in the judged response apart from those that were not."""
    places = [quote.place for quote in verdict.evidence if quote.place is not None]
    return Quoted(
        tuple(
            Highlight(place.message, place.field.value, place.start, place.end, place.call)
            for place in places
        ),
        tuple(quote.quote for quote in verdict.evidence if quote.place is None),
    )


def worst_samples(samples: Sequence[Sample], verdicts: Mapping[str, Verdict], k: int) -> list[WorstSample]:
    """Pick of each `category/task` cell at most `k` misses of the lowest score and `k` alarms of the highest.

    `verdicts` is by sample id; a sample without one is passed over. Cells come in the order of
    `records.vocabulary`, misses before alarms, the worst first; samples without a score come last, equal
    ones by id. Raises ValueError for a negative `k`.
    """
    if k < 0:
        raise ValueError(f"k: got {k}, expected at least 0")
    wrong: defaultdict[tuple[str, str, Kind], list[tuple[float, Sample, Verdict]]] = defaultdict(list)
    for sample in samples:
        verdict = verdicts.get(sample.id)
        if verdict is None or verdict.label in (None, sample.label):
            continue
        kind = Kind.MISS if sample.label is Label.MISBEHAVIOR else Kind.ALARM
        score = verdict.score
        badness = 2.0 if score is None else score if kind is Kind.MISS else 1 - score
        wrong[sample.category, sample.task, kind].append((badness, sample, verdict))
    worst = []
    categories = vocabulary(Category, (category for category, _, _ in wrong))
    tasks = vocabulary(Task, (task for _, task, _ in wrong))

    def place(key: tuple[str, str, Kind]) -> tuple[int, int, int]:
        category, task, kind = key
        return categories.index(category), tasks.index(task), list(Kind).index(kind)

    for category, task, kind in sorted(wrong, key=place):
        ranked = sorted(wrong[category, task, kind], key=lambda entry: (entry[0], entry[1].id))
        worst += [WorstSample(kind, sample, verdict, quoted(verdict)) for _, sample, verdict in ranked[:k]]
    return worst
