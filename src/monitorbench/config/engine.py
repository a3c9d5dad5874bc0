"""The engines that run a model: `conf/engine/*.yaml`, one model per kind, told apart by `kind`."""

from typing import Annotated, Literal

from pydantic import Field

from monitorbench.config.base import Config
from monitorbench.config.endpoint import OpenAiEngine


class TransformersEngine(Config):
    """`engine=transformers`: in process, installs anywhere."""

    kind: Literal["transformers"]
    dtype: Literal["float32", "bfloat16"]
    device: Literal["auto", "cpu", "cuda"]
    batch_size: Annotated[int, Field(ge=1)]


class VllmEngine(Config):
    """`engine=vllm`: in process for `evaluate.py`, as a server for `serve.py`."""

    kind: Literal["vllm"]
    dtype: Literal["float32", "bfloat16"]
    batch_size: Annotated[int, Field(ge=1)]
    """Prompts in the model's hands at once; it is never short of work with as many as it can run."""
    block_size: Annotated[int, Field(ge=1)]
    """Tokens in a block of the KV cache: only whole blocks of a shared prefix are reused."""
    max_num_batched_tokens: Annotated[int, Field(ge=256)] | None
    """Tokens in one forward pass; None: vLLM's own choice."""
    kv_cache_gib: Annotated[int, Field(ge=1)]
    """KV cache on the CPU, in GiB."""
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)]
    tensor_parallel_size: Annotated[int, Field(ge=1)]
    enforce_eager: bool
    host: str
    port: Annotated[int, Field(ge=0, le=65535)]
    """Of the server; 0 takes a free one."""
    served_as: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")] | None = None
    """A name by which evaluators find the server: `engine=served engine.server=NAME`."""
    startup_seconds: Annotated[int, Field(ge=1)]
    """How long the server may take until it is healthy."""


LocalEngine = TransformersEngine | VllmEngine
Engine = Annotated[TransformersEngine | VllmEngine | OpenAiEngine, Field(discriminator="kind")]
