"""`objective=curriculum`: categories join from explicit to implicit, and those that joined stay.

That is Bengio et al. 2009, section 3: no example's weight ever falls, and the last stage is the training
distribution itself. Categories that are absent leave their share of the steps to the others.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from monitorbench.config.base import UserError
from monitorbench.config.training import Training
from monitorbench.records import Category, Sample
from monitorbench.training.objectives.base import ObjectiveSpec, Unit, single_samples, steps_of


def _shares(samples: Sequence[Sample], training: Training) -> dict[str, float]:
    """Share of the steps in the stage that each category present begins, in the categories' order."""
    present = {sample.category for sample in samples}
    return {c: s for c, s in zip(Category, training.curriculum_shares, strict=True) if c in present}


def _steps(shares: dict[str, float], max_steps: int) -> list[int]:
    """Optimizer steps of each stage, rounded so that they sum to `max_steps`."""
    ends = np.cumsum(list(shares.values())) / sum(shares.values()) * max_steps
    return [int(n) for n in np.diff(np.round(ends).astype(int), prepend=0)]


def _validate(samples: Sequence[Sample], training: Training) -> None:
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
    if not _steps(shares, training.steps)[-1]:
        raise UserError(
            f"training.objective=curriculum: of max_steps={training.steps} none is left for all "
            "categories together; raise training.max_steps or the last of training.curriculum_shares"
        )


def _units(
    samples: Sequence[Sample], n_extra: int, training: Training, draw: np.random.Generator
) -> Iterator[Sequence[Unit]]:
    shares = _shares(samples, training)
    joined: set[str] = set()
    for category, n_steps in zip(shares, _steps(shares, training.steps), strict=True):
        joined.add(category)
        pool = [i for i, sample in enumerate(samples) if sample.category in joined]
        yield from steps_of(single_samples(samples, pool, training, draw), n_steps, training.batch_size)


CURRICULUM = ObjectiveSpec("curriculum", units=_units, validate=_validate)
