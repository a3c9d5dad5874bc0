"""The parts of a training objective, the plainest of them, and the draws from which others make their steps.

An objective is one file here: an `ObjectiveSpec`, of which every part but the name has a default that does
nothing more than train on the labels, as `sft` does, balanced as the settings say. Its place in the list is
in `training.trainer`, its name and its settings (with the checks that need no samples) in `config.training`,
which sweeps read before anything is loaded.
"""

import datetime
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch

from monitorbench.config.training import Objective, Training
from monitorbench.prompts.label_tokens import LabelTokens
from monitorbench.records import Sample, Split
from monitorbench.sources.read import SourceFiles
from monitorbench.training.examples import Example, ExampleBatch

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


def _units(
    samples: Sequence[Sample], n_extra: int, training: Training, draw: np.random.Generator
) -> Iterator[Sequence[Unit]]:
    units = single_samples(samples, range(len(samples)), training, draw)
    return steps_of(units, training.steps, training.batch_size)


SFT = ObjectiveSpec("sft", units=_units)
