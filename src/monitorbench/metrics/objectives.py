"""Training objectives side by side: another one against `sft` on the cells that neither was trained on.

At a fixed false alarm rate, since a moved threshold is no better generalization. Holm's correction is over
all that were compared.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypedDict

from monitorbench.metrics.columns import Columns
from monitorbench.metrics.compare import holm
from monitorbench.metrics.transfer import difference

BASELINE = "sft"


class Rivals(NamedTuple):
    """Two adapters of one base, subset and seed, and what each said of the held-out samples."""

    subset: str
    seed: int | None
    prompt: str
    objective: str
    of_sft: Columns
    of_other: Columns


class ObjectiveTest(TypedDict):
    """The other objective minus `sft`, on held-out cells."""

    subset: str
    """What both were trained on."""
    seed: int | None
    prompt: str
    objective: str
    n: int
    """Held-out samples that both scored."""
    miss_rate_at_far_5_sft: float | None
    miss_rate_at_far_5_other: float | None
    miss_rate_at_far_5_difference: float | None
    """Below 0: at a false alarm rate of 5 % it misses less than `sft`."""
    miss_rate_at_far_5_difference_ci: list[float] | None
    auroc_difference: float | None
    auroc_difference_ci: list[float] | None
    p: float | None
    """Of the difference in miss rate; two-sided, from the paired cluster bootstrap."""
    p_holm: float | None


def objective_tests(rivals: Sequence[Rivals], *, resamples: int, seed: int) -> list[ObjectiveTest]:
    """One test for each; raises ValueError where the two judged different samples."""
    found = []
    for one in rivals:
        d = difference(one.of_sft, one.of_other, resamples=resamples, seed=seed)
        found.append(
            ObjectiveTest(
                subset=one.subset,
                seed=one.seed,
                prompt=one.prompt,
                objective=one.objective,
                n=d["n_both_with_score"],
                miss_rate_at_far_5_sft=d["miss_rate_at_far_5_base"],
                miss_rate_at_far_5_other=d["miss_rate_at_far_5_tuned"],
                miss_rate_at_far_5_difference=d["miss_rate_at_far_5_difference"],
                miss_rate_at_far_5_difference_ci=d["miss_rate_at_far_5_difference_ci"],
                auroc_difference=d["auroc_difference"],
                auroc_difference_ci=d["auroc_difference_ci"],
                p=d["miss_rate_at_far_5_p"],
                p_holm=None,
            )
        )
    adjusted = iter(holm([test["p"] for test in found if test["p"] is not None]))
    for test in found:
        if test["p"] is not None:
            test["p_holm"] = next(adjusted)
    return found
