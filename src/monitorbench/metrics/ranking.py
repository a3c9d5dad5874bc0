"""Scores in descending order, ties in blocks: what AUROC, thresholds and reliability are read off.

Samples that come in this order already are ranked in O(n); else it is O(n log n).
"""

from typing import NamedTuple

import numpy as np

from monitorbench.metrics.bootstrap import FloatArray, IntArray


class Ranking(NamedTuple):
    """Samples by descending score; equal scores are a block."""

    order: IntArray
    """[samples]: the sample at each rank, equal scores in the order they came in."""
    scores: FloatArray
    """[blocks], descending."""
    ends: IntArray
    """[blocks]: the rank after the last sample of each; the last is the number of samples."""

    @property
    def sizes(self) -> IntArray:
        """[blocks]: how many samples each has."""
        return np.diff(self.ends, prepend=0)


def ranked(scores: FloatArray) -> Ranking:
    """Rank scores [samples], none of them NaN."""
    in_order = bool((scores[1:] <= scores[:-1]).all())
    order = np.arange(len(scores)) if in_order else np.argsort(-scores, kind="stable")
    found = scores[order]
    last = np.append(found[1:] != found[:-1], len(found) > 0)
    at = np.flatnonzero(last[: len(found)])
    return Ranking(order, found[at], at + 1)
