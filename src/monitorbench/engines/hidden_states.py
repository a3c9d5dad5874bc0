"""Outputs of a model's layers for a prompt, as a probe reads them: pooled to a few vectors, or by token.

One forward pass a prompt, without padding, through the first layers only: a prompt's states do not depend on
what else is asked for, so that an interrupted extraction goes on to the same bytes.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from monitorbench.config.base import UserError
from monitorbench.config.hardware import runs_on_gpu
from monitorbench.config.study import TransformersEngine
from monitorbench.config.training import Position
from monitorbench.engines.protocol import Decoding, Reply, Request
from monitorbench.engines.stored.head import windows
from monitorbench.engines.stored.load import load_causal_lm

_MOST = float(np.finfo(np.float16).max)


class Extracted(NamedTuple):
    """The states of one prompt."""

    states: NDArray[np.float16]
    """[windows or tokens, layers, positions, hidden]; values beyond float16's range are its largest."""
    seconds: float


def layer_numbers(depth: int, shares: Sequence[float]) -> tuple[int, ...]:
    """Layers by shares of the depth, from 1 to `depth`, each once, in order."""
    return tuple(sorted({max(1, round(share * depth)) for share in shares}))


class HiddenStates:
    """A loaded `Model` that answers with its states, cut behind the last layer that is asked for."""

    tokenizer = None

    def __init__(
        self,
        config: TransformersEngine,
        weights: Path,
        layers: Sequence[int],
        positions: Sequence[Position],
        window: int | None,
    ) -> None:
        """`layers` count from 1, `window` is a head's. `UserError` for a model without a list of layers."""
        device = "cuda" if runs_on_gpu(config.device, "engine.device") else "cpu"
        model = load_causal_lm(weights, getattr(torch, config.resolved_dtype))
        decoder: Any = model.get_decoder()
        if not isinstance(getattr(decoder, "layers", None), torch.nn.ModuleList):
            raise UserError(f"{weights}: {type(decoder).__name__} has no list of layers; expected a decoder")
        decoder.layers = decoder.layers[: max(layers)]
        self._decoder = decoder.to(device).eval()
        self._positions = tuple(positions)
        self._window = window
        self._span = (0, 1)
        self._found: dict[int, torch.Tensor] = {}
        for layer in layers:
            decoder.layers[layer - 1].register_forward_hook(self._keep_layer(layer))

    @torch.inference_mode()
    def states(self, ids: Sequence[int], span: tuple[int, int]) -> Extracted:
        """The states of one prompt; `span` is the half-open range of the judged response in it."""
        began = time.perf_counter()
        self._span = span
        self._found.clear()
        ids_1T = torch.tensor([list(ids)], device=self._decoder.device)
        self._decoder(input_ids=ids_1T, use_cache=False)
        stacked = torch.stack([self._found[layer] for layer in sorted(self._found)], 1)
        return Extracted(stacked.cpu().numpy(), time.perf_counter() - began)

    def prepare(self, first: Request, decoding: Decoding) -> float | None:
        """See `Model.prepare`: it is loaded, and has no adapter."""
        return None

    def answers(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        """See `Model.answers`: the states of each prompt, in order; nothing is generated."""
        for index, request in enumerate(requests):
            extracted = self.states(request.token_ids, request.response)
            n_tokens = len(request.token_ids)
            yield (
                index,
                Reply(
                    "", "states", prompt_tokens=n_tokens, seconds=extracted.seconds, states=extracted.states
                ),
            )

    def close(self) -> None:
        """Drop the model."""
        del self._decoder

    def _keep_layer(self, layer: int) -> Any:
        def keep(module: torch.nn.Module, inputs: Any, output: Any) -> None:
            states_TH = (output[0] if isinstance(output, tuple) else output)[0]
            self._found[layer] = kept(states_TH, self._positions, self._span, self._window)

        return keep


def kept(
    states_TH: torch.Tensor, positions: Sequence[Position], span: tuple[int, int], window: int | None
) -> torch.Tensor:
    """A prompt's states as a head reads them: [windows or tokens, positions, hidden] in float16, clipped.

    `span` is the half-open range of the judged response, `window` a head's.
    """
    response_RH = states_TH[span[0] : span[1]].float()
    found_NPH = torch.stack(
        [
            states_TH[-1:].float() if position == "last" else _of_response(response_RH, position, window)
            for position in positions
        ],
        1,
    )
    return found_NPH.clamp(-_MOST, _MOST).half()


def _of_response(response_RH: torch.Tensor, position: Position, window: int | None) -> torch.Tensor:
    """[windows or tokens, hidden]."""
    if position == "tokens":
        return response_RH
    parts = [response_RH[start:end] for start, end in windows(len(response_RH), window)]
    return torch.stack([piece.mean(0) if position == "mean" else piece.amax(0) for piece in parts])
