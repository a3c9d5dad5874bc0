"""The directions of the linear heads behind some evaluations, read from the runs of their fits."""

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.engines.stored.head import DIRECTIONS_FILE, read_directions
from monitorbench.metrics.directions import (
    DirectionsFacts,
    Found,
    Place,
    common_place,
    directions,
    mean_directions,
)
from monitorbench.runs.directory import checked_file, read_checked
from monitorbench.scoring.evaluations import Evaluation

_log = logging.getLogger(__name__)


class Steering(NamedTuple):
    """The directions of linear heads, by training, and their cosines."""

    facts: DirectionsFacts
    file: dict[str, Any]
    """Content of `directions.json`: the facts, and each training's mean direction."""


def directions_of(evaluations: Sequence[Evaluation]) -> Steering | None:
    """The directions of at least two trainings whose heads are linear and read one base's states.

    None where there are fewer, or no layer and position that all were fitted in. A head whose run is not
    there any more is left out with a warning.
    """
    trainings: dict[str, list[dict[Place, Found]]] = {}
    bases = Counter[str]()
    for evaluation in evaluations:
        if (head := _head(evaluation)) and (at_places := _read(head)):
            bases[evaluation.basis] += 1
            trainings.setdefault(evaluation.family, []).append(at_places)
    if len(bases) > 1:
        _log.info("transfer: heads of %d bases or prompts: their directions have no common axes", len(bases))
        return None
    place = common_place(trainings) if len(trainings) > 1 else None
    if place is None:
        return None
    facts = directions(trainings, place)
    return Steering(facts, {**facts, "directions": mean_directions(trainings, place)})


def _head(evaluation: Evaluation) -> Path | None:
    """The run of the head's fit, as the evaluation's settings name it."""
    path = read_checked(evaluation.directory, "config.json")["monitor"].get("head")
    return Path(path) if path else None


def _read(head: Path) -> dict[Place, Found] | None:
    folder = head.parent if head.is_file() else head
    if not (folder / DIRECTIONS_FILE).is_file():
        return None  # of another kind, or by itself
    try:
        read = read_directions(checked_file(folder, DIRECTIONS_FILE))
    except UserError as error:
        _log.warning("transfer: left out of the directions: %s", error)
        return None
    return {
        (direction.place.layer, direction.place.position): Found(direction.auroc, direction.weights_H)
        for direction in read
    }
