"""Which of several wordings a monitor is asked with: that of the highest AUROC over the samples of one split.

AUROC is over all samples together and not a mean over the cells, since a deployment has one threshold for
all. Promises: every wording is measured on the same samples, those on which each has a score; a wording that
has no score at all is listed and can't be chosen. The chosen one's number looks better than it is, by having
been chosen: what it is worth is seen on another split.
"""

from collections.abc import Mapping
from typing import TypedDict, cast

import numpy as np
import pyarrow.compute as pc

from monitorbench.metrics.columns import Columns
from monitorbench.metrics.prompts import PromptSpread, shared, spread
from monitorbench.metrics.registry import as_json, cell_numbers
from monitorbench.metrics.table import Numbers
from monitorbench.metrics.transfer import TransferDifference, difference


class WordingNumbers(TypedDict):
    """One wording, over the samples that the choice is made on."""

    auroc: float | None
    """None: it gave no score."""
    auroc_ci: list[float] | None
    """95 %, as in `metrics.json`."""
    n: int
    """Samples."""
    n_unscored: int
    """Answers that are no label."""
    miss_rate: float | None
    miss_rate_ci: list[float] | None
    false_alarm_rate: float | None
    false_alarm_rate_ci: list[float] | None
    behind: float | None
    """The chosen wording's AUROC minus its own, paired; None of the chosen one."""
    behind_ci: list[float] | None
    """95 %, not corrected for the number of wordings."""


class WordingChoice(TypedDict):
    """The content of `wording.json`."""

    split: str
    """Split that the wording was chosen on."""
    by: str
    """The number that decided: `auroc`, over all samples."""
    n: int
    """Samples on which every wording with a score has one."""
    prompts: dict[str, WordingNumbers]
    """Numbers of each prompt, in the order they were named."""
    chosen: str
    not_shown_worse: list[str]
    """The others whose AUROC is not shown to be lower: the interval of `behind` does not lie above 0."""
    spread: float | None
    """The highest AUROC minus the lowest; None where only one has any."""
    spread_ci: list[float] | None
    """Interval as in `prompts.PromptSpread`."""


def choose_wording(
    judged: Mapping[str, Columns], split: str, *, resamples: int, seed: int
) -> WordingChoice | None:
    """Choose among prompts by what each judged of one split; None where no AUROC can be had of any.

    Of equal AUROCs the first is chosen. Raises ValueError where a sample comes twice, or has another label or
    group under each.
    """
    scored = {name: of for name, of in judged.items() if not np.isnan(of.scores).all()}
    if not scored:
        return None
    common = shared({name: of.taking(~np.isnan(of.scores)) for name, of in scored.items()})
    numbers = {name: cell_numbers(of) for name, of in common.items()}
    aurocs = {name: value for name, of in numbers.items() if (value := of["auroc"].value) is not None}
    if not aurocs:
        return None
    chosen = max(aurocs, key=lambda name: aurocs[name])
    behind = {
        name: difference(of, common[chosen], resamples=resamples, seed=seed)
        for name, of in common.items()
        if name != chosen
    }
    ids = common[chosen].sample_ids
    for name in judged.keys() - scored.keys():  # on the same samples, without a score
        inside = pc.is_in(judged[name].sample_ids, value_set=ids).to_numpy(zero_copy_only=False)
        numbers[name] = cell_numbers(judged[name].taking(inside))
    apart: PromptSpread | None = spread(common, {name: numbers[name] for name in common})
    return WordingChoice(
        split=split,
        by="auroc",
        n=len(ids),
        prompts={name: _numbers(numbers[name], behind.get(name)) for name in judged},
        chosen=chosen,
        not_shown_worse=[name for name, change in behind.items() if not _is_behind(change)],
        spread=apart and apart["auroc"],
        spread_ci=apart and apart["auroc_ci"],
    )


def _numbers(of: Numbers, behind: TransferDifference | None) -> WordingNumbers:
    names = ("auroc", "n", "n_unscored", "miss_rate", "false_alarm_rate")
    minus = {
        "behind": behind and behind["auroc_difference"],
        "behind_ci": behind and behind["auroc_difference_ci"],
    }
    return cast(WordingNumbers, as_json({name: of[name] for name in names}) | minus)


def _is_behind(one: TransferDifference) -> bool:
    bounds = one["auroc_difference_ci"]
    return bounds is not None and bounds[0] > 0
