"""`objective=sft`: the label alone, sample by sample, balanced as the settings say."""

from collections.abc import Iterator, Sequence

import numpy as np

from monitorbench.config.training import Training
from monitorbench.records import Sample
from monitorbench.training.objectives.base import ObjectiveSpec, Unit, endless, in_turn, steps_of, strata


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
