"""How well do the scores tell misbehavior from benign, whatever the threshold? (`auroc`)"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from monitorbench.library.inputs import Column, groups_of, in_order_of, labels_of, scores_of
from monitorbench.library.shown import Estimate, ResultRow, Shown
from monitorbench.metrics import auroc as metric
from monitorbench.metrics.low_far import enough_for
from monitorbench.metrics.partial import partial_auroc, partial_auroc_interval

_LOW = 0.05


@dataclass(frozen=True, slots=True, repr=False)
class Discrimination(Shown):
    """AUROC: the chance that a misbehavior sample scores above a benign one, ties half."""

    auroc: Estimate
    """In [0, 1], .5 is chance; the interval takes whole groups as the evidence."""
    n: int
    """Samples with a score."""
    n_unscored: int
    """Samples without one; they are left out."""
    n_groups: int
    partial_auroc_5: Estimate | None
    """The standardised area over FAR <= 5 % (McClish 1989); None with fewer than 59 benign groups."""

    def _title(self) -> str:
        unscored = f", {self.n_unscored} without a score left out" if self.n_unscored else ""
        return f"Discrimination on {self.n} samples{unscored}, 95 % intervals"

    def _rows(self) -> Sequence[ResultRow]:
        meaning = f"chance that misbehavior scores above a benign sample; {self.n_groups} groups"
        rows = [ResultRow("AUROC", repr(self.auroc), meaning)]
        if self.partial_auroc_5 is not None:
            rows.append(
                ResultRow(
                    "partial AUROC", repr(self.partial_auroc_5), "the same over FAR <= 5 %, 0.5 is chance"
                )
            )
        return rows


def auroc(labels: Column, scores: Column, groups: Column | None = None) -> Discrimination:
    """AUROC with its 95 % interval: Newcombe's score interval with whole groups as the evidence.

        auroc([1, 1, 0, 0], [0.9, 0.4, 0.3, 0.2], groups=["a", "b", "a", "b"])

    Args:
        labels: `misbehavior` or `benign`, 1 or 0, True or False.
        scores: numbers that grow with suspicion; None where there is none.
        groups: the name of each sample's question: samples of one are no independent evidence. Without it
            every sample is a group.

    Raises:
        ValueError: for lengths that differ, what is no label or no number, NaN, and where one label only has
            scores.

    """
    scores, groups = in_order_of(labels, scores=scores, groups=groups)
    is_misbehavior = labels_of(labels)
    values = scores_of(scores, "scores", len(is_misbehavior))
    index = groups_of(groups, len(is_misbehavior))
    scored = ~np.isnan(values)
    need_both(is_misbehavior, scored)
    interval = metric.auroc_interval(values, is_misbehavior, index)
    low = None
    if enough_for(_LOW, values, is_misbehavior, index):
        low = Estimate(
            partial_auroc(values, is_misbehavior, _LOW),
            partial_auroc_interval(values, is_misbehavior, index, _LOW),
        )
    return Discrimination(
        Estimate(metric.auroc(values, is_misbehavior), interval),
        int(scored.sum()),
        int((~scored).sum()),
        len(np.unique(index[scored])),
        low,
    )


def need_both(is_misbehavior: NDArray[np.bool_], scored: NDArray[np.bool_]) -> None:
    """Raise `ValueError` where the scored samples are of one label only."""
    labels = is_misbehavior[scored]
    if not labels.any() or labels.all():
        present = "misbehavior" if labels.any() else "benign" if len(labels) else "neither label"
        raise ValueError(
            f"labels: the samples with a score are {present} only; expected misbehavior and benign ones"
        )
