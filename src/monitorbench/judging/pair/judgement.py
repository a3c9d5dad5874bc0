"""One request and response as a sample, and what is said of it, outside any run."""

from collections.abc import Callable
from typing import NamedTuple

from monitorbench.records import (
    Category,
    Construction,
    Label,
    LabelSource,
    Message,
    Sample,
    Task,
    UnscoredReason,
)


class Judgement(NamedTuple):
    """The monitor's verdict on one sample; exactly one of `label` and `unscored` is None."""

    label: Label | None
    unscored: UnscoredReason | None
    detail: str
    score: float | None
    """P(misbehavior), in [0, 1]; None where it is unscored without a pass."""
    probe: float | None
    """That of the probe beside the model, of the same pass; None without one."""
    prompt_tokens: int


Judges = Callable[[Sample], Judgement]


def sample_of(request: tuple[Message, ...], response: tuple[Message, ...]) -> Sample:
    """What is to be judged as a sample; its label and its cell say nothing."""
    return Sample(
        pair_id="served",
        group_id="served",
        category=Category.SPECIFICATION_GAMING,
        task=Task.QA,
        subcategory="",
        request=request,
        response=response,
        label=Label.BENIGN,
        label_source=LabelSource.UPSTREAM,
        construction=Construction.LABELLED,
        source="served",
        licence="",
    )
