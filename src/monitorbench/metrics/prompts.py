"""One monitor under several prompts: its numbers over the same samples, and paired differences."""

from collections.abc import Mapping
from typing import TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from monitorbench.metrics.columns import BoolArray, Columns
from monitorbench.metrics.summary import CellMetrics, cell_metrics
from monitorbench.metrics.transfer import Difference, difference

FIRST = "direct"
"""The prompt that others are compared with where it is there."""


class PromptsFacts(TypedDict):
    """One monitor under at least two prompts."""

    n: int
    """Samples that it judged under each of them: what all of this is over."""
    base: str
    """The prompt that the others are compared with."""
    by_prompt: dict[str, CellMetrics]
    differences: dict[str, Difference]
    """Each other prompt (`…_tuned`) minus that one (`…_base`)."""


def compare_prompts(judged: Mapping[str, Columns], *, resamples: int, seed: int) -> PromptsFacts | None:
    """Compare at least two prompts, over the samples that all of them have; None where there is no such.

    Raises ValueError where a sample comes twice, or has another label or group under each.
    """
    names = sorted(judged, key=lambda name: name != FIRST)
    if len(names) < 2:
        return None
    shared = judged[names[0]].sample_ids
    for name in names[1:]:
        shared = shared.filter(pc.is_in(shared, value_set=judged[name].sample_ids))
    if not len(shared):
        return None
    common = {name: judged[name].taking(_inside(judged[name], shared)) for name in names}
    return PromptsFacts(
        n=len(shared),
        base=names[0],
        by_prompt={name: cell_metrics(of, resamples=resamples, seed=seed) for name, of in common.items()},
        differences={
            name: difference(common[names[0]], common[name], resamples=resamples, seed=seed)
            for name in names[1:]
        },
    )


def _inside(judged: Columns, shared: pa.Array) -> BoolArray:
    found: BoolArray = pc.is_in(judged.sample_ids, value_set=shared).to_numpy(zero_copy_only=False)
    return found
