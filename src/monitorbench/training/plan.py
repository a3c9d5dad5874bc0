"""Which samples every optimizer step and every forward pass hold, decided before step 1.

A pure function of samples, settings and seed, so that a resumed run, or one on several processes, sees
what an undisturbed one on a single process sees. How a step's samples are batched never changes which
samples the step has: padded, length-grouped and packed runs differ in speed alone.
"""

from collections.abc import Sequence

import numpy as np

from monitorbench.config.training import Training
from monitorbench.records import Sample
from monitorbench.training.objectives.all import objective_of
from monitorbench.training.objectives.base import Unit

MicroBatch = tuple[Unit, ...]
"""Units of one forward pass."""


def make_plan(
    samples: Sequence[Sample], lengths: Sequence[int], n_extra: int, training: Training, seed: int
) -> list[MicroBatch]:
    """The forward passes of the whole run, `batch_size / micro_batch_size` to a step.

    Positions from `len(samples)` on are the objective's extra examples; `lengths` are tokens of both.
    Raises `UserError` where the samples give the objective nothing to work on.
    """
    objective = objective_of(training)
    objective.validate(samples, training)
    draw = np.random.default_rng(seed)
    steps = objective.units(samples, n_extra, training, draw)
    return [micro_batch for step in steps for micro_batch in _passes(step, lengths, training)]


def _passes(step: Sequence[Unit], lengths: Sequence[int], training: Training) -> list[MicroBatch]:
    """Divide a step's units among its forward passes."""
    n_passes = training.batch_size // training.micro_batch_size
    # The longest first, so that what doesn't fit into memory fails at once.
    by_length = sorted(step, key=lambda unit: -sum(lengths[i] for i in unit))
    if training.batching == "packed":
        # Longest-processing-time rule (Graham 1969): each unit to the row with the fewest tokens so far.
        rows: list[list[Unit]] = [[] for _ in range(n_passes)]
        tokens = [0] * n_passes
        for unit in by_length:
            k = tokens.index(min(tokens))
            rows[k].append(unit)
            tokens[k] += sum(lengths[i] for i in unit)
        return [tuple(row) for row in rows]
    ordered = by_length if training.batching == "length_grouped" else step
    at_once = len(step) // n_passes
    return [tuple(ordered[k : k + at_once]) for k in range(0, len(step), at_once)]
