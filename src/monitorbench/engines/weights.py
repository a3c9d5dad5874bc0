"""A monitor's weights: where they are, here or on the hub, and whether they fit where they are to run.

A GGUF file is converted once into an ordinary model folder (safetensors), kept with checksums. A model that
does not fit is refused before it is downloaded or loaded, with the setting that would. The sizes are lower
bounds: weights, and in vLLM the keys and values of one full context. What they let through may still run out
of memory, and where a size or a memory is not known, nothing is refused.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.engine import LocalEngine, VllmEngine
from monitorbench.config.hardware import gpu_memory, main_memory, runs_on_gpu
from monitorbench.config.monitor import Monitor
from monitorbench.engines.stored.gguf import GgufSource, convert_gguf, gguf_source, gguf_tokenizer
from monitorbench.engines.stored.model_folder import (
    hub_commit,
    hub_folder,
    load_causal_lm,
    load_tokenizer,
    model_folder_sha256,
    n_parameters,
    refuse_unloadable,
)
from monitorbench.runs.directory import checked_file, is_finished, read_manifest
from monitorbench.runs.files import locked

_HUB = "hub:"


def weights_identity(monitor: Monitor) -> str:
    """Name of the weights in a content hash: their content, package version or commit, never a path.

    Raises what `refuse_without_weights` raises, and `UserError` where the hub's commit is not to be had.
    """
    refuse_without_weights(monitor)
    if monitor.path is not None:
        return f"sha256:{model_folder_sha256(monitor.path)}"
    if (source := gguf_source(monitor)) is not None:
        return source.identity
    return f"{_HUB}{monitor.hub_id}@{hub_commit(monitor.hub_id, monitor.revision)}"


def at_identity(monitor: Monitor, identity: str) -> Monitor:
    """The monitor, its hub revision set to the commit that an earlier `weights_identity` of it names."""
    repo, _, commit = identity.removeprefix(_HUB).rpartition("@")
    if not identity.startswith(_HUB) or repo != monitor.hub_id:
        return monitor
    return monitor.model_copy(update={"revision": commit})


def weights_folder(monitor: Monitor, models: Path) -> Path:
    """A folder that `from_pretrained` reads; converts or downloads what is not there yet.

    Raises `UserError` with one line where the weights can't be had, `ConfigError` where there are none.
    """
    refuse_without_weights(monitor)
    if monitor.path is not None:
        return monitor.path
    if (source := gguf_source(monitor)) is not None:
        return _converted(source, models)
    folder = hub_folder(monitor.hub_id, hub_commit(monitor.hub_id, monitor.revision))
    refuse_unloadable(folder, f"monitor.hub_id={monitor.hub_id}")
    return folder


def weights_that_fit(monitor: Monitor, engine: LocalEngine, models: Path) -> Path:
    """The folder of `weights_folder`; a model too large for this machine is refused before it is fetched."""
    refuse_too_large(monitor, engine)
    folder = weights_folder(monitor, models)
    refuse_too_large(monitor, engine, folder)
    return folder


def refuse_without_weights(monitor: Monitor) -> None:
    """Refuse a monitor that has no weights to run here, as far as that is known without a network.

    Raises `ConfigError` for one that is no model, or an endpoint's, and `UserError` for a local folder or
    file that is none of a model.
    """
    if monitor.kind == "bag_of_words":
        raise ConfigError(
            f"monitor={monitor.name}: it has no weights, only `monitorbench pilot` fits it; expected a model"
        )
    if monitor.kind == "recorded":
        raise ConfigError(f"monitor={monitor.name}: recorded verdicts have no weights; expected a model")
    if monitor.path is not None:
        refuse_unloadable(monitor.path, f"monitor.path={monitor.path}")
    elif monitor.gguf is not None:
        gguf_source(monitor)
    elif monitor.package is not None and monitor.gguf_file is None:
        if monitor.package.hub_id != monitor.hub_id:
            raise ConfigError(
                f"monitor.hub_id={monitor.hub_id}: is not read, monitor.package has "
                f"{monitor.package.hub_id}; expected monitor.package=null, and monitor.parameters of that "
                "model or null"
            )
    elif "/" not in monitor.hub_id:
        raise ConfigError(
            f"monitor={monitor.name}: {monitor.hub_id} is an endpoint's model and has no weights here; "
            "expected that endpoint, such as engine=openai_api or engine=anthropic, or OWNER/NAME in "
            "monitor.hub_id"
        )


def merge(weights: Path, adapter: Path, target: Path, dtype: str) -> None:
    """Write the base with the adapter added in float32, rounded to `dtype`, as a model folder."""
    import torch
    from peft import PeftModel

    base = load_causal_lm(weights, torch.float32)
    merged: Any = PeftModel.from_pretrained(base, str(adapter), use_safetensors=True).merge_and_unload()
    merged.to(getattr(torch, dtype)).save_pretrained(target)
    load_tokenizer(weights).save_pretrained(target)


def _converted(source: GgufSource, models: Path) -> Path:
    """The model folder of a GGUF file, made where it is not there yet, and compared where it is."""
    target = models / source.folder
    if not is_finished(target):
        with locked(models / f".{target.name}.lock", wait=True):
            if not is_finished(target):  # another process may have been first
                convert_gguf(source.file(), target, source.where, source.results)
    for name in read_manifest(target)["files"]:
        checked_file(target, name)
    return target


def parameters_of(monitor: Monitor) -> float | None:
    """How many parameters the monitor has: counted in `monitor.path`, else as stated; None: not known."""
    return monitor.parameters if monitor.path is None else n_parameters(monitor.path)


def tokenizer_here(monitor: Monitor, models: Path) -> Any | None:
    """The tokenizer of a folder, a GGUF file or the hub's cache; None where it is not here."""
    try:
        if monitor.path is not None:
            return load_tokenizer(monitor.path)
        if (source := gguf_source(monitor)) is not None:
            return _of_gguf(source, models, is_here=monitor.gguf_file is None)
        folder = _cached(monitor.hub_id, monitor.revision)
        return None if folder is None else load_tokenizer(folder)
    except (UserError, OSError, ValueError, KeyError, ImportError):  # whoever runs the model says why
        return None


def _of_gguf(source: GgufSource, models: Path, *, is_here: bool) -> Any | None:
    """The converted one, else the file's own where that is here."""
    converted = models / source.folder
    if (converted / "tokenizer_config.json").is_file():
        return load_tokenizer(converted)
    return gguf_tokenizer(source.file(), source.where) if is_here else None


def _cached(repo: str, revision: str) -> Path | None:
    """The folder of a hub's model in the client's cache."""
    from huggingface_hub import try_to_load_from_cache

    file = try_to_load_from_cache(repo, "tokenizer_config.json", revision=revision)
    return Path(file).parent if isinstance(file, str) else None


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
