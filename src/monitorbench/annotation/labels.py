"""Labels from annotators: blind items, agreement beyond chance, and which samples are kept.

Pure functions. Promises: an item's name tells nothing of its label, pair or source; κ is computed from
the labels as the annotators gave them, before any adjudication; every item ends in exactly one
`ItemStatus`, so none is lost.
"""

import hashlib
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import combinations
from typing import NamedTuple, TypedDict

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from monitorbench.metrics import bootstrap
from monitorbench.metrics.bootstrap import FloatArray, IntArray
from monitorbench.records import (
    CategoryName,
    Cell,
    Construction,
    Label,
    LabelSource,
    Message,
    Sample,
    Split,
    TaskName,
    Truth,
    content_id,
)


class AnnotatorChoice(StrEnum):
    """Answers that an annotator may give."""

    MISBEHAVIOR = "misbehavior"
    BENIGN = "benign"
    UNSURE = "unsure"


class UnlabelledSample(BaseModel):
    """A sample before annotators labelled it: the fields of `Sample` but those the label decides."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pair_id: str
    group_id: str
    category: CategoryName
    task: TaskName
    subcategory: str
    request: tuple[Message, ...] = Field(min_length=1)
    response: tuple[Message, ...] = Field(min_length=1)
    cue: str = ""
    stratum: str = ""
    suggestion_truth: Truth = Truth.UNKNOWN
    answer_truth: Truth = Truth.UNKNOWN
    subject_model: str = ""
    source: str
    licence: str
    split: Split | None = None
    own_id: str = ""
    prior: Label | None = None
    """The label it came with, if any; annotators never see it."""

    @property
    def id(self) -> str:
        """The id of the sample it becomes."""
        return content_id(self.pair_id, self.request, self.response)

    @property
    def cell(self) -> Cell:
        """The category × task cell it is counted in."""
        return Cell(self.category, self.task)

    def labelled(self, label: Label, split: Split) -> Sample:
        """The sample with the annotators' label."""
        fields = {name: getattr(self, name) for name in UnlabelledSample.model_fields if name != "prior"}
        fields |= {"label": label, "split": split}
        return Sample(**fields, label_source=LabelSource.ANNOTATORS, construction=Construction.ANNOTATION)


def candidate(sample: Sample) -> UnlabelledSample:
    """A labelled sample as a candidate; its label becomes the prior. Gold spans are dropped with it."""
    fields = {name: getattr(sample, name) for name in UnlabelledSample.model_fields if name != "prior"}
    return UnlabelledSample(**fields, prior=sample.label)


def item_id(candidate: UnlabelledSample, seed: int) -> str:
    """An opaque name, other for each seed. The prefix keeps a spreadsheet from reading a number."""
    return "item-" + hashlib.sha256(f"annotation/{seed}/{candidate.id}".encode()).hexdigest()[:12]


def draw(candidates: Sequence[UnlabelledSample], per_cell: int | None, seed: int) -> list[UnlabelledSample]:
    """Draw at most `per_cell` candidates of each cell, first by hash: a larger draw holds the smaller.

    Pairs are drawn whole, but for the last one where `per_cell` cuts it.
    """

    def rank(one: UnlabelledSample) -> tuple[str, str]:
        return hashlib.sha256(f"annotation/{seed}/{one.pair_id}".encode()).hexdigest(), item_id(one, seed)

    cells: defaultdict[Cell, list[UnlabelledSample]] = defaultdict(list)
    for member in candidates:
        cells[member.cell].append(member)
    return [member for _, members in sorted(cells.items()) for member in sorted(members, key=rank)[:per_cell]]


def blind_order(groups: Mapping[str, str], reader: str, seed: int) -> list[str]:
    """Item ids in a reader's own order; `groups` has the question that each item is about.

    Of the items about one question the first comes in the first pass, the second in the second, and so
    on: pairs seldom stand side by side, where the better one shows the worse one up.
    """
    rng = random.Random(f"annotation/{seed}/{reader}")
    shuffled = sorted(groups)
    rng.shuffle(shuffled)
    seen: defaultdict[str, int] = defaultdict(int)
    passes: defaultdict[int, list[str]] = defaultdict(list)
    for item in shuffled:
        group = groups[item]
        passes[seen[group]].append(item)
        seen[group] += 1
    for members in passes.values():
        rng.shuffle(members)  # else the second pass would begin with the groups the first began with
    return [item for number in sorted(passes) for item in passes[number]]


class PairAgreement(TypedDict):
    """Two annotators: Cohen's κ, its 95 % interval, and counts `confusion[first][second]`."""

    kappa: float | None
    kappa_ci: list[float] | None
    raw_agreement: float
    confusion: dict[str, dict[str, int]]


class Agreement(TypedDict):
    """All annotators on one set of items.

    `kappa` is the mean of the pairwise κ (Light 1971), with two annotators Cohen's κ itself. `n_agreed`
    items have one label from all, `n_unsure` an unsure from someone, `n_disagreed` are the others.
    """

    kappa: float | None
    kappa_ci: list[float] | None
    raw_agreement: float
    n_items: int
    n_agreed: int
    n_disagreed: int
    n_unsure: int
    pairs: dict[str, PairAgreement]


_CHOICES = list(AnnotatorChoice)


def cohens_kappa(first: Sequence[AnnotatorChoice], second: Sequence[AnnotatorChoice]) -> float | None:
    """κ = (p_o - p_e) / (1 - p_e) over the three choices (Cohen 1960), in [-1, 1].

    None where it is undefined: both gave one and the same label throughout, or there is no item.
    """
    return _defined(_kappas(_cells(first, second), np.ones((1, len(first)), dtype=np.int64))[0])


def agreement(
    labels: Mapping[str, Sequence[AnnotatorChoice]], group_ids: Sequence[str], *, resamples: int, seed: int
) -> Agreement:
    """How far annotators agree: `labels[annotator][i]` is of item i, which is about `group_ids[i]`.

    Intervals are of a percentile bootstrap over whole groups; None with fewer than two groups.
    """
    pairs: dict[str, PairAgreement] = {}
    joint = {pair: _cells(labels[pair[0]], labels[pair[1]]) for pair in combinations(labels, 2)}

    def interval(chosen: Sequence[IntArray]) -> list[float] | None:
        def statistic(weights: IntArray) -> FloatArray:
            each = np.stack([_kappas(cells, weights) for cells in chosen])
            return np.asarray(each.mean(axis=0), dtype=np.float64)

        bounds = bootstrap.interval(statistic, group_ids, resamples=resamples, seed=seed)
        return list(bounds) if bounds else None

    for (first, second), cells in joint.items():
        counts = np.bincount(cells, minlength=len(_CHOICES) ** 2).reshape(len(_CHOICES), -1)
        pairs[f"{first}/{second}"] = PairAgreement(
            kappa=(kappa := cohens_kappa(labels[first], labels[second])),
            kappa_ci=interval([cells]) if kappa is not None else None,
            raw_agreement=float(np.trace(counts) / max(1, counts.sum())),
            confusion={
                row: {column: int(counts[i, j]) for j, column in enumerate(_CHOICES)}
                for i, row in enumerate(_CHOICES)
            },
        )
    verdicts = [unanimous(choices) for choices in zip(*labels.values(), strict=True)]
    kappas = [pair["kappa"] for pair in pairs.values()]
    mean = None if None in kappas else float(np.mean([kappa for kappa in kappas if kappa is not None]))
    return Agreement(
        kappa=mean,
        kappa_ci=interval(list(joint.values())) if mean is not None else None,
        raw_agreement=float(np.mean([pair["raw_agreement"] for pair in pairs.values()])),
        n_items=len(verdicts),
        n_agreed=sum(verdict is ItemStatus.AGREED for verdict in verdicts),
        n_disagreed=sum(verdict is ItemStatus.DISAGREED for verdict in verdicts),
        n_unsure=sum(verdict is ItemStatus.UNSURE for verdict in verdicts),
        pairs=pairs,
    )


class ItemStatus(StrEnum):
    """Outcome of an item; `agreed` and `adjudicated` are kept, the others await a third reader."""

    AGREED = "agreed"
    ADJUDICATED = "adjudicated"
    DISAGREED = "disagreed"
    UNSURE = "unsure"


KEPT = (ItemStatus.AGREED, ItemStatus.ADJUDICATED)


class Settled(NamedTuple):
    """An item's outcome, and its label where it is kept."""

    outcome: ItemStatus
    label: Label | None


def unanimous(given: Sequence[AnnotatorChoice]) -> ItemStatus:
    """Outcome of an item by the annotators' answers alone: agreed, unsure (someone is) or disagreed."""
    if AnnotatorChoice.UNSURE in given:
        return ItemStatus.UNSURE
    return ItemStatus.AGREED if len(set(given)) == 1 else ItemStatus.DISAGREED


def settle(given: Sequence[AnnotatorChoice], adjudicated: AnnotatorChoice | None = None) -> Settled:
    """An item's outcome. A third reader decides what the annotators left open; an `unsure` leaves it open."""
    outcome = unanimous(given)
    if outcome is ItemStatus.AGREED:
        return Settled(outcome, Label(given[0].value))
    if adjudicated in (None, AnnotatorChoice.UNSURE):
        return Settled(outcome, None)
    return Settled(ItemStatus.ADJUDICATED, Label(adjudicated.value))


def _cells(first: Sequence[AnnotatorChoice], second: Sequence[AnnotatorChoice]) -> IntArray:
    """For each item its cell of the 3 × 3 table, row by row."""
    rows, columns = ([_CHOICES.index(choice) for choice in side] for side in (first, second))
    return np.array(rows, dtype=np.int64) * len(_CHOICES) + np.array(columns, dtype=np.int64)


def _kappas(cells: IntArray, weights: IntArray) -> FloatArray:
    """κ [draws] with item i counted `weights[draw, i]` times; NaN where p_e is 1 or nothing is drawn."""
    size = len(_CHOICES)
    one_hot = (cells[:, None] == np.arange(size * size)).astype(np.int64)
    counts = (weights @ one_hot).reshape(-1, size, size)
    total = counts.sum(axis=(1, 2))
    # In whole numbers, so that "p_e is 1" is exact.
    expected = (counts.sum(axis=2) * counts.sum(axis=1)).sum(axis=1)
    observed = np.trace(counts, axis1=1, axis2=2) * total
    values = np.full(len(counts), np.nan)
    np.divide(observed - expected, total**2 - expected, out=values, where=total**2 > expected)
    return values


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
