"""What a model's layers put out for a prompt, pooled to a few vectors: what a probe reads.

One forward pass a prompt, without padding, through the first layers only: a prompt's states do not depend on
what else is asked for, so that an interrupted extraction goes on to the same bytes.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from monitorbench.config.base import UserError
from monitorbench.config.hardware import runs_on_gpu
from monitorbench.config.head import Position
from monitorbench.config.study import TransformersEngine
from monitorbench.engines.stored.load import load_causal_lm

_MOST = float(np.finfo(np.float16).max)


class Pooled(NamedTuple):
    """The states of one prompt."""

    states: NDArray[np.float16]
    """[layers, positions, hidden]; values beyond float16's range are its largest."""
    seconds: float


def layer_numbers(depth: int, shares: Sequence[float]) -> tuple[int, ...]:
    """Layers by shares of the depth, from 1 to `depth`, each once, in order."""
    return tuple(sorted({max(1, round(share * depth)) for share in shares}))


class HiddenStates:
    """A loaded model, cut behind the last layer that is asked for; give it back with `close`."""

    def __init__(
        self,
        config: TransformersEngine,
        weights: Path,
        layers: Sequence[int],
        positions: Sequence[Position],
    ) -> None:
        """`layers` count from 1. Raises `UserError` for a model without a plain list of layers."""
        device = "cuda" if runs_on_gpu(config.device, "engine.device") else "cpu"
        model = load_causal_lm(weights, getattr(torch, config.resolved_dtype))
        decoder: Any = model.get_decoder()
        if not isinstance(getattr(decoder, "layers", None), torch.nn.ModuleList):
            raise UserError(f"{weights}: {type(decoder).__name__} has no list of layers; expected a decoder")
        decoder.layers = decoder.layers[: max(layers)]
        self._decoder = decoder.to(device).eval()
        self._positions = tuple(positions)
        self._span = (0, 1)
        self._found: dict[int, torch.Tensor] = {}
        for layer in layers:
            decoder.layers[layer - 1].register_forward_hook(self._pool_layer(layer))

    @torch.inference_mode()
    def pooled(self, ids: Sequence[int], span: tuple[int, int]) -> Pooled:
        """The states of one prompt; `span` is the half-open range of the judged response in it."""
        began = time.perf_counter()
        self._span = span
        self._found.clear()
        ids_1T = torch.tensor([list(ids)], device=self._decoder.device)
        self._decoder(input_ids=ids_1T, use_cache=False)
        found = torch.stack([self._found[layer] for layer in sorted(self._found)])
        return Pooled(found.cpu().numpy().astype(np.float16), time.perf_counter() - began)

    def close(self) -> None:
        """Drop the model."""
        del self._decoder

    def _pool_layer(self, layer: int) -> Any:
        def pool(module: torch.nn.Module, inputs: Any, output: Any) -> None:
            states_TH = (output[0] if isinstance(output, tuple) else output)[0].float()
            self._found[layer] = torch.stack(
                [pooled_at(states_TH, one, self._span) for one in self._positions]
            )

        return pool


def pooled_at(states_TH: torch.Tensor, position: Position, span: tuple[int, int]) -> torch.Tensor:
    """The vector [hidden] that stands for one prompt, within float16's range.

    `states_TH` are float32 and of that prompt alone; `span` is the half-open range of the judged response.
    """
    start, end = span
    match position:
        case "last":
            vector_H = states_TH[-1]
        case "mean":
            vector_H = states_TH[start:end].mean(0)
        case "max":
            vector_H = states_TH[start:end].amax(0)
    return vector_H.clamp(-_MOST, _MOST)
