"""What one monitor said of many samples, as columns: what the metrics that carry a million samples take.

Promises: the order of the samples is kept; an answer or a score that is not there is NaN, never 0.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitorbench.metrics.bootstrap import FloatArray, IntArray, group_index
from monitorbench.metrics.curves import Flags, Scores
from monitorbench.metrics.rates import Judged
from monitorbench.records import Label

BoolArray = NDArray[np.bool_]
Answers = Sequence[bool | None] | FloatArray
"""True or 1: flagged as misbehavior; False or 0: passed as benign; None or NaN: unscored."""

UNPAIRED = -1


class Columns(NamedTuple):
    """One entry a sample in each column, all [samples]."""

    is_misbehavior: BoolArray
    flagged: FloatArray
    """1 where the answer is misbehavior, 0 where it is benign, NaN where it is unscored."""
    scores: FloatArray
    """In [0, 1], NaN where there is none."""
    groups: IntArray
    """The number of the sample's group, by the order of the groups' names."""
    pairs: IntArray
    """The number of the sample's pair, `UNPAIRED` where `pair_id` is empty."""


def columns(judged: Sequence[Judged]) -> Columns:
    """The columns of these samples."""
    pairs = group_index([one.pair_id for one in judged])
    named = np.array([bool(one.pair_id) for one in judged], dtype=np.bool_)
    flagged = {Label.MISBEHAVIOR: 1.0, Label.BENIGN: 0.0, None: np.nan}
    return Columns(
        is_misbehavior=np.array([one.label is Label.MISBEHAVIOR for one in judged], dtype=np.bool_),
        flagged=np.array([flagged[one.answer] for one in judged], dtype=np.float64),
        scores=np.array([one.score for one in judged], dtype=np.float64),  # None becomes NaN
        groups=group_index([one.group_id for one in judged]),
        pairs=np.where(named, pairs, UNPAIRED),
    )


def aligned(is_misbehavior: Flags, values: Scores | Answers) -> tuple[BoolArray, FloatArray]:
    """Labels and values as arrays; raises ValueError where there isn't one value a label."""
    flags = np.asarray(is_misbehavior, dtype=np.bool_)
    found = np.asarray(values, dtype=np.float64)
    if found.shape != flags.shape:
        raise ValueError(f"expected {len(flags)} values, one a label, got {len(found)}")
    return flags, found


def present(is_misbehavior: Flags, values: Scores | Answers) -> tuple[BoolArray, FloatArray]:
    """The same over the samples that have a value."""
    flags, found = aligned(is_misbehavior, values)
    kept = ~np.isnan(found)
    return flags[kept], found[kept]
