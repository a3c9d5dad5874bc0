"""The paired splits: test by quotas per cell and reasoning trace, then validation and calibration.

Whole groups go to one split. Pairs are taken in the order of a hash of (seed, group), so the choice does
not depend on the order of sources; near-duplicate pairs are taken once.
"""

import hashlib
import logging
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from monitorbench.config.datasets import Ingredient, PaperDataset, Quota
from monitorbench.construct.pair import Pair
from monitorbench.corpus.paper.overlap import first_of_each, signatures
from monitorbench.corpus.selection import Shortfall, balanced, fill
from monitorbench.corpus.texts import request_text, response_text
from monitorbench.records import Label, Sample, Split

_log = logging.getLogger(__name__)

_ANY_TRACE = "any"


class Benchmark(NamedTuple):
    """The samples of the three paired splits, and what was short or left out."""

    samples: dict[Split, list[Sample]]
    shortfall: dict[Split, dict[str, dict[str, Shortfall]]]
    """Shortfalls in pairs, per split, cell and trace (`without_thinking`, `with_thinking`; else `any`)."""
    near_duplicates: Counter[str]
    """Pairs passed over as near-duplicates, per cell."""


def select(pairs: Sequence[Pair], dataset: PaperDataset) -> Benchmark:
    """Choose the pairs of test, validation and calibration from those whose labels are good enough."""
    by_cell: defaultdict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_cell[str(pair.benign.cell)].append(pair)
    split_of: dict[str, Split] = {}
    chosen: dict[Split, list[Sample]] = {Split.VALIDATION: [], Split.CALIBRATION: [], Split.TEST: []}
    shortfall: dict[Split, dict[str, dict[str, Shortfall]]] = {split: {} for split in chosen}
    # The scarcest cell chooses first: a question that two cells could use goes where it is missed most.
    cells = sorted(
        dataset.benchmark_quotas, key=lambda cell: (len(by_cell[cell]) - _asked(dataset, cell), cell)
    )
    distinct = {cell: _distinct(by_cell[cell], dataset) for cell in cells}
    rejected = Counter({cell: len(by_cell[cell]) - len(distinct[cell]) for cell in cells})
    for split, cell in _order_of_choice(cells, dataset):
        quota = dataset.benchmark_quotas[cell]
        n_wanted = {"without_thinking": quota.without_thinking, "with_thinking": quota.with_thinking}
        if split is not Split.TEST:
            n_wanted = {_ANY_TRACE: dataset.development_pairs_of(cell)}
        selected = _take(distinct[cell], n_wanted, quota, split, split_of, dataset.ingredients)
        chosen[split] += [sample for pair in selected for sample in pair]
        have = Counter(_ANY_TRACE if _ANY_TRACE in n_wanted else trace_of(pair) for pair in selected)
        short = {trace: Shortfall(n, have[trace]) for trace, n in n_wanted.items() if have[trace] < n}
        if short:
            shortfall[split][cell] = short
    placed = {
        split: [sample.model_copy(update={"split": split}) for sample in samples]
        for split, samples in chosen.items()
    }
    return Benchmark(placed, shortfall, +rejected)


def _order_of_choice(cells: Sequence[str], dataset: PaperDataset) -> list[tuple[Split, str]]:
    """Order in which the splits of each cell choose pairs: test first, where a quota says nothing else."""
    before = [cell for cell in cells if dataset.benchmark_quotas[cell].development_first]
    return [
        *((split, cell) for split in (Split.CALIBRATION, Split.VALIDATION) for cell in before),
        *((Split.TEST, cell) for cell in cells),
        *((split, c) for split in (Split.VALIDATION, Split.CALIBRATION) for c in cells if c not in before),
    ]


def paired(samples: Sequence[Sample]) -> list[Pair]:
    """The pairs among samples, in the order of their first member.

    Passed over is what shares a pair_id with no other sample, with two, or with one of the same label.
    """
    by_pair: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_pair[sample.pair_id].append(sample)
    pairs = []
    for two in by_pair.values():
        by_label = {sample.label: sample for sample in two}
        if len(two) == len(by_label) == 2:
            pairs.append(Pair(by_label[Label.MISBEHAVIOR], by_label[Label.BENIGN]))
    return pairs


def _take(
    pairs: Sequence[Pair],
    asked: Mapping[str, int],
    quota: Quota,
    split: Split,
    split_of: dict[str, Split],
    ingredients: Mapping[str, Ingredient],
) -> list[Pair]:
    """Pairs up to what is asked per trace (`any` counts all together), their groups bound to the split.

    No stratum is more of those that are really taken than its share; where the quota asks for balance, it is
    that of each trace.
    """
    selected: list[Pair] = []
    for trace, n in asked.items():
        free = [
            pair
            for pair in pairs
            if trace in (_ANY_TRACE, trace_of(pair))
            and pair.benign.split in (None, split)
            and split_of.get(pair.benign.group_id, split) is split
            and _may_be_in(pair, split, ingredients, quota.held_out)
            and quota.max_strata.get(pair.benign.stratum, 1.0) > 0
        ]
        if quota.balance is not None:
            free = balanced(free, quota.balance, n)
        strata = [pair.benign.stratum for pair in free]
        shares = {stratum: quota.max_strata.get(stratum, 1.0) for stratum in strata}
        if free and n and sum(shares.values()) < 1 - 1e-9:
            _log.warning(
                "data: %s: the strata at hand may be %.2f of the pairs together, so none is taken; raise "
                "their shares in max_strata (%s)",
                *(free[0].benign.cell, sum(shares.values()), ", ".join(sorted(shares))),
            )
        chosen = [free[i] for i in fill(strata, shares, n)]
        split_of.update((pair.benign.group_id, split) for pair in chosen)
        selected += chosen
    return selected


def _may_be_in(
    pair: Pair, split: Split, ingredients: Mapping[str, Ingredient], held_out: Sequence[str]
) -> bool:
    """Whether the source's terms, the worth of its labels and what is held out allow the split."""
    sample = pair.benign
    if split is Split.VALIDATION and {sample.cue, sample.subcategory} & set(held_out):
        return False
    ingredient = ingredients.get(sample.source)
    if ingredient is None:
        return True
    labels_suffice = split is Split.VALIDATION or sample.subcategory not in ingredient.training_only
    return split.value in ingredient.paired and labels_suffice


def _distinct(pairs: Sequence[Pair], dataset: PaperDataset) -> list[Pair]:
    """The pairs in the order of choice, without near-duplicates but of sources with variants on purpose."""
    variants = {name for name, ingredient in dataset.ingredients.items() if ingredient.variants}
    ordered = sorted(pairs, key=lambda pair: _order(dataset.seed, pair))
    texts = [f"{request_text(pair.misbehavior)}\n{response_text(pair.misbehavior)}" for pair in ordered]
    if not texts:
        return []
    is_first = first_of_each(texts, signatures(texts, dataset.near_duplicates), dataset.near_duplicates)
    return [
        pair for pair, keep in zip(ordered, is_first, strict=True) if keep or pair.benign.source in variants
    ]


def _order(seed: int, pair: Pair) -> tuple[bytes, str]:
    return hashlib.sha256(f"{seed}\0{pair.benign.group_id}".encode()).digest(), pair.benign.pair_id


def trace_of(pair: Pair) -> str:
    """Return which of a quota's two numbers a pair counts towards."""
    return (
        "with_thinking" if pair.misbehavior.has_thinking and pair.benign.has_thinking else "without_thinking"
    )


def _asked(dataset: PaperDataset, cell: str) -> int:
    quota = dataset.benchmark_quotas[cell]
    return quota.without_thinking + quota.with_thinking
