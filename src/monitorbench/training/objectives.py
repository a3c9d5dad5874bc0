"""Training objectives: their parts, the draws that make their steps, and `sft`, `curriculum` and `pairwise`.

An objective is an `ObjectiveSpec`, of which every part but the name has a default that does nothing more than
train on the labels, as `sft` does, balanced as the settings say. Its place in the list is in
`training.trainer`, its name and its settings (with the checks that need no samples) in `config.training`,
which sweeps read before anything is loaded.
"""

import datetime
import logging
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch.nn import functional

from monitorbench.config.base import UserError
from monitorbench.config.training import Objective, Training
from monitorbench.prompts.label_tokens import LabelTokens
from monitorbench.records import Category, Label, Sample, Split
from monitorbench.sources.read import SourceFiles
from monitorbench.training.examples import Example, ExampleBatch

_log = logging.getLogger(__name__)
T = TypeVar("T")
Unit = tuple[int, ...]
"""Positions of examples that stay in one forward pass."""
AddedLoss = Callable[[torch.Tensor, ExampleBatch, Sequence[Unit]], torch.Tensor]
"""Loss that is added to the label's: a scalar from a pass's logits [S, V], batch and units in order.

It is scaled as the label's loss is: the mean of a step's passes is the mean over what the step holds.
"""


class ExtraExamples(NamedTuple):
    """Examples that are trained on beside the judged samples."""

    examples: list[Example]
    facts: dict[str, int]
    """Facts about the extra examples for the manifest."""


class ObjectiveContext(NamedTuple):
    """Inputs from which extra examples are made, beside the settings."""

    read_judged: Callable[[], Sequence[Sample]]
    """All samples of the training and validation splits, and of the objective's extra ones."""
    tokenizer: Any
    template_date: datetime.date | None
    """Day that the tokenizer's chat template writes; None where it writes none."""
    end_of_turn: int
    open_source: Callable[[str], SourceFiles]
    """A configured source's raw files by its name; `UserError` where they can't be had."""


@dataclass(frozen=True)
class ObjectiveSpec:
    """One way to train a monitor; samples are those that fit into `training.max_tokens`."""

    name: Objective
    """Value of `training.objective` that chooses this objective."""
    units: Callable[[Sequence[Sample], int, Training, np.random.Generator], Iterator[Sequence[Unit]]]
    """Yield the units of every step, from samples, the number of extra examples, settings and a draw.

    A step's units together hold `batch_size` positions; extra examples count on from `len(samples)`.
    """
    validate: Callable[[Sequence[Sample], Training], None] = lambda *_: None
    """Raises `UserError` where the samples give this objective nothing to work on."""
    facts: Callable[[Sequence[Sample]], dict[str, int]] = lambda samples: {}
    """Facts about the samples for the manifest."""
    loss: Callable[[Sequence[Sample], LabelTokens, Training], AddedLoss | None] = lambda *_: None
    """Make the loss that is added to the label's; None adds none."""
    extra_splits: tuple[Split, ...] = ()
    """Splits that are read beside training and validation."""
    extra_examples: Callable[[Training, ObjectiveContext], ExtraExamples] = lambda *_: ExtraExamples([], {})
    """Make the examples that are trained on beside the judged samples."""


def steps_of(
    units: Iterator[Unit], n_steps: int, batch_size: int, begin: Callable[[], list[Unit]] = list
) -> Iterator[list[Unit]]:
    """Yield `n_steps` steps, each begun with the units of `begin` and filled up to `batch_size` positions."""
    for _ in range(n_steps):
        step = begin()
        while sum(map(len, step)) < batch_size:
            step.append(next(units))
        yield step


def endless(items: Sequence[int], draw: np.random.Generator) -> Iterator[int]:
    """Yield every item once a round, each round in another order."""
    while True:
        for k in draw.permutation(len(items)):
            yield items[k]


def in_turn(streams: Sequence[Iterator[T]], draw: np.random.Generator) -> Iterator[T]:
    """Yield one item of each stream a round, each round in another order."""
    while True:
        for k in draw.permutation(len(streams)):
            yield next(streams[k])


def strata(pool: Sequence[int], key: Callable[[int], Hashable]) -> list[list[int]]:
    """The pool divided by a key, strata and members in the pool's order."""
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for i in pool:
        groups[key(i)].append(i)
    return list(groups.values())


def single_samples(
    samples: Sequence[Sample], pool: Sequence[int], training: Training, draw: np.random.Generator
) -> Iterator[Unit]:
    """The pool's samples one by one without end, labels and cells as often as `balance` wants them."""
    cells = strata(pool, lambda i: samples[i].cell) if training.balance == "cell" else [pool]
    by_label = training.balance != "none"
    return (
        (i,)
        for i in in_turn(
            [
                in_turn(
                    [endless(s, draw) for s in strata(cell, lambda i: samples[i].label if by_label else "")],
                    draw,
                )
                for cell in cells
            ],
            draw,
        )
    )


def _all_samples(
    samples: Sequence[Sample], n_extra: int, training: Training, draw: np.random.Generator
) -> Iterator[Sequence[Unit]]:
    units = single_samples(samples, range(len(samples)), training, draw)
    return steps_of(units, training.steps, training.batch_size)


SFT = ObjectiveSpec("sft", units=_all_samples)


def _shares(samples: Sequence[Sample], training: Training) -> dict[str, float]:
    """Share of the steps in the stage that each category present begins, in the categories' order."""
    present = {sample.category for sample in samples}
    return {c: s for c, s in zip(Category, training.curriculum_shares, strict=True) if c in present}


def _stage_steps(shares: dict[str, float], max_steps: int) -> list[int]:
    """Optimizer steps of each stage, rounded so that they sum to `max_steps`."""
    ends = np.cumsum(list(shares.values())) / sum(shares.values()) * max_steps
    return [int(n) for n in np.diff(np.round(ends).astype(int), prepend=0)]


def _validate_categories(samples: Sequence[Sample], training: Training) -> None:
    if own := sorted({sample.category for sample in samples} - set(Category)):
        raise UserError(
            f"training.objective=curriculum: it has a place for the paper's categories only, not for "
            f"{', '.join(own)}; expected another objective, or a subset without them"
        )
    shares = _shares(samples, training)
    if len(shares) < 2:
        raise UserError(
            f"training.objective=curriculum: the training samples are all {', '.join(shares)}; expected a "
            "subset with two categories or more"
        )
    if not sum(shares.values()):
        raise UserError("training.curriculum_shares: no step is left for the categories that are there")
    if not _stage_steps(shares, training.steps)[-1]:
        raise UserError(
            f"training.objective=curriculum: of max_steps={training.steps} none is left for all "
            "categories together; raise training.max_steps or the last of training.curriculum_shares"
        )


def _stages(
    samples: Sequence[Sample], n_extra: int, training: Training, draw: np.random.Generator
) -> Iterator[Sequence[Unit]]:
    shares = _shares(samples, training)
    joined: set[str] = set()
    for category, n_steps in zip(shares, _stage_steps(shares, training.steps), strict=True):
        joined.add(category)
        pool = [i for i, sample in enumerate(samples) if sample.category in joined]
        yield from steps_of(single_samples(samples, pool, training, draw), n_steps, training.batch_size)


CURRICULUM = ObjectiveSpec("curriculum", units=_stages, validate=_validate_categories)
"""Categories join from explicit to implicit, and those that joined stay.

That is Bengio et al. 2009, section 3: no example's weight ever falls, and the last stage is the training
distribution itself. Categories that are absent leave their share of the steps to the others.
"""


def find_pairs(samples: Sequence[Sample], pool: Iterable[int] | None = None) -> list[Unit]:
    """Positions of pairs, misbehavior first; a sample is in one pair at most."""
    sides: defaultdict[Hashable, dict[Label, list[int]]] = defaultdict(lambda: {label: [] for label in Label})
    for i in range(len(samples)) if pool is None else pool:
        sides[samples[i].cell, samples[i].pair_id][samples[i].label].append(i)
    return [
        pair
        for side in sides.values()
        for pair in zip(side[Label.MISBEHAVIOR], side[Label.BENIGN], strict=False)
    ]


def margin_loss(
    logits_SV: torch.Tensor, batch: ExampleBatch, pairs_P2: torch.Tensor, tokens: LabelTokens, margin: float
) -> torch.Tensor:
    """Sum over pairs of softplus(margin − (score of the misbehavior sample − score of its counterpart)).

    A score is the logit of the evaluation's: ln P(any misbehavior word) − ln P(any benign word) where the
    label is answered. `pairs_P2` holds positions among the batch's examples, misbehavior first.
    """
    first_N = torch.searchsorted(batch.example_S, torch.arange(int(batch.example_S[-1]) + 1).to(pairs_P2))
    logits_NV = logits_SV[first_N]
    scores_N = logits_NV[:, list(tokens.misbehavior)].logsumexp(-1)
    scores_N = scores_N - logits_NV[:, list(tokens.benign)].logsumexp(-1)
    gaps_P = scores_N[pairs_P2[:, 0]] - scores_N[pairs_P2[:, 1]]
    return functional.softplus(margin - gaps_P).sum()


def _validate_pairs(samples: Sequence[Sample], training: Training) -> None:
    if not find_pairs(samples):
        raise UserError(
            f"training.objective=pairwise: none of {len(samples)} samples has its counterpart beside it; "
            "expected a paired training split, or objective=sft"
        )


def _pair_facts(samples: Sequence[Sample]) -> dict[str, int]:
    n_pairs = len(find_pairs(samples))
    _log.info("train: %d of %d samples have their counterpart beside them", 2 * n_pairs, len(samples))
    return {"n_pairs": n_pairs}


def _pairs_together(
    samples: Sequence[Sample], n_extra: int, training: Training, draw: np.random.Generator
) -> Iterator[Sequence[Unit]]:
    pool = range(len(samples))
    cells = strata(pool, lambda i: samples[i].cell) if training.balance == "cell" else [pool]
    units = in_turn([_two_by_two(samples, cell, draw) for cell in cells], draw)
    return steps_of(units, training.steps, training.batch_size)


def _two_by_two(samples: Sequence[Sample], pool: Sequence[int], draw: np.random.Generator) -> Iterator[Unit]:
    """Pairs, and the unpaired two by two; each round has every sample, an odd one with a chance partner."""
    pairs = find_pairs(samples, pool)
    paired = {i for pair in pairs for i in pair}
    single = [i for i in pool if i not in paired]
    while True:
        shuffled = [single[k] for k in draw.permutation(len(single))]
        if len(shuffled) % 2:
            shuffled.append(pool[int(draw.integers(len(pool)))])
        twos = [*pairs, *zip(shuffled[::2], shuffled[1::2], strict=True)]
        yield from (twos[k] for k in draw.permutation(len(twos)))


def _pair_loss(samples: Sequence[Sample], tokens: LabelTokens, training: Training) -> AddedLoss:
    """`pair_weight` times the margin's loss; a step's is the mean over its twos, pairs or not."""
    pairs = set(find_pairs(samples))

    def added(logits_SV: torch.Tensor, batch: ExampleBatch, units: Sequence[Unit]) -> torch.Tensor:
        places = [(2 * k, 2 * k + 1) for k, unit in enumerate(units) if unit in pairs]
        if not places:
            return logits_SV.new_zeros(())
        pairs_P2 = torch.tensor(places, device=logits_SV.device)
        term = margin_loss(logits_SV, batch, pairs_P2, tokens, training.margin)
        return training.pair_weight * term / (training.micro_batch_size / 2)

    return added


PAIRWISE = ObjectiveSpec(
    "pairwise", units=_pairs_together, validate=_validate_pairs, facts=_pair_facts, loss=_pair_loss
)
"""The label, and a margin between the scores of a sample and its counterpart.

A pair is the misbehavior and the benign sample of one cell and pair id. A pair stays in one forward pass;
samples without a counterpart go two by two beside the pairs and train by the label alone.
"""
