"""The directions that a linear head's fit found in every layer and position: one file in its run.

A head keeps the place that validation chose; heads are compared at one place, which need not be that of each.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitorbench.config.base import UserError
from monitorbench.config.training import Position

FILE = "directions.safetensors"


class HeadPlace(NamedTuple):
    """A place in a model where states are read."""

    layer: int
    """Counted from 1."""
    position: Position


class Direction(NamedTuple):
    """Weights of a logistic regression on the states of one place."""

    place: HeadPlace
    auroc: float
    """AUROC on the validation split, in [0, 1]."""
    weights_H: NDArray[np.float32]
    """Weights of the states as they are, not standardised: the logit is their product, plus a constant."""


def save_directions(directions: Sequence[Direction], file: Path) -> None:
    """Write the file; equal directions give equal bytes."""
    from safetensors.numpy import save_file

    tensors = {_name(direction.place): direction.weights_H for direction in directions}
    stated = [{**direction.place._asdict(), "auroc": direction.auroc} for direction in directions]
    save_file(dict(sorted(tensors.items())), file, {"directions": json.dumps(stated)})


def read_directions(file: Path) -> list[Direction]:
    """The directions in a file, in their order; `UserError` where it is none."""
    from safetensors import SafetensorError, safe_open
    from safetensors.numpy import load_file

    try:
        with safe_open(file, "numpy") as opened:
            stated = json.loads((opened.metadata() or {})["directions"])
        tensors = load_file(file)
        places = [(HeadPlace(entry["layer"], entry["position"]), float(entry["auroc"])) for entry in stated]
        return [Direction(place, auroc, tensors[_name(place)]) for place, auroc in places]
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise UserError(f"{file}: no directions as train/fit.py writes them; fit it again") from error


def _name(place: HeadPlace) -> str:
    return f"{place.layer}/{place.position}"
