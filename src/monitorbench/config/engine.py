"""Settings of the engines that run a model (`conf/engine/*.yaml`, distinguished by `kind`), and their numeric
type.

A score is a function of the sample (`scores: reproducible`): alone, in any batch and order, and tomorrow it
is the same within 1e-4. In bfloat16 it is not, since the
shape of a batch decides how sums are rounded (up to .06 with a model of 135M parameters), so `dtype: auto` is
then float32, and bfloat16 only in vLLM on a GPU, which has kernels that round alike in every batch.
"""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from monitorbench.config.base import Config, ConfigError, FileName, UserError
from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.config.hardware import (
    Device,
    Dtype,
    Precision,
    ResolvedDtype,
    Scores,
    runs_on_gpu,
    scoring_precision,
)
from monitorbench.config.monitor import Monitor, Prompt, PromptKind


def is_reproducible(precision: str) -> bool | None:
    """Return whether scores of this precision are functions of the sample; None where the precision is
    unknown."""
    return precision != "bfloat16" if precision else None


def refuse_fast_scores(engine: "Engine", purpose: str) -> None:
    """Raise `ConfigError` where the engine's scores depend on the batch; `purpose` says why not."""
    if is_reproducible(engine.precision) is False:
        server = engine.server and f"engine.server={engine.server}: started with engine.scores=fast"
        raise ConfigError(
            f"{server or 'engine.scores=fast'}: in {engine.precision} a score depends on what its sample is "
            f"batched with, and {purpose} a threshold; expected engine.scores=reproducible"
        )


class _InProcess(Config):
    """Values that an engine of this process has for callers that take any engine."""

    takes_token_ids: ClassVar[bool] = True
    """True: the monitor's own weights run on token ids that are made here; adapters may be on them."""
    prices: ClassVar[None] = None
    paid_prices: ClassVar[None] = None
    batch: ClassVar[None] = None
    max_failed: ClassVar[float] = 0.0
    max_cost: ClassVar[None] = None
    concurrency: ClassVar[int] = 1
    """Requests at a time: one, since a verdict's seconds are its share of its batch's."""
    requests_per_minute: ClassVar[None] = None
    tokens_per_minute: ClassVar[None] = None
    server: ClassVar[None] = None
    serves: ClassVar[None] = None
    by_token_ids: ClassVar[bool] = True
    api: ClassVar[str] = "token ids"
    model_may_change: ClassVar[bool] = False

    def api_key(self) -> None:
        """No key is needed."""

    def with_opening(self, monitor: Monitor) -> Self:
        """Return the engine itself: the monitor's `opening` is among the token ids."""
        return self

    def own_identity(self) -> dict[str, Any] | None:
        """Return None: the monitor's weights are run, so they, and not the engine, name the model."""
        return None


class _OnWeights(_InProcess):
    """Settings of an engine that runs a model's weights in this process."""

    is_invariant_on_gpu: ClassVar[bool] = False
    """Whether the engine's GPU kernels can give results that no batch changes."""

    scores: Scores = "reproducible"
    """Whether a score is a function of its sample. `reproducible`: alone, in any batch and behind a server it
    is the same within 1e-4, by float32 or, in vLLM on a GPU, by batch-invariant kernels. `fast`: bfloat16
    where the machine multiplies it in hardware; a score then moves with its batch, and nothing can be
    calibrated."""
    dtype: Dtype = "auto"
    """Numeric type of the weights; `auto`: chosen by `scores` and by what the machine multiplies in
    hardware."""
    device: Device = "auto"
    """Device that the model runs on; `auto`: a GPU where there is one. `cuda` refuses to run without a
    GPU."""
    host: str = "127.0.0.1"
    """Address that `serve.py` listens at."""
    port: Annotated[int, Field(ge=0, le=65535)] = 0
    """Port the server listens on; 0 picks a free port."""

    @property
    def precision(self) -> Precision:
        """Precision of scores on this machine; raises as `scoring_precision`."""
        return scoring_precision(
            self.dtype, self.device, self.scores, invariant_on_gpu=self.is_invariant_on_gpu
        )

    @property
    def resolved_dtype(self) -> ResolvedDtype:
        """Numeric type of the weights on this machine; raises as `scoring_precision`."""
        return "float32" if self.precision == "float32" else "bfloat16"


class TransformersEngine(_OnWeights):
    """`engine=transformers`: runs in process and installs anywhere; with a probe, also a server for
    `serve.py`."""

    kind: Literal["transformers"]
    batch_size: Annotated[int, Field(ge=1)] = 8
    """Samples judged at once."""


class VllmForm(Config):
    """Settings of vLLM that are tuned to a kind of machine; none of them decides a verdict."""

    batch_size: Annotated[int, Field(ge=1)]
    """Prompts that the model has in hand at once; with as many as it can run it is never short of work."""
    block_size: Annotated[int, Field(ge=1)]
    """Tokens in a block of the KV cache; only whole blocks of a shared prefix are reused."""
    max_num_batched_tokens: Annotated[int, Field(ge=256)] | None
    """Tokens in one forward pass; null: vLLM's own choice."""
    enforce_eager: bool
    """Run the model neither compiled nor with CUDA graphs."""


class VllmEngine(_OnWeights):
    """`engine=vllm`: runs in process for `evaluate.py`, as a server for `serve.py`.

    A tuned setting that is null is taken from `on_gpu` where the process that loads the model sees a GPU,
    otherwise from `on_cpu`. A frozen study has both, so one that a login node submits takes the values for
    the node it runs on.
    """

    kind: Literal["vllm"]
    is_invariant_on_gpu: ClassVar[bool] = True
    batch_size: Annotated[int, Field(ge=1)] | None = None
    """Prompts that the model has in hand at once; null: as in `on_gpu` or `on_cpu`."""
    block_size: Annotated[int, Field(ge=1)] | None = None
    """Tokens in a block of the KV cache; null: as in `on_gpu` or `on_cpu`."""
    max_num_batched_tokens: Annotated[int, Field(ge=256)] | None = None
    """Tokens in one forward pass; null: as in `on_gpu` or `on_cpu`."""
    enforce_eager: bool | None = None
    """Run the model neither compiled nor with CUDA graphs; null: as in `on_gpu` or `on_cpu`."""
    on_cpu: VllmForm = VllmForm(
        batch_size=256, block_size=32, max_num_batched_tokens=2048, enforce_eager=True
    )
    """Tuned settings for a CPU: only whole blocks of a shared prefix are reused, and 32 is the smallest block
    that vLLM takes there (its own default is 128). Passes of 2,048 tokens were 7 to 20 % faster than its
    default of 4,096. Compiling takes minutes: `enforce_eager=false` pays for tens of thousands of prompts."""
    on_gpu: VllmForm = VllmForm(
        batch_size=1024, block_size=16, max_num_batched_tokens=16384, enforce_eager=False
    )
    """Tuned settings for a GPU: compiled, with CUDA graphs."""
    kv_cache_gib: Annotated[int, Field(ge=1)] = 1
    """Size of the KV cache on the CPU, in GiB."""
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Share of the GPU's memory that vLLM takes."""
    tensor_parallel_size: Annotated[int, Field(ge=1)] | None = None
    """GPUs that one model is spread over; null: the monitor's `tensor_parallel_size`."""
    served_as: FileName | None = None
    """Name by which evaluators find the server: `engine=served engine.server=NAME`."""
    startup_seconds: Annotated[int, Field(ge=1)] = 300
    """Seconds that the server may take until it is healthy."""

    @property
    def form(self) -> VllmForm:
        """The tuned settings for this machine; raises as `config.hardware.runs_on_gpu`."""
        tuned = self.on_gpu if runs_on_gpu(self.device, "engine.device") else self.on_cpu
        overrides = {name: getattr(self, name) for name in VllmForm.model_fields}
        return tuned.model_copy(
            update={name: value for name, value in overrides.items() if value is not None}
        )

    def for_monitor(self, tensor_parallel_size: int) -> "VllmEngine":
        """Return the engine with the monitor's own number of GPUs where none is set."""
        if self.tensor_parallel_size is not None:
            return self
        return self.model_copy(update={"tensor_parallel_size": tensor_parallel_size})


LocalEngine = TransformersEngine | VllmEngine
Engine = Annotated[TransformersEngine | VllmEngine | OpenAiEngine, Field(discriminator="kind")]


def in_process(engine: Engine, setting: str) -> LocalEngine:
    """Return the engine if it runs in this process, as `setting` requires; raise `ConfigError` otherwise."""
    if isinstance(engine, OpenAiEngine):
        raise ConfigError(
            f"{setting}: engine={engine.kind} has no adapters of ours; expected engine=transformers or vllm"
        )
    return engine


def gpus_of_model(engine: LocalEngine, monitors_own: int) -> int:
    """How many GPUs one model is spread over; `monitors_own` is the monitor's `tensor_parallel_size`."""
    if not isinstance(engine, VllmEngine):
        return 1
    return engine.tensor_parallel_size or monitors_own


def with_states(engine: Engine) -> TransformersEngine:
    """Return the engine if a probe can read the outputs of its layers; raise `ConfigError` otherwise."""
    if not isinstance(engine, TransformersEngine):
        raise ConfigError(f"engine={engine.kind}: a probe reads hidden states; expected engine=transformers")
    return engine


def states_engine(monitor: Monitor, engine: Engine, prompt: Prompt) -> TransformersEngine:
    """The engine; raises `ConfigError` for a monitor, engine or prompt that no probe can read."""
    engine = with_states(engine)
    if monitor.adapter is not None or monitor.router is not None:
        raise ConfigError("monitor.adapter: a probe reads the base's states; expected null")
    if monitor.reasoning is not None:
        raise ConfigError(
            f"monitor={monitor.name}: it reasons before it answers, a probe reads its prompt; expected "
            "monitor.reasoning=null"
        )
    if prompt.kind is not PromptKind.DIRECT or prompt.shots or prompt.too_long != "unscored":
        raise ConfigError(
            f"prompt={prompt.name}: a probe reads the states in front of the answer; expected a zero-shot "
            "direct prompt that shortens nothing"
        )
    return engine


def fitting_engine(monitor: Monitor, engine: Engine, prompt: Prompt) -> TransformersEngine:
    """Return the engine to fit a head with; raise `ConfigError` as `states_engine`, and for a given head."""
    if monitor.head is not None:
        raise ConfigError(f"monitor.head={monitor.head}: a head is fitted on a base; expected null")
    return states_engine(monitor, engine, prompt)


def servable(engine: Engine) -> VllmEngine:
    """Return the engine if it can serve others; raise `UserError` otherwise."""
    if not isinstance(engine, VllmEngine):
        raise UserError(
            f"engine={engine.kind}: nothing to serve; expected engine=vllm, or engine=transformers with "
            "monitor.head_beside or monitor.head"
        )
    return engine


def of_any_version(engine: Engine) -> Engine:
    """Return the engine; if it is an endpoint, another version of its model may answer at any time."""
    if not isinstance(engine, OpenAiEngine):
        return engine
    return engine.model_copy(update={"model_may_change": True})


_LIMITS = (
    "concurrency",
    "timeout_seconds",
    "max_retries",
    "requests_per_minute",
    "tokens_per_minute",
    "prices",
    "max_failed",
    "max_cost",
)
"""Settings of an endpoint that decide no verdict."""


def with_limits_of(engine: Engine, other_engine: Engine) -> Engine | None:
    """Return the engine with the limits of another one of the same endpoint; None for another endpoint.

    An `other_engine` that runs in this process has no limits, and leaves the engine as it is.
    """
    if not isinstance(other_engine, OpenAiEngine):
        return engine
    if not isinstance(engine, OpenAiEngine) or any(
        getattr(engine, name) != getattr(other_engine, name) for name in ("base_url", "model", "server")
    ):
        return None
    return engine.model_copy(update={name: getattr(other_engine, name) for name in _LIMITS})
