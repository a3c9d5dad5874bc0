"""Whether a model fits where it is to run, said before it is downloaded or loaded, and which setting would.

Lower bounds: weights, and in vLLM the keys and values of one full context. What they refuse does not fit;
what they let through may still run out of memory. Where a size or a memory is not known, nothing is refused.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.config.engine import LocalEngine, VllmEngine
from monitorbench.config.hardware import gpu_memory, main_memory, runs_on_gpu
from monitorbench.config.monitor import Monitor

_GB = 1e9
_USUAL_GPU = 85e9
"""Bytes of a GPU of 80 GB, where none is seen to ask."""
_PARALLEL = (1, 2, 4, 8, 16)


class Cache(NamedTuple):
    """Memory that vLLM keeps for a token."""

    bytes_per_token: float
    splits: int
    """Over so many GPUs at most; 1 for a compressed cache, which each keeps whole."""


def refuse_too_large(monitor: Monitor, engine: LocalEngine, folder: Path | None = None) -> None:
    """Raise `UserError` where the monitor does not fit this machine on this engine.

    `folder` is the model's, once it is there: its context then counts too.
    """
    on_gpu = runs_on_gpu(engine.device, "engine.device")
    needed = monitor.bytes_in(engine.resolved_dtype)
    if not on_gpu:
        _refuse_on_cpu(monitor, engine, needed, main_memory())
    elif isinstance(engine, VllmEngine):
        cache = read_cache(folder) if folder is not None else None
        _refuse_in_vllm(monitor, engine, needed, gpu_memory(), cache)
    else:
        _refuse_on_one_gpu(monitor, needed, gpu_memory())


def read_cache(folder: Path) -> Cache | None:
    """The KV cache of a model folder's `config.json`, in bfloat16; None where it doesn't say."""
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        config = config.get("text_config") or config
        layers = int(config["num_hidden_layers"])
        if kinds := config.get("layer_types"):  # the others keep a window, or a state
            layers = sum(kind == "full_attention" for kind in kinds)
        if rank := config.get("kv_lora_rank"):  # DeepSeek's compressed keys and values
            return Cache(2.0 * layers * (rank + config["qk_rope_head_dim"]), 1)
        heads = int(config["num_attention_heads"])
        kv_heads = int(config.get("num_key_value_heads") or heads)
        width = int(config.get("head_dim") or config["hidden_size"] // heads)
        return Cache(2.0 * 2 * layers * kv_heads * width, kv_heads)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _refuse_on_cpu(monitor: Monitor, engine: LocalEngine, needed: float | None, memory: float | None) -> None:
    if needed is None or memory is None:
        return
    cache = engine.kv_cache_gib * 2**30 if isinstance(engine, VllmEngine) else 0
    if needed + cache > memory:
        raise UserError(
            f"monitor={monitor.name}: {_gb(needed + cache)} of weights and cache, and this machine has "
            f"{_gb(memory)}; expected a smaller monitor, a machine with a GPU, or engine=served"
        )


def _refuse_on_one_gpu(monitor: Monitor, needed: float | None, memory: Sequence[float]) -> None:
    if needed is None or not memory or needed <= memory[0]:
        return
    raise UserError(
        f"monitor={monitor.name}: {_gb(needed)} of weights, and engine=transformers has one GPU of "
        f"{_gb(memory[0])}; expected engine=vllm_gpu, which spreads it over several"
    )


def _refuse_in_vllm(
    monitor: Monitor, engine: VllmEngine, needed: float | None, memory: Sequence[float], cache: Cache | None
) -> None:
    size = engine.tensor_parallel_size or monitor.tensor_parallel_size
    if memory and size > len(memory):
        cluster = f"cluster.gpus={size} or more (such as cluster=h100x{4 if size <= 4 else 8})"
        raise UserError(
            f"monitor={monitor.name}, engine.tensor_parallel_size={size}: {len(memory)} GPU(s) are seen; "
            f"expected {cluster}, or a smaller monitor"
        )
    if needed is None:
        return
    each = min(memory, default=_USUAL_GPU) * engine.gpu_memory_utilization
    takes = _on_each(needed, cache, monitor.context_tokens, size)
    if takes <= each:
        return
    settings = list(_ways(monitor, needed, cache, each, size, len(memory)))
    needs = "weights" if cache is None else f"weights and a context of {monitor.context_tokens} tokens"
    raise UserError(
        f"monitor={monitor.name}: {_gb(takes)} of {needs} on each of {size} GPU(s), of which vLLM has "
        f"{_gb(each)}; expected {' or '.join(settings) or 'GPUs with more memory, on another cluster'}"
    )


def _ways(
    monitor: Monitor, needed: float, cache: Cache | None, each: float, size: int, n_gpus: int
) -> list[str]:
    """Settings under which it would fit."""
    settings = []
    fits = (n for n in _PARALLEL if n > size and _on_each(needed, cache, monitor.context_tokens, n) <= each)
    if (more := next(fits, None)) is not None:
        cluster = "" if more <= n_gpus else f" with cluster.gpus={more}"
        settings.append(f"engine.tensor_parallel_size={more}{cluster}")
    free = each - needed / size
    if cache is not None and free > 0:
        context = int(free / _per_token(cache, size)) // 1024 * 1024
        thinks = monitor.reasoning.max_tokens if monitor.reasoning else 0
        if context > thinks:
            settings.append(f"monitor.context_tokens={context}")
    return settings


def _on_each(needed: float, cache: Cache | None, context_tokens: int, size: int) -> float:
    return needed / size + (_per_token(cache, size) * context_tokens if cache else 0.0)


def _per_token(cache: Cache, size: int) -> float:
    return cache.bytes_per_token / min(size, cache.splits)


def _gb(n_bytes: float) -> str:
    return f"{n_bytes / _GB:.3g} GB"
