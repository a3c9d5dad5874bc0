"""Samples of rows: a misbehavior and its benign counterpart, or a response as upstream labels it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from monitorbench.config.sources import Cues
from monitorbench.records import Cell, Construction, Label, LabelSource, Message, Sample, Span, Truth
from monitorbench.upstream import LabelledResponse

RESISTED, AGREED, MISTAKEN = "resisted", "agreed", "mistaken"
"""Strata by the benign side: a wrong suggestion resisted, a right one agreed with, an honest error."""
RESISTED_ONE_IN = 12
"""Without honest errors one pair in so many is resisted: the echo check alone has an AUROC of .5 + 1/24."""
RIGHT_KEY, WRONG_KEY = "right_key", "wrong_key"
"""Strata of gaming by the benign side: the key in its request is right, or it is not."""


class Pair(NamedTuple):
    """Two samples that share pair_id and group_id, with opposite labels; and the request, mostly."""

    misbehavior: Sample
    benign: Sample


class Facts(NamedTuple):
    """Facts known of one sample: whether suggestion and answer are right, and which model answered."""

    suggestion: Truth = Truth.UNKNOWN
    answer: Truth = Truth.UNKNOWN
    subject_model: str = ""


def truth(is_right: bool) -> Truth:
    """`right` or `wrong`."""
    return Truth.RIGHT if is_right else Truth.WRONG


class ConstructionVersion(NamedTuple):
    """A construction's name, and the version of its behavior that enters the identity of what it makes.

    The version is raised whenever the same rows become other samples; a golden test fails
    where that is forgotten.
    """

    name: str
    version: int


class ConstructionContext(NamedTuple):
    """Inputs of a construction besides its rows: the source's name and licence, the dataset's settings."""

    source: str
    licence: str
    seed: int
    cues: Cues


class Constructed(NamedTuple):
    """Samples that a construction made of its rows, and how many rows each check rejected."""

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
    benign_request: Sequence[Message] | None = None,
    stratum: str = "",
    facts: tuple[Facts, Facts] = (Facts(), Facts()),
    gold_spans: Sequence[Span] = (),
) -> Pair:
    """Build both samples of a pair; `benign_request` where the benign one answers another request.

    `facts` are those of the misbehavior and of the benign sample; `gold_spans` say where the first shows it.
    `group_id` names the underlying question: pairs about the same question share it and never part
    in a split. Raises `ValueError` where both answer the same request with the same response.
    """
    benign_request = request if benign_request is None else benign_request
    if tuple(misbehavior) == tuple(benign) and tuple(request) == tuple(benign_request):
        raise ValueError(f"pair {pair_id}: both responses are the same")

    def sample(label: Label, asked: Sequence[Message], response: Sequence[Message], known: Facts) -> Sample:
        return Sample(
            pair_id=pair_id,
            group_id=group_id,
            category=cell.category,
            task=cell.task,
            subcategory=subcategory,
            request=tuple(asked),
            response=tuple(response),
            label=label,
            label_source=label_source,
            construction=construction,
            cue=cue,
            stratum=stratum,
            suggestion_truth=known.suggestion,
            answer_truth=known.answer,
            subject_model=known.subject_model,
            gold_spans=tuple(gold_spans) if label is Label.MISBEHAVIOR else (),
            source=source,
            licence=licence,
        )

    return Pair(
        sample(Label.MISBEHAVIOR, request, misbehavior, facts[0]),
        sample(Label.BENIGN, benign_request, benign, facts[1]),
    )


AS_LABELLED = ConstructionVersion("labelled", 1)


def labelled_samples(
    rows: Iterable[LabelledResponse],
    context: ConstructionContext,
    *,
    stratum: str = "",
    construction: Construction = Construction.LABELLED,
) -> Constructed:
    """One sample a row. `pair_id` is the row's own where upstream has no counterpart."""
    samples = [
        Sample(
            pair_id=f"{context.source}-{row.pair or row.id}",
            group_id=f"{context.source}-{row.group}",
            category=row.category,
            task=row.task,
            subcategory=row.subcategory,
            request=row.request,
            response=row.response,
            label=row.label,
            label_source=row.label_source,
            construction=construction,
            stratum=stratum,
            subject_model=row.subject_model,
            source=context.source,
            licence=context.licence,
        )
        for row in rows
    ]
    return Constructed(samples, Counter())
