"""The engines that run a model (`conf/engine/*.yaml`, distinguished by `kind`), and in which numeric type.

`dtype: auto` is bfloat16 on a GPU and on CPUs that multiply it in hardware (AMX or AVX512-BF16), float32
elsewhere: a CPU without these units takes five times as long in bfloat16. oneDNN's own "bf16 is supported" is
no help, it says so of CPUs that emulate it. `ONEDNN_MAX_CPU_ISA` takes the units away, here as in oneDNN.
"""

import os
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from monitorbench.config.base import Config, ConfigError, FileName, UserError
from monitorbench.config.batch import BatchApi
from monitorbench.config.hardware import Device, has_gpu, runs_on_gpu
from monitorbench.config.monitor import Monitor
from monitorbench.config.prices import Prices

Dtype = Literal["auto", "float32", "bfloat16"]
ResolvedDtype = Literal["float32", "bfloat16"]

_WITHOUT_BF16 = frozenset(
    ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX2_VNNI_2", "AVX512_CORE", "AVX512_CORE_VNNI", "AVX10_1_256")
)
"""Values of ONEDNN_MAX_CPU_ISA below AVX512_CORE_BF16."""


def resolved_dtype(dtype: Dtype, device: Device) -> ResolvedDtype:
    """The type that a model on `device` runs in on this machine; what is not `auto` stays as it is.

    Raises `UserError` where `device` is open and there is a GPU that can't be used.
    """
    if dtype != "auto":
        return dtype
    on_gpu = device == "cuda" or (device == "auto" and has_gpu())
    return "bfloat16" if on_gpu or cpu_multiplies_bf16() else "float32"


def cpu_multiplies_bf16() -> bool:
    """Whether this CPU has units for bfloat16, and oneDNN may use them."""
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA") or os.environ.get("DNNL_MAX_CPU_ISA") or ""
    return limit.strip().upper() not in _WITHOUT_BF16 and bool({"amx_bf16", "avx512_bf16"} & _cpu_flags())


@cache
def _cpu_flags() -> frozenset[str]:
    """What the CPU can do, in the words of Linux; empty on other systems."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset()
    found = (line.partition(":")[2] for line in text.splitlines() if line.startswith("flags"))
    return frozenset(next(found, "").split())


_OURS = frozenset({"messages", "model", "n", "stream", "max_tokens", "max_completion_tokens"})
"""Fields that no `extra_body` may replace: answers would be misread, or come from another model."""


class Served(Config):
    """What decides the answers of a server of ours."""

    weights: str
    """What names its weights."""
    adapter: str
    """Its hash; empty for none."""
    dtype: str
    """What they run in."""
    training: dict[str, Any] | None
    """What is known of the adapter's training."""


class OpenAiEngine(Config):
    """An OpenAI-compatible chat endpoint: a vLLM server, OpenAI, DeepSeek, Gemini's, Anthropic's."""

    kind: Literal["openai"]
    name: FileName
    """What folders call it."""
    base_url: str
    """Up to what precedes `/chat/completions`."""
    model: Annotated[str, Field(min_length=1)]
    """As the endpoint names it."""
    api_key_env: Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$")] | None
    """NAME of the environment variable with the key; null where the endpoint asks for none."""
    concurrency: Annotated[int, Field(ge=1, le=1000)]
    """Requests in flight at once, waiting for a retry included."""
    timeout_seconds: Annotated[float, Field(gt=0)]
    """For one attempt from its start to its last byte."""
    max_retries: Annotated[int, Field(ge=0, le=20)]
    """Of one request, after its first attempt."""
    requests_per_minute: Annotated[int, Field(ge=1)] | None
    """Null: no limit."""
    tokens_per_minute: Annotated[int, Field(ge=1)] | None
    """Prompt and completion together."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None
    """Null sends none, for models that refuse the field."""
    logprobs: bool
    """Whether log-probabilities are asked for; without them there is no score."""
    top_logprobs: Annotated[int, Field(ge=1, le=20)]
    """Alternatives requested at each position, where `logprobs` is on."""
    structured: Literal["none", "json_schema", "json_object"]
    """How the request makes the endpoint answer in JSON."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"]
    """What the endpoint calls the limit of the answer's tokens."""
    prices: Prices | None
    """For the cost of each verdict; null: not known."""
    max_failed: Annotated[float, Field(ge=0, le=1)] = 0.02
    """The share of an evaluation's samples that may stay without an answer; with more it is incomplete."""
    max_cost: Annotated[float, Field(gt=0)] | None
    """No request is sent any more once this much is spent; what is in flight then comes on top."""
    extra_body: dict[str, Any]
    """Fields added to every request, such as `reasoning_effort`."""
    by_token_ids: bool = False
    """Sends `/completions` the token ids that an engine of this process would get, in place of chat messages:
    for servers with vLLM's fields, whose tokenizer is here."""
    served_model: str | None = None
    """What the endpoint calls the model in its answers, if neither `model` nor a dated form of it."""
    model_may_change: bool = False
    """Whether answers by another version of the model, by the name that they give, are a warning alone: the
    name that a run's first answer gave is expected of all others, also where the run is resumed."""
    batch: BatchApi | None = None
    """Hands all requests in together, for answers within a day at half the price; null: asks one by one."""
    server: FileName | None = None
    """The `engine.served_as` of an `eval/serve.py`, which says `base_url`, `model` and the key."""
    server_seconds: Annotated[int, Field(ge=0)] = 0
    """How long to wait until that server answers."""
    serves: Served | None = None
    """What it says it serves, which then names the judge, wherever it is served. Not to be set."""
    takes_token_ids: ClassVar[bool] = False
    """It is sent chat messages, and has its own weights."""

    @property
    def resolved_dtype(self) -> str:
        """What a server of ours runs in; empty where nobody says."""
        return self.serves.dtype if self.serves else ""

    def api_key(self) -> str | None:
        """The key in the variable that `api_key_env` names; None where the endpoint asks for none.

        Raises `UserError` where the variable is not set, or holds no key.
        """
        if self.api_key_env is None:
            return None
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            raise UserError(f"{self.base_url} needs a key: set the environment variable {self.api_key_env}")
        if not (key.isascii() and key.isprintable()):
            raise UserError(f"the environment variable {self.api_key_env} holds no key: not plain ASCII")
        return key

    @property
    def paid_prices(self) -> Prices | None:
        """What is paid, which a batch API's share lowers."""
        if self.prices is None or self.batch is None:
            return self.prices
        share = self.batch.price_share
        prices: dict[str, float | None] = self.prices.model_dump(exclude={"looked_up"})
        return Prices.model_validate({name: one and one * share for name, one in prices.items()})

    def with_opening(self, monitor: Monitor) -> "OpenAiEngine":
        """The endpoint, told how the monitor's answers begin.

        By token ids its `opening` is among them, as in process. A chat endpoint renders the template itself,
        and is told to write the same by `chat_template_kwargs`; without, a hybrid would begin to think, and
        every answer of one token would be a piece of a thought. Raises `ConfigError` where neither is open.
        """
        given = (monitor.chat_template_kwargs or {}) | dict(self.extra_body.get("chat_template_kwargs", {}))
        if self.by_token_ids or not (given or monitor.opening):
            return self
        if not given and monitor.reasoning is None:
            raise ConfigError(
                f"monitor={monitor.name}: its answer stands behind opening={monitor.opening!r}, which a chat "
                "endpoint is not sent; expected engine.by_token_ids=true (a vLLM server), or "
                "monitor.chat_template_kwargs that make its template write it"
            )
        told = {"chat_template_kwargs": given} if given else {}
        return self.model_copy(update={"extra_body": self.extra_body | told})

    def own_identity(self) -> dict[str, Any]:
        """What of an endpoint decides its answers."""
        served = self.serves
        assert self.server is None or served, "judging.served comes first"
        return {
            "weights": f"served:{served.weights}" if served else f"endpoint:{self.base_url}:{self.model}",
            "adapter": served.adapter if served else "",
            "engine": self.kind,
            "dtype": self.resolved_dtype,
            "request": {"by_token_ids": True}
            if self.by_token_ids
            else {
                "temperature": self.temperature,
                "structured": self.structured,
                "top_logprobs": self.top_logprobs if self.logprobs else 0,
                "extra_body": self.extra_body,
                **({"api": "messages"} if self.batch and self.batch.format == "anthropic" else {}),
            },
        }

    @field_validator("base_url")
    @classmethod
    def _is_plain(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("expected a URL such as https://host/v1")
        if parts.username or parts.password or parts.query:
            raise ValueError("expected no user, password or query: a key belongs into api_key_env's variable")
        return value

    def _beyond_messages(self) -> bool:
        return self.logprobs or self.structured != "none"

    @model_validator(mode="after")
    def _agrees(self) -> "OpenAiEngine":
        if self.max_cost is not None and self.prices is None:
            raise ValueError("max_cost needs prices: fill in engine.prices")
        if self.serves is not None and self.server is None:
            raise ValueError("serves is not to be set: it is read from engine.server")
        if self.by_token_ids and (self.temperature != 0 or self.extra_body):
            raise ValueError("by_token_ids decodes as in process: expected temperature=0 and extra_body={}")
        if self.batch is not None and (self.by_token_ids or self.server is not None):
            raise ValueError("batch is a provider's: expected by_token_ids=false and server=null")
        if self.batch is not None and self.batch.format == "anthropic" and self._beyond_messages():
            raise ValueError("batch.format=anthropic: expected logprobs=false and structured=none")
        if clash := sorted(_OURS & self.extra_body.keys()):
            raise ValueError(f"extra_body may not set {clash[0]!r}")
        return self


class _InProcess(Config):
    """What an engine of this process answers to callers that take any engine."""

    takes_token_ids: ClassVar[bool] = True
    """The monitor's own weights are run, on token ids that are made here; adapters may be on them."""
    prices: ClassVar[None] = None
    paid_prices: ClassVar[None] = None
    batch: ClassVar[None] = None
    max_failed: ClassVar[float] = 0.0
    max_cost: ClassVar[None] = None
    concurrency: ClassVar[int] = 1
    """A verdict's seconds are its share of a batch's."""
    requests_per_minute: ClassVar[None] = None
    tokens_per_minute: ClassVar[None] = None
    server: ClassVar[None] = None
    serves: ClassVar[None] = None

    by_token_ids: ClassVar[bool] = True
    model_may_change: ClassVar[bool] = False

    def api_key(self) -> None:
        """No key is needed."""

    def with_opening(self, monitor: Monitor) -> Self:
        """Itself: the monitor's `opening` is among the token ids."""
        return self

    def own_identity(self) -> dict[str, Any] | None:
        """None: the monitor's weights are run, so they, and not the engine, name the model."""
        return None


class TransformersEngine(_InProcess):
    """`engine=transformers`: in process, installs anywhere."""

    kind: Literal["transformers"]
    dtype: Dtype
    """Of the weights; `auto` by what the machine multiplies in hardware."""
    device: Device
    """Where it runs; `auto`: a GPU where there is one."""
    batch_size: Annotated[int, Field(ge=1)]
    """Samples judged at once."""

    @property
    def resolved_dtype(self) -> ResolvedDtype:
        """What `dtype` is on this machine."""
        return resolved_dtype(self.dtype, self.device)


class VllmForm(Config):
    """What of vLLM is tuned to a kind of machine; none of it decides a verdict."""

    batch_size: Annotated[int, Field(ge=1)]
    """Prompts in the model's hands at once; it is never short of work with as many as it can run."""
    block_size: Annotated[int, Field(ge=1)]
    """Tokens in a block of the KV cache: only whole blocks of a shared prefix are reused."""
    max_num_batched_tokens: Annotated[int, Field(ge=256)] | None
    """Tokens in one forward pass; null: vLLM's own choice."""
    enforce_eager: bool
    """Neither compiled nor with CUDA graphs."""


class VllmEngine(_InProcess):
    """`engine=vllm`: in process for `evaluate.py`, as a server for `serve.py`.

    What is null of its form is `on_gpu`'s where the process that loads the model sees a GPU, else `on_cpu`'s.
    A frozen study has both, so one that a login node submits takes the form of the node it runs on.
    """

    kind: Literal["vllm"]
    dtype: Dtype
    """Of the weights; `auto` by what the machine multiplies in hardware."""
    device: Device = "auto"
    """Where it runs; `auto`: a GPU where there is one. `cuda` (`engine=vllm_gpu`) refuses to run without."""
    batch_size: Annotated[int, Field(ge=1)] | None
    """Prompts in the model's hands at once; null: of the form, as for the next three."""
    block_size: Annotated[int, Field(ge=1)] | None
    """Tokens in a block of the KV cache."""
    max_num_batched_tokens: Annotated[int, Field(ge=256)] | None
    """Tokens in one forward pass."""
    enforce_eager: bool | None
    """Neither compiled nor with CUDA graphs."""
    on_cpu: VllmForm = VllmForm(
        batch_size=256, block_size=32, max_num_batched_tokens=2048, enforce_eager=True
    )
    on_gpu: VllmForm = VllmForm(
        batch_size=1024, block_size=16, max_num_batched_tokens=16384, enforce_eager=False
    )
    kv_cache_gib: Annotated[int, Field(ge=1)]
    """KV cache on the CPU, in GiB."""
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)]
    """Share of the GPU's memory."""
    tensor_parallel_size: Annotated[int, Field(ge=1)] | None
    """GPUs that one model is spread over; null: as many as the monitor says."""
    host: str
    """The address that `serve.py` listens at."""
    port: Annotated[int, Field(ge=0, le=65535)]
    """Of the server; 0 takes a free one."""
    served_as: FileName | None = None
    """A name by which evaluators find the server: `engine=served engine.server=NAME`."""
    startup_seconds: Annotated[int, Field(ge=1)]
    """How long the server may take until it is healthy."""

    @property
    def resolved_dtype(self) -> ResolvedDtype:
        """What `dtype` is on this machine."""
        return resolved_dtype(self.dtype, self.device)

    @property
    def form(self) -> VllmForm:
        """What is tuned, on this machine; raises as `config.hardware.runs_on_gpu`."""
        tuned = self.on_gpu if runs_on_gpu(self.device, "engine.device") else self.on_cpu
        given = {name: getattr(self, name) for name in VllmForm.model_fields}
        return tuned.model_copy(update={name: value for name, value in given.items() if value is not None})

    def for_monitor(self, tensor_parallel_size: int) -> "VllmEngine":
        """With the monitor's own number of GPUs where none is set."""
        if self.tensor_parallel_size is not None:
            return self
        return self.model_copy(update={"tensor_parallel_size": tensor_parallel_size})


LocalEngine = TransformersEngine | VllmEngine
Engine = Annotated[TransformersEngine | VllmEngine | OpenAiEngine, Field(discriminator="kind")]


def servable(engine: Engine) -> VllmEngine:
    """The engine where it can serve others; `UserError` where it can't."""
    if not isinstance(engine, VllmEngine):
        raise UserError(f"engine={engine.kind}: nothing to serve; expected engine=vllm")
    return engine
