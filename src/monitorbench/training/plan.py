"""Which samples every optimizer step and every forward pass hold, decided before step 1.

A pure function of samples, settings and seed, so that a resumed run, or one on several processes, sees
what an undisturbed one on a single process sees. How a step's samples are batched never changes which
samples the step has: padded, length-grouped and packed runs differ in speed alone.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from monitorbench.config.base import UserError
from monitorbench.config.training import Training
from monitorbench.records import Category, Label, Sample

T = TypeVar("T")
Unit = tuple[int, ...]
"""Positions of samples that stay in one forward pass; for `pairwise` two, misbehavior first if a pair."""
MicroBatch = tuple[Unit, ...]
"""What one forward pass holds."""


def make_plan(
    samples: Sequence[Sample], lengths: Sequence[int], n_instructions: int, training: Training, seed: int
) -> list[MicroBatch]:
    """The forward passes of the whole run, `batch_size / micro_batch_size` to a step.

    Positions from `len(samples)` on are the instruction samples of `mixed`; `lengths` are tokens of both.
    Raises `UserError` where a curriculum has one category, or no pair is there to be told apart.
    """
    draw = np.random.default_rng(seed)
    instructions = _endless(range(len(samples), len(samples) + n_instructions), draw)
    passes: list[MicroBatch] = []
    for pool, n_steps in _stages(samples, training):
        units = _units(samples, pool, training, draw)
        for _ in range(n_steps):
            step: list[Unit] = [(next(instructions),) for _ in range(training.n_mixed)]
            while sum(map(len, step)) < training.batch_size:
                step.append(next(units))
            passes += _passes(step, lengths, training)
    return passes


def find_pairs(samples: Sequence[Sample], pool: Iterable[int] | None = None) -> list[Unit]:
    """Positions of twins (one cell and pair id), misbehavior first; a sample is in one pair at most."""
    sides: defaultdict[Hashable, dict[Label, list[int]]] = defaultdict(lambda: {label: [] for label in Label})
    for i in range(len(samples)) if pool is None else pool:
        sides[samples[i].cell, samples[i].pair_id][samples[i].label].append(i)
    return [
        pair
        for side in sides.values()
        for pair in zip(side[Label.MISBEHAVIOR], side[Label.BENIGN], strict=False)
    ]


def _stages(samples: Sequence[Sample], training: Training) -> list[tuple[list[int], int]]:
    """Who may be drawn, and for how many steps. A curriculum's pool grows until it is the whole.

    That is Bengio et al. 2009, section 3: no example's weight ever falls, and the last stage is the
    training distribution itself. Categories that are absent leave their share to the others.
    """
    everyone = list(range(len(samples)))
    if training.objective != "curriculum":
        return [(everyone, training.max_steps)]
    present = {sample.category for sample in samples}
    shares = {c: s for c, s in zip(Category, training.curriculum_shares, strict=True) if c in present}
    if len(shares) < 2:
        raise UserError(
            f"training.objective=curriculum: the training samples are all {', '.join(present)}; expected a "
            "subset with two categories or more"
        )
    if not sum(shares.values()):
        raise UserError("training.curriculum_shares: no step is left for the categories that are there")
    ends = np.cumsum(list(shares.values())) / sum(shares.values()) * training.max_steps
    steps = np.diff(np.round(ends).astype(int), prepend=0)
    if not steps[-1]:
        raise UserError(
            f"training.objective=curriculum: of max_steps={training.max_steps} none is left for all "
            "categories together; raise training.max_steps or the last of training.curriculum_shares"
        )
    stages, joined = [], set()
    for category, n_steps in zip(shares, steps, strict=True):
        joined.add(category)
        stages.append(([i for i in everyone if samples[i].category in joined], int(n_steps)))
    return stages


def _units(
    samples: Sequence[Sample], pool: Sequence[int], training: Training, draw: np.random.Generator
) -> Iterator[Unit]:
    """What is trained on, without end."""
    if training.objective == "pairwise":
        if not find_pairs(samples, pool):
            raise UserError(
                f"training.objective=pairwise: none of {len(pool)} samples has its twin beside it; expected "
                "a paired training split, or objective=sft"
            )
        strata = _split(pool, lambda i: samples[i].cell) if training.balance == "cell" else [pool]
        return _in_turn([_duos(samples, stratum, draw) for stratum in strata], draw)
    cells = _split(pool, lambda i: samples[i].cell) if training.balance == "cell" else [pool]
    by_label = training.balance != "none"
    return (
        (i,)
        for i in _in_turn(
            [
                _in_turn(
                    [_endless(s, draw) for s in _split(cell, lambda i: samples[i].label if by_label else "")],
                    draw,
                )
                for cell in cells
            ],
            draw,
        )
    )


def _duos(samples: Sequence[Sample], pool: Sequence[int], draw: np.random.Generator) -> Iterator[Unit]:
    """Pairs, and the unpaired two by two; each round has every sample, an odd one with a chance partner."""
    pairs = find_pairs(samples, pool)
    paired = {i for pair in pairs for i in pair}
    single = [i for i in pool if i not in paired]
    while True:
        shuffled = [single[k] for k in draw.permutation(len(single))]
        if len(shuffled) % 2:
            shuffled.append(pool[int(draw.integers(len(pool)))])
        duos = [*pairs, *zip(shuffled[::2], shuffled[1::2], strict=True)]
        yield from (duos[k] for k in draw.permutation(len(duos)))


def _endless(items: Sequence[int], draw: np.random.Generator) -> Iterator[int]:
    """Every item once a round, each round in another order."""
    while True:
        for k in draw.permutation(len(items)):
            yield items[k]


def _in_turn(streams: Sequence[Iterator[T]], draw: np.random.Generator) -> Iterator[T]:
    """One of each stream a round, each round in another order."""
    while True:
        for k in draw.permutation(len(streams)):
            yield next(streams[k])


def _split(pool: Sequence[int], key: Callable[[int], Hashable]) -> list[list[int]]:
    strata: defaultdict[Hashable, list[int]] = defaultdict(list)
    for i in pool:
        strata[key(i)].append(i)
    return list(strata.values())


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
