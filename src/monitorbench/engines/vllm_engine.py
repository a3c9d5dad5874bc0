"""`engine=vllm` in process: the same model folder and adapter through `vllm.LLM`.

The engine's settings are environment variables that vLLM reads when it is imported, so they are
set here, before the import, and inherited by the worker process that it starts.
"""

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import count, islice
from pathlib import Path
from typing import Any

from monitorbench.config.base import UserError
from monitorbench.config.hardware import runs_on_gpu
from monitorbench.config.study import VllmEngine
from monitorbench.engines.protocol import Decoding, Reply
from monitorbench.engines.stored.adapter import CONFIG, adapter_config
from monitorbench.engines.weights import merge

MOST_SCORED = 64
"""Tokens whose log-probabilities one prompt may ask for: spellings of two words, or of eleven numbers."""


def vllm_environment(config: VllmEngine) -> dict[str, str]:
    """Variables for a process that runs vLLM: all cores, the KV cache's size, quiet logs on stderr."""
    if find_spec("vllm") is None:
        raise UserError(
            "engine=vllm: the package vllm is not installed; `make setup` brings it on Linux x86-64"
        )
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    environment = {
        "VLLM_CPU_KVCACHE_SPACE": str(config.kv_cache_gib),
        # "auto" takes one core of each pair of hyperthreads, on small machines one in all.
        "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, cores)),
        "VLLM_LOGGING_STREAM": "ext://sys.stderr",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_BATCH_INVARIANT": "1" if config.precision == "bfloat16_batch_invariant" else "0",
        "TOKENIZERS_PARALLELISM": "false",
    }
    return environment


def runs_on_cpu(config: VllmEngine) -> bool:
    """Whether vLLM runs on the CPU here, where GPU settings mean nothing; raises as `runs_on_gpu`."""
    return not runs_on_gpu(config.device, "engine.device")


def llm_settings(config: VllmEngine, weights: Path, context_tokens: int) -> dict[str, Any]:
    """Arguments of `vllm.LLM`, and options of its server, for a model without an adapter."""
    form = config.form
    settings: dict[str, Any] = {
        "model": str(weights),
        "dtype": config.resolved_dtype,
        "load_format": "safetensors",
        "trust_remote_code": False,
        "max_model_len": context_tokens,
        "block_size": form.block_size,
        "enforce_eager": form.enforce_eager,
        "tensor_parallel_size": config.tensor_parallel_size or 1,
        "enable_prefix_caching": True,
        "max_logprobs": MOST_SCORED,
        "generation_config": "vllm",  # a model's own penalties would move the scores
    }
    if form.max_num_batched_tokens is not None:
        settings["max_num_batched_tokens"] = form.max_num_batched_tokens
    if not runs_on_cpu(config):
        settings["gpu_memory_utilization"] = config.gpu_memory_utilization
    return settings


def prefix_order(prompts: Sequence[Sequence[int]]) -> list[int]:
    """Indices of the prompts, sorted by their token ids: neighbours share their longest prefixes.

    What a pair or an instruction has in common is then asked in a row, while its keys and values are
    still in a cache that is smaller than all prompts together.
    """
    return sorted(range(len(prompts)), key=lambda index: tuple(prompts[index]))


def lora_rank(adapters: Sequence[Path]) -> int:
    """The rank that vLLM is to make room for, which it wants to know before an adapter is loaded.

    Raises `UserError` for a rank that is none, or above what vLLM takes.
    """
    return max(_rank(adapter) for adapter in adapters)


def _rank(adapter: Path) -> int:
    config = adapter_config(adapter)
    ranks = [config.get("r"), *(config.get("rank_pattern") or {}).values()]
    for allowed in (8, 16, 32, 64, 128, 256, 320, 512):  # vLLM takes these ranks only
        if all(isinstance(rank, int) and 0 < rank <= allowed for rank in ranks):
            return allowed
    raise UserError(f"{adapter / CONFIG}: ranks {ranks}; expected numbers from 1 to 512, as vLLM takes them")


class InProcessVllm:
    """An `Engine` on `vllm.LLM`.

    On a GPU an adapter is loaded beside the base. A CPU build gathers the adapter's weights for every
    token anew, which takes minutes for 64 prompts: there it is merged into a copy of the base, and the
    weights of base and copies take each other's place. One adapter answers at a time, since vLLM's prefix
    cache shares nothing between adapters: their prompts mixed would only push each other out of it.
    """

    def __init__(
        self, config: VllmEngine, weights: Path, adapters: Sequence[Path], context_tokens: int
    ) -> None:
        os.environ.update(vllm_environment(config))
        self._config, self._weights, self._adapters = config, weights, tuple(adapters)
        self._adapter: Path | None = None
        self._context_tokens = context_tokens
        self._merges = bool(adapters) and runs_on_cpu(config)
        self._merged: tempfile.TemporaryDirectory[str] | None = None
        self._merged_adapter: Path | None = None
        self.llm: Any = None
        """The `vllm.LLM`, once the first prompts have been submitted."""
        self._request_numbers = count()
        self._loaded: Path | None = None
        if not adapters:  # else it depends on who is asked first
            self._load(weights)

    def take(self, adapter: Path | None) -> None:
        """See `Engine.take`."""
        self._adapter = adapter

    def complete(
        self, prompts: Sequence[Sequence[int]], decoding: Decoding, *, with_adapter: bool = True
    ) -> Iterator[tuple[int, Reply]]:
        """See `Engine.complete`; completions come as the model finishes them, in `prefix_order`.

        At most `batch_size` prompts are in the model's hands at once: it is never short of work, and a
        million prompts don't pile up in its queue.
        """
        from vllm import SamplingParams, TokensPrompt
        from vllm.lora.request import LoRARequest
        from vllm.sampling_params import RequestOutputKind

        adapter, lora = self._adapter if with_adapter else None, None
        self._load(self._merged_folder(adapter) if adapter and self._merges else self._weights)
        if adapter and not self._merges:
            number = self._adapters.index(adapter) + 1
            lora = LoRARequest(f"adapter{number}", number, str(adapter.resolve()))
        sampling = SamplingParams(
            temperature=0.0,
            max_tokens=decoding.max_new_tokens,
            stop_token_ids=list(decoding.stop_token_ids),
            logprob_token_ids=list(decoding.scored_token_ids) or None,
            skip_special_tokens=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        engine, at_once = self.llm.llm_engine, self._config.form.batch_size
        waiting = iter(prefix_order(prompts))
        in_flight: dict[str, int] = {}
        finished_at = time.perf_counter()
        try:
            while True:
                for index in islice(waiting, at_once - len(in_flight)):
                    name = str(next(self._request_numbers))
                    prompt = TokensPrompt(prompt_token_ids=list(prompts[index]))
                    engine.add_request(name, prompt, sampling, lora_request=lora)
                    in_flight[name] = index
                if not in_flight:
                    return
                if done := [output for output in engine.step() if output.finished]:
                    now = time.perf_counter()
                    seconds, finished_at = (now - finished_at) / len(done), now
                    for output in done:
                        index = in_flight.pop(output.request_id)
                        yield index, _reply(output.outputs[0], len(prompts[index]), decoding, seconds)
        finally:
            if in_flight and self.llm is not None:  # the caller wants no more of them
                engine.abort_request(list(in_flight))

    def close(self) -> None:
        """End the worker process and remove the merged copy."""
        self._unload()
        if self._merged is not None:
            self._merged.cleanup()

    def _load(self, weights: Path) -> None:
        if self._loaded == weights:
            return
        if self._loaded is not None:  # of one shape: a new start would take half a minute
            self._loaded = None
            self.llm.collective_rpc("reload_weights", kwargs={"weights_path": str(weights)})
            if not self.llm.reset_prefix_cache():
                raise RuntimeError("vLLM kept the other weights' keys and values")
            self._loaded = weights
            return
        self._unload()
        from vllm import LLM

        settings = llm_settings(self._config, weights, self._context_tokens)
        if self._adapters and not self._merges:
            settings |= {"enable_lora": True, "max_lora_rank": lora_rank(self._adapters), "max_loras": 1}
        self.llm = LLM(**settings)
        self._loaded = weights

    def _unload(self) -> None:
        if self.llm is not None:
            self.llm.llm_engine.engine_core.shutdown()
        self.llm = self._loaded = None

    def _merged_folder(self, adapter: Path) -> Path:
        """The base with this adapter added; of one adapter at a time."""
        if self._merged is None or self._merged_adapter != adapter:
            if self._merged is not None:
                self._merged.cleanup()
            self._merged = tempfile.TemporaryDirectory(prefix="monitorbench-merged-")
            self._merged_adapter = adapter
            merge(self._weights, adapter, Path(self._merged.name), self._config.resolved_dtype)
        return Path(self._merged.name)


def _reply(output: Any, prompt_tokens: int, decoding: Decoding, seconds: float) -> Reply:
    answer, stop_token_id = decoding.cut(tuple(output.token_ids), ended=output.finish_reason == "stop")
    if stop_token_id is None and output.finish_reason != "length":  # no answer: the sample stays pending
        raise RuntimeError(f"vLLM gave a prompt up: {output.finish_reason}")
    first: Mapping[int, Any] = output.logprobs[0] if output.logprobs else {}
    return Reply(
        output.text,
        "length" if stop_token_id is None else "stop",
        prompt_tokens=prompt_tokens,
        completion_tokens=len(answer),
        token_ids=answer,
        logprobs={i: first[i].logprob for i in decoding.scored_token_ids if i in first},
        seconds=seconds,
        stop_token_id=stop_token_id,
    )
