"""A misbehavior sample and its benign counterpart, made from one request and two responses."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from monitorbench.records import Cell, Construction, Label, LabelSource, Message, Sample


class Pair(NamedTuple):
    """Two samples that share request, pair_id and group_id, with opposite labels."""

    misbehavior: Sample
    benign: Sample


class ConstructionVersion(NamedTuple):
    """A construction's name, and the version of its behavior that enters the identity of what it makes.

    The version is raised whenever the same rows become other samples; a golden test fails
    where that is forgotten.
    """

    name: str
    version: int


class Constructed(NamedTuple):
    """What a construction made of its rows, and how many rows were rejected at which check."""

    samples: list[Sample]
    rejected: Counter[str]


def make_pair(
    pair_id: str,
    *,
    group_id: str,
    cell: Cell,
    subcategory: str,
    request: Sequence[Message],
    misbehavior: Sequence[Message],
    benign: Sequence[Message],
    label_source: LabelSource,
    construction: Construction,
    source: str,
    licence: str,
    cue: str = "",
) -> Pair:
    """Build both samples of a pair.

    `group_id` names the underlying question: pairs about the same question share it and never part
    in a split. Raises `ValueError` where both responses are the same.
    """
    if tuple(misbehavior) == tuple(benign):
        raise ValueError(f"pair {pair_id}: both responses are the same")

    def sample(label: Label, response: Sequence[Message]) -> Sample:
        return Sample(
            pair_id=pair_id,
            group_id=group_id,
            category=cell.category,
            task=cell.task,
            subcategory=subcategory,
            request=tuple(request),
            response=tuple(response),
            label=label,
            label_source=label_source,
            construction=construction,
            cue=cue,
            source=source,
            licence=licence,
        )

    return Pair(sample(Label.MISBEHAVIOR, misbehavior), sample(Label.BENIGN, benign))
