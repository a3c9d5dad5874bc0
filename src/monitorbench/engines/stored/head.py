"""A probe's head on disk: one safetensors file, with what it reads beside its weights."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitorbench.config.base import UserError
from monitorbench.config.head import Position
from monitorbench.runs.directory import MANIFEST, checked_file, read_finished

FILE = "head.safetensors"


@dataclass(frozen=True)
class ReadFrom:
    """What a head reads: the states of these weights for this rendering of a sample."""

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


@dataclass(frozen=True)
class FittedHead:
    """score = sigmoid(v · h + c) with h = (x - mean) / scale, or of an MLP relu(W (x - mean) / scale + b)."""

    read_from: ReadFrom
    tensors: dict[str, NDArray[np.float32]]
    """`mean`, `scale` [hidden]; `v` [units or hidden], `c` [1]; of an MLP also `W` [units, hidden], `b`."""

    def scores(self, states_NH: NDArray[Any]) -> NDArray[np.float64]:
        """Probability of misbehavior, in (0, 1), by sample."""
        t = {name: tensor.astype(np.float64) for name, tensor in self.tensors.items()}
        x = (states_NH.astype(np.float64) - t["mean"]) / t["scale"]
        if "W" in t:
            x = np.maximum(x @ t["W"].T + t["b"], 0)
        return np.asarray(0.5 * (1 + np.tanh(0.5 * (x @ t["v"] + t["c"][0]))))

    def save(self, file: Path) -> None:
        """Write the file; equal heads give equal bytes."""
        from safetensors.numpy import save_file

        metadata = {"head": json.dumps(asdict(self.read_from), sort_keys=True)}
        save_file(dict(sorted(self.tensors.items())), file, metadata)


def head_file(head: Path) -> Path:
    """The file of `monitor.head`: itself, or that of a finished run of `train/fit.py`, unchanged since.

    Raises `UserError` where there is none.
    """
    if head.is_file():
        return head
    if (head / MANIFEST).is_file():
        read_finished(head)
        if (head / FILE).is_file():
            return checked_file(head, FILE)
    raise UserError(f"monitor.head={head}: no {FILE} there; expected a run of train/fit.py")


def read_head(file: Path) -> FittedHead:
    """The head in a file; `UserError` where it is none."""
    from safetensors import SafetensorError, safe_open
    from safetensors.numpy import load_file

    try:
        with safe_open(file, "numpy") as opened:
            stated = json.loads((opened.metadata() or {})["head"])
            stated = stated | {name: tuple(stated[name]) for name in ("shares", "positions")}
        return FittedHead(ReadFrom(**stated), load_file(file))
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{file}: no head as train/fit.py writes it; fit it again") from error
