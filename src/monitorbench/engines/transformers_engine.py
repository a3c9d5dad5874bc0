"""`engine=transformers`: greedy generation in this process, and the hidden states that a probe reads.

Answers are generated longest prompts first. States are extracted in one forward pass a prompt, without
padding, through the first layers only: a prompt's states do not depend on what else is asked for, so that an
interrupted extraction goes on to the same bytes.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import GenerationConfig, LogitsProcessor

from monitorbench.config.base import UserError
from monitorbench.config.hardware import runs_on_gpu
from monitorbench.config.study import TransformersEngine
from monitorbench.config.training import Position
from monitorbench.engines.protocol import Decoding, Model, Reply, Request, Tap
from monitorbench.engines.stored.head import windows
from monitorbench.engines.stored.model_folder import load_causal_lm, load_tokenizer

_MOST = float(np.finfo(np.float16).max)


def layer_numbers(depth: int, shares: Sequence[float]) -> tuple[int, ...]:
    """Layers by shares of the depth, from 1 to `depth`, each once, in order."""
    return tuple(sorted({max(1, round(share * depth)) for share in shares}))


class HiddenStates(Model):
    """A loaded `Model` that answers with its states, cut behind the last layer that is asked for."""

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
    def states(self, request: Request) -> NDArray[np.float16]:
        """[windows or tokens, layers, positions, hidden] of one prompt.

        Values beyond float16's range are its largest.
        """
        self._span = request.response
        self._found.clear()
        ids_1T = torch.tensor([list(request.token_ids)], device=self._decoder.device)
        self._decoder(input_ids=ids_1T, use_cache=False)
        stacked = torch.stack([self._found[layer] for layer in sorted(self._found)], 1)
        return np.asarray(stacked.cpu().numpy())

    def answers(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        """See `Model.answers`: the states of each prompt, in order; nothing is generated."""
        for index, request in enumerate(requests):
            began = time.perf_counter()
            states = self.states(request)
            seconds, n_tokens = time.perf_counter() - began, len(request.token_ids)
            yield index, Reply("", "states", prompt_tokens=n_tokens, seconds=seconds, states=states)

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


class _FirstStep(LogitsProcessor):
    """Keeps the log-probabilities of some tokens at the first generated position."""

    def __init__(self, token_ids: tuple[int, ...]) -> None:
        self.token_ids = token_ids
        self.logprobs_BT: torch.Tensor | None = None

    def __call__(self, input_ids: torch.Tensor, scores_BV: torch.Tensor) -> torch.Tensor:
        if self.logprobs_BT is None:
            self.logprobs_BT = scores_BV.float().log_softmax(-1)[:, list(self.token_ids)].cpu()
        return scores_BV


class _Reader:
    """Keeps the states that a tap reads of a batch, padded on the left, at its first pass."""

    def __init__(self, tap: Tap, lengths: Sequence[int]) -> None:
        self._tap, self._lengths = tap, lengths
        self.states_B: list[torch.Tensor] | None = None
        """Of each prompt, [windows or tokens, hidden]."""

    def __call__(self, module: torch.nn.Module, inputs: Any, output: Any) -> None:
        if self.states_B is not None:  # of the tokens that are generated
            return
        states_BTH = output[0] if isinstance(output, tuple) else output
        prompts = zip(states_BTH, self._lengths, self._tap.spans, strict=True)
        positions, window = (self._tap.position,), self._tap.window
        self.states_B = [
            kept(states_TH[-n:], positions, span, window)[:, 0] for states_TH, n, span in prompts
        ]


@contextmanager
def _reading(model: Any, tap: Tap | None, lengths: Sequence[int]) -> Iterator[_Reader | None]:
    """Read along in the passes of the body; `tap.spans` and `lengths` are the batch's, in its order."""
    if tap is None:
        yield None
        return
    reader = _Reader(tap, lengths)
    hook = model.get_decoder().layers[tap.layer - 1].register_forward_hook(reader)
    try:
        yield reader
    finally:
        hook.remove()


class InProcessTransformers:
    """An `Engine` on transformers and PEFT; an adapter is read when it is first taken."""

    def __init__(self, config: TransformersEngine, weights: Path, tokenizer: Any = None) -> None:
        device = "cuda" if runs_on_gpu(config.device, "engine.device") else "cpu"
        self._batch_size = config.batch_size
        self._tokenizer = tokenizer or load_tokenizer(weights)
        model = load_causal_lm(weights, getattr(torch, config.resolved_dtype))
        # generate() fills what a call leaves open from here: a model's own penalties would move the scores.
        model.generation_config = GenerationConfig()
        self._model = model.to(device).eval()
        self._adapter: Path | None = None
        self._names: dict[Path, str] = {}
        """What PEFT calls the adapters that were read."""

    def take(self, adapter: Path | None) -> None:
        """See `Engine.take`."""
        self._adapter = adapter
        if adapter is None:
            return
        from peft import PeftModel

        if adapter not in self._names:
            name = f"adapter{len(self._names)}"
            if self._names:
                self._model.load_adapter(str(adapter), name, use_safetensors=True)
            else:
                self._model = PeftModel.from_pretrained(
                    self._model, str(adapter), adapter_name=name, use_safetensors=True
                )
            self._names[adapter] = name
            self._model.eval()
        self._model.set_adapter(self._names[adapter])

    def complete(
        self, prompts: Sequence[Sequence[int]], decoding: Decoding, *, with_adapter: bool = True
    ) -> Iterator[tuple[int, Reply]]:
        """See `Engine.complete`. Prompts of like length share a batch, so little of it is padding."""
        order = sorted(range(len(prompts)), key=lambda i: -len(prompts[i]))
        for start in range(0, len(order), self._batch_size):
            indices = order[start : start + self._batch_size]
            batch, batch_decoding = [prompts[i] for i in indices], decoding
            if decoding.tap is not None:
                spans = tuple(decoding.tap.spans[i] for i in indices)
                batch_decoding = replace(decoding, tap=decoding.tap._replace(spans=spans))
            if self._names and not (self._adapter and with_adapter):
                with self._model.disable_adapter():
                    replies = self._batch(batch, batch_decoding)
            else:
                replies = self._batch(batch, batch_decoding)
            yield from zip(indices, replies, strict=True)

    def close(self) -> None:
        """Drop the model."""
        del self._model

    @torch.inference_mode()
    def _batch(self, prompts: Sequence[Sequence[int]], decoding: Decoding) -> list[Reply]:
        began = time.perf_counter()
        longest = max(map(len, prompts))
        pad = decoding.stop_token_ids[0]
        ids_BT = torch.tensor([[pad] * (longest - len(p)) + list(p) for p in prompts])
        mask_BT = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts])
        first_step = _FirstStep(decoding.scored_token_ids)
        with _reading(self._model, decoding.tap, [len(p) for p in prompts]) as reader:
            generated_BT = self._model.generate(
                input_ids=ids_BT.to(self._model.device),
                attention_mask=mask_BT.to(self._model.device),
                logits_processor=[first_step],
                generation_config=GenerationConfig(
                    max_new_tokens=decoding.max_new_tokens,
                    do_sample=False,
                    use_cache=decoding.max_new_tokens > 1,  # of one token it would only take memory and time
                    eos_token_id=list(decoding.stop_token_ids),
                    pad_token_id=pad,
                ),
            )[:, longest:].tolist()
        assert first_step.logprobs_BT is not None  # generate() takes at least one step
        seconds = (time.perf_counter() - began) / len(prompts)
        prompt_tokens = [len(prompt) for prompt in prompts]
        rows = zip(generated_BT, prompt_tokens, first_step.logprobs_BT.tolist(), strict=True)
        replies = [self._reply(row, n, logprobs, decoding, seconds) for row, n, logprobs in rows]
        if reader is None:
            return replies
        assert reader.states_B is not None
        read = zip(replies, reader.states_B, strict=True)
        return [replace(reply, states=states.cpu().numpy()) for reply, states in read]

    def _reply(
        self, row: list[int], prompt_tokens: int, logprobs: list[float], decoding: Decoding, seconds: float
    ) -> Reply:
        ids, stop_token_id = decoding.cut(tuple(row))
        return Reply(
            self._tokenizer.decode(ids, skip_special_tokens=False),
            "length" if stop_token_id is None else "stop",
            prompt_tokens=prompt_tokens,
            completion_tokens=len(ids),
            token_ids=ids,
            logprobs=dict(zip(decoding.scored_token_ids, logprobs, strict=True)),
            seconds=seconds,
            stop_token_id=stop_token_id,
        )
