"""A probe's head on disk, with what it reads beside its weights, and the directions that its fit found.

A head keeps the place in the model that validation chose. Heads are compared at one place, which need not be
that of each, so a linear head's run keeps the direction of every layer and position in a second file.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, TypeAdapter

from monitorbench.config.base import UserError
from monitorbench.config.training import Position, Storage
from monitorbench.runs.directory import MANIFEST, checked_file, read_finished


def windows(n_tokens: int, longest: int | None) -> list[tuple[int, int]]:
    """Half-open ranges that cover `n_tokens` (≥ 1) in order, none longer than `longest`; None: one for all.

    As few as can be, and of lengths that differ by one at most: a short rest would be a window of noise.
    """
    if longest is None or n_tokens <= longest:
        return [(0, n_tokens)]
    n = -(-n_tokens // longest)
    bounds = [number * n_tokens // n for number in range(n + 1)]
    return list(pairwise(bounds))


HEAD_FILE = "head.safetensors"


@dataclass(frozen=True)
class ReadFrom:
    """Input of a head: the states of these weights for this rendering of a sample."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    weights: str
    """`engines.weights.weights_identity`."""
    rendering: str
    """Hash of the prompt and the monitor's opening."""
    shares: tuple[float, ...]
    """`head.layers` of the fit, which decide what is extracted."""
    positions: tuple[Position, ...]
    layer: int
    """The chosen one, counted from 1."""
    position: Position
    """The chosen one."""
    window: int | None = None
    """`head.window` of the fit."""
    storage: Storage = "float16"
    """`head.storage` of the fit."""


@dataclass(frozen=True)
class FittedHead:
    """score = sigmoid(v · h + c), of a vector x or of a window's tokens x_t.

    With z = (x - mean) / scale, h is z, of an MLP relu(W z + b), and of attention the sum over t of
    softmax(q · z_t / sqrt(hidden)) z_t; with several queries v · h is the sum over them.
    """

    read_from: ReadFrom
    tensors: dict[str, NDArray[np.float32]]
    """`mean`, `scale` [hidden]; `v` [units or hidden], `c` [1]; of an MLP also `W` [units, hidden], `b`; of
    attention `q` and `v` are [queries, hidden]."""

    def scores(self, states_NH: NDArray[Any]) -> NDArray[np.float64]:
        """Probability of misbehavior, in (0, 1): of each vector, or of each window of a response's tokens."""
        t = {name: tensor.astype(np.float64) for name, tensor in self.tensors.items()}
        z = (states_NH.astype(np.float64) - t["mean"]) / t["scale"]
        if "q" in t:
            parts = windows(len(z), self.read_from.window)
            logits = np.array([_attended(z[start:end], t["q"], t["v"]) for start, end in parts])
        else:
            logits = (np.maximum(z @ t["W"].T + t["b"], 0) if "W" in t else z) @ t["v"]
        return np.asarray(0.5 * (1 + np.tanh(0.5 * (logits + t["c"][0]))))

    def suspicion(self, states_NH: NDArray[Any]) -> float:
        """The highest score of a sample's windows; of its one vector or window, where it has no more."""
        return float(self.scores(states_NH).max())

    def save(self, file: Path) -> None:
        """Write the file; equal heads give equal bytes."""
        from safetensors.numpy import save_file

        # What an older fit did not know is left out where it is as it was then: its files keep their hash.
        usual = {field.name: field.default for field in fields(ReadFrom)}
        stated = {name: value for name, value in asdict(self.read_from).items() if value != usual[name]}
        metadata = {"head": json.dumps(stated, sort_keys=True)}
        save_file(dict(sorted(self.tensors.items())), file, metadata)


def _attended(z_TH: NDArray[Any], q_KH: NDArray[Any], v_KH: NDArray[Any]) -> float:
    """Read out and sum the tokens that the queries attend to."""
    wanted_TK = z_TH @ q_KH.T / np.sqrt(z_TH.shape[1])
    weights_TK = np.exp(wanted_TK - wanted_TK.max(0))
    return float((weights_TK / weights_TK.sum(0) * (z_TH @ v_KH.T)).sum())


def head_file(head: Path) -> Path:
    """The file of `monitor.head`: itself, or that of a finished run of `train/fit.py`, unchanged since.

    Raises `UserError` where there is none.
    """
    if head.is_file():
        return head
    if (head / MANIFEST).is_file():
        read_finished(head)
        if (head / HEAD_FILE).is_file():
            return checked_file(head, HEAD_FILE)
    raise UserError(f"monitor.head={head}: no {HEAD_FILE} there; expected a run of `monitorbench fit`")


def read_head(file: Path) -> FittedHead:
    """The head in a file; `UserError` where it is none."""
    from safetensors import SafetensorError, safe_open
    from safetensors.numpy import load_file

    try:
        with safe_open(file, "numpy") as opened:
            read_from = TypeAdapter(ReadFrom).validate_json((opened.metadata() or {})["head"])
        head = FittedHead(read_from, load_file(file))
        head.scores(np.ones((1, len(head.tensors["mean"]))))  # whether its tensors fit each other
        return head
    except (SafetensorError, KeyError, ValueError, ArithmeticError, TypeError, IndexError) as error:
        raise UserError(f"{file}: no head as `monitorbench fit` writes it; fit it again") from error


DIRECTIONS_FILE = "directions.safetensors"


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
        raise UserError(f"{file}: no directions as `monitorbench fit` writes them; fit it again") from error


def _name(place: HeadPlace) -> str:
    return f"{place.layer}/{place.position}"
