"""Which trainings of linear heads share a direction: cosines of what they weigh hidden states by.

Heads are compared in one layer at one position, since states of two layers have no common axes: the place
with the best mean validation AUROC over trainings, each on the cells that it was trained on. A cosine of two
trainings is the mean over all pairs of a head of the one and a head of the other, and of a training with
itself over the pairs of its seeds: two trainings can hardly be more alike than two seeds of one.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from statistics import fmean
from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray


class Found(NamedTuple):
    """A head's direction in one place."""

    auroc: float
    """AUROC on the head's validation split."""
    weights_H: NDArray[np.float32]
    """Weights of the states as they are, not standardised."""


Place = tuple[int, str]
"""A layer, counted from 1, and a position."""


class DirectionsFacts(TypedDict):
    """The cosines of linear heads, by training."""

    layer: int
    """Layer in which heads are compared."""
    position: str
    hidden: int
    """Dimensions of a state."""
    trainings: list[str]
    n_seeds: list[int]
    validation_auroc: list[float]
    """AUROC in that layer and position, the mean over seeds."""
    cosines: list[list[float | None]]
    """[trainings, trainings], in [-1, 1]; None of a training of one seed with itself."""


def common_place(trainings: Mapping[str, Sequence[Mapping[Place, Found]]]) -> Place | None:
    """The place that all heads have with the best mean AUROC over trainings; the first of equals."""
    heads = [head for of_one in trainings.values() for head in of_one]
    shared = [place for place in (heads[0] if heads else ()) if all(place in head for head in heads)]
    if not shared:
        return None
    return max(shared, key=lambda place: round(fmean(_mean_auroc(of, place) for of in trainings.values()), 6))


def directions(trainings: Mapping[str, Sequence[Mapping[Place, Found]]], place: Place) -> DirectionsFacts:
    """The cosines in one place; each training has at least one head, each head that place."""
    units = {name: [_unit(head[place].weights_H) for head in heads] for name, heads in trainings.items()}
    layer, position = place
    return DirectionsFacts(
        layer=layer,
        position=position,
        hidden=len(next(iter(units.values()))[0]),
        trainings=list(units),
        n_seeds=[len(heads) for heads in units.values()],
        validation_auroc=[_mean_auroc(heads, place) for heads in trainings.values()],
        cosines=[[_cosine(units[row], units[column], row == column) for column in units] for row in units],
    )


def mean_directions(
    trainings: Mapping[str, Sequence[Mapping[Place, Found]]], place: Place
) -> dict[str, list[float]]:
    """Each training's mean of its heads' directions, of length 1, six decimals."""
    means = {
        name: _unit(np.mean([_unit(head[place].weights_H) for head in heads], axis=0))
        for name, heads in trainings.items()
    }
    return {name: [round(float(value), 6) for value in mean_H] for name, mean_H in means.items()}


def _mean_auroc(heads: Sequence[Mapping[Place, Found]], place: Place) -> float:
    return fmean(head[place].auroc for head in heads)


def _unit(weights_H: NDArray[np.float32] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale weights to length 1; zeros stay zeros."""
    found_H = weights_H.astype(np.float64)
    return found_H / max(float(np.linalg.norm(found_H)), 1e-12)


def _cosine(
    ours: Sequence[NDArray[np.float64]], theirs: Sequence[NDArray[np.float64]], is_same: bool
) -> float | None:
    pairs = list(combinations(ours, 2) if is_same else product(ours, theirs))
    return fmean(float(a_H @ b_H) for a_H, b_H in pairs) if pairs else None
