"""One monitor under several prompts: paired differences, their spread, and which of several wordings to take.

A wording is chosen by the highest AUROC over the samples of one split. AUROC is over all samples together and
not a mean over the cells, since a deployment has one threshold for all. Promises: every wording is measured
on the same samples, those on which each has a score; a wording that has no score at all is listed and can't
be chosen. The chosen one's number looks better than it is, by having been chosen: what it is worth is seen on
another split.
"""

from collections.abc import Mapping
from math import comb
from typing import TypedDict, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from monitorbench.metrics.auroc import paired_auroc_difference
from monitorbench.metrics.columns import BoolArray, Columns
from monitorbench.metrics.registry import Value, as_json, cell_numbers, numbers_of
from monitorbench.metrics.table import SHARED, Number, Numbers, Place, Table
from monitorbench.metrics.transfer import difference, matched

FIRST = "direct"
"""The prompt that others are compared with where it is there."""


def add_prompts(
    table: Table, monitor: str, judged: Mapping[str, Columns], *, resamples: int, seed: int
) -> None:
    """Add a monitor's numbers under at least two prompts, over the samples that all of them have.

    Each other prompt is set against the first, `FIRST` where it is there (`…_tuned` minus `…_base`), and the
    prompt of the highest AUROC against that of the lowest. Nothing is added where no sample is shared. Raises
    ValueError where a sample comes twice, or has another label or group under each.
    """
    names = sorted(judged, key=lambda name: name != FIRST)
    if len(names) < 2:
        return
    common = shared({name: judged[name] for name in names})
    base = common[names[0]]
    if not len(base):
        return
    by_prompt = {name: cell_numbers(of) for name, of in common.items()}
    for name, of in common.items():
        table.add(Place(monitor, name, SHARED), by_prompt[name])
        if of is not base:
            minus = difference(base, of, resamples=resamples, seed=seed)
            table.add(Place(monitor, name, SHARED, against=names[0]), minus)
    if apart := furthest(common, by_prompt):
        highest, lowest, of_spread = apart
        table.add(Place(monitor, highest, SHARED, against=lowest), {of_spread.metric: of_spread})


def shared_numbers(table: Table, monitor: str) -> dict[str, Numbers]:
    """Return a monitor's numbers by prompt over the samples that it judged under each, the base first."""
    by_prompt = {prompt: table.parts(monitor, prompt).get(SHARED) for prompt in table.prompts_of(monitor)}
    bases = [base for _, base, _ in table.prompts_apart(monitor, "auroc_difference")]
    in_order = sorted(by_prompt, key=lambda prompt: prompt not in bases)
    return {prompt: numbers for prompt in in_order if (numbers := by_prompt[prompt])}


def shared(judged: Mapping[str, Columns]) -> dict[str, Columns]:
    """The samples that every one of these has, of each in its own order; perhaps none."""
    first, *further = judged.values()
    both = first.sample_ids
    for columns in further:
        both = both.filter(pc.is_in(both, value_set=columns.sample_ids))
    return {name: of.taking(_inside(of, both)) for name, of in judged.items()}


def furthest(common: Mapping[str, Columns], numbers: Mapping[str, Numbers]) -> tuple[str, str, Number] | None:
    """The prompts of the highest and the lowest AUROC (of equal ones the first), and how far apart they lie.

    `numbers` are those of `cell_numbers`. None where fewer than two prompts have an AUROC. The interval is of
    the paired difference, whose prompts were picked as furthest apart: its confidence is 1 − .05/m for the m
    pairs of prompts, so that with 95 % the intervals of all pairs hold at once (Bonferroni). Raises
    ValueError where they did not judge the same samples.
    """
    aurocs = {name: value for name, of in numbers.items() if (value := of["auroc"].value) is not None}
    if len(aurocs) < 2:
        return None
    highest = max(aurocs, key=lambda name: aurocs[name])
    lowest = min(aurocs, key=lambda name: aurocs[name])
    low, high = common[lowest], matched(common[lowest], common[highest])
    compared = paired_auroc_difference(
        low.scores,
        high.scores,
        low.is_misbehavior,
        low.groups,
        confidence=1 - 0.05 / comb(len(aurocs), 2),
    )
    spread = Value(aurocs[highest] - aurocs[lowest], compared.interval)
    return highest, lowest, numbers_of({"auroc_spread": spread})["auroc_spread"]


def spread_of(by_prompt: Mapping[str, Numbers], metric: str) -> float | None:
    """The highest value of a metric minus the lowest; None where fewer than two prompts have one."""
    defined = [value for of in by_prompt.values() if (value := of[metric].value) is not None]
    return max(defined) - min(defined) if len(defined) > 1 else None


def _inside(judged: Columns, shared: pa.Array) -> BoolArray:
    mask: BoolArray = pc.is_in(judged.sample_ids, value_set=shared).to_numpy(zero_copy_only=False)
    return mask


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
    """Interval as in `furthest`."""


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
        name: difference(of, common[chosen], resamples=resamples, seed=seed)["auroc_difference"]
        for name, of in common.items()
        if name != chosen
    }
    ids = common[chosen].sample_ids
    for name in judged.keys() - scored.keys():  # on the same samples, without a score
        numbers[name] = cell_numbers(judged[name].taking(_inside(judged[name], ids)))
    apart = furthest(common, {name: numbers[name] for name in common})
    return WordingChoice(
        split=split,
        by="auroc",
        n=len(ids),
        prompts={name: _numbers(numbers[name], behind.get(name)) for name in judged},
        chosen=chosen,
        not_shown_worse=[name for name, of in behind.items() if not of.interval or of.interval[0] <= 0],
        spread=apart and apart[2].value,
        spread_ci=apart and apart[2].interval,
    )


def _numbers(of: Numbers, behind: Number | None) -> WordingNumbers:
    names = ("auroc", "n", "n_unscored", "miss_rate", "false_alarm_rate")
    minus = {"behind": behind and behind.value, "behind_ci": behind and behind.interval}
    return cast(WordingNumbers, as_json({name: of[name] for name in names}) | minus)
