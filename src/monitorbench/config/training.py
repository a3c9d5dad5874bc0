"""Settings of fine-tuning (`conf/training/<name>.yaml`), of publishing the result, and of probes on hidden
states (`conf/head/<name>.yaml`).

The checks of an objective's settings are here, and not beside its code in `training.objectives`: a sweep is
refused before anything heavy is imported. Checks that need samples are there.
"""

from math import ceil
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from monitorbench.config.base import Config, FileName
from monitorbench.config.hardware import Device, Dtype, ResolvedDtype, resolved_dtype

Objective = Literal["sft", "pairwise", "curriculum", "mixed"]
"""Goal that a monitor is fine-tuned towards; each is an `ObjectiveSpec` of `training.objectives`."""
BASELINE_OBJECTIVE: Objective = "sft"
"""The objective that others are compared with, and that no name mentions."""


class Training(Config):
    """LoRA fine-tuning on the label tokens, towards one of the objectives."""

    name: FileName
    """Name of the training in folder names."""
    objective: Objective = BASELINE_OBJECTIVE
    """Goal of the training. `sft`: the label alone. `pairwise` adds a margin between the scores of a pair,
    `curriculum` goes from explicit to implicit categories, `mixed` adds instruction-following data."""
    batching: Literal["padded", "length_grouped", "packed"] = "length_grouped"
    """How the samples of an optimizer step are grouped into forward passes; the step's gradient is the same
    in all."""
    balance: Literal["none", "label", "cell"] = "none"
    """Balance of the training samples. `label`: both labels equally often; `cell`: every cell equally often,
    and both labels in each."""
    learning_rate: Annotated[float, Field(gt=0, le=1)]
    """Highest learning rate, reached after the warm-up."""
    lora_rank: Annotated[int, Field(ge=1)] = 16
    """Rank of the two LoRA matrices of each layer."""
    lora_alpha: Annotated[int, Field(ge=1)] = 32
    """Scale of the LoRA update: it is multiplied by alpha/rank."""
    lora_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the LoRA matrices' inputs that is dropped."""
    max_steps: Annotated[int, Field(ge=1)] | None = None
    """Number of optimizer steps; samples are repeated as often as that takes. Exactly one of this and
    `epochs` is set."""
    epochs: Annotated[float, Field(gt=0, le=1000)] | None = None
    """Number of passes over the samples; subsets of any size get the same dose."""
    batch_size: Annotated[int, Field(ge=1)]
    """Samples per optimizer step, over all processes."""
    micro_batch_size: Annotated[int, Field(ge=1)]
    """Samples per forward pass, on average where packed; divides `batch_size`."""
    warmup_share: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Share of the steps in which the learning rate rises."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    """Weight decay of AdamW."""
    max_grad_norm: Annotated[float, Field(gt=0)] = 1.0
    """Largest norm of the gradient; longer gradients are clipped."""
    max_tokens: Annotated[int, Field(ge=16)]
    """Most tokens of a sample; longer samples are dropped and counted, and nothing is truncated."""
    dtype: Dtype = "auto"
    """Numeric type of the frozen base weights; the adapter's are float32."""
    device: Device = "auto"
    """Device that the training runs on; `auto`: a GPU where there is one."""
    loader: Literal["transformers", "unsloth"] = "transformers"
    """Library that loads the model; all other code is the same. `unsloth` needs a GPU."""
    gradient_checkpointing: bool = False
    """Compute activations twice and keep fewer in memory."""
    validate_every: Annotated[int, Field(ge=1)]
    """Steps between points of the learning curve (AUROC on the validation split)."""
    early_stopping_patience: Annotated[int, Field(ge=1)] | None = None
    """Validations without a better AUROC after which training stops and keeps the best adapter; None: train
    to the end and keep the last."""
    checkpoint_every: Annotated[int, Field(ge=1)]
    """Steps between two checkpoints, from which a training resumes."""
    margin: Annotated[float, Field(ge=0)] = 2.0
    """Margin by which a misbehavior sample's score (a logit) shall exceed its counterpart's; for `pairwise`
    only."""
    pair_weight: Annotated[float, Field(gt=0)] = 1.0
    """Weight of the margin term relative to the label's loss; for `pairwise` only."""
    curriculum_shares: tuple[
        Annotated[float, Field(ge=0)], Annotated[float, Field(ge=0)], Annotated[float, Field(gt=0)]
    ] = (0.3, 0.3, 0.4)
    """Shares of the steps at which each category joins, from explicit to implicit; for `curriculum` only."""
    mix_source: Literal["gsm8k", "mbpp"] = "gsm8k"
    """Source of the worked answers to plain requests that are mixed in, from its own files; for `mixed`
    only."""
    mix_share: Annotated[float, Field(gt=0, lt=1)] = 0.25
    """Share of every step's samples that are instructions; for `mixed` only."""

    @property
    def resolved_dtype(self) -> ResolvedDtype:
        """Numeric type of the base weights on this machine."""
        return resolved_dtype(self.dtype, self.device)

    @property
    def n_labelled(self) -> int:
        """Labelled samples in a step."""
        return self.batch_size - (self.n_mixed if self.objective == "mixed" else 0)

    @property
    def steps(self) -> int:
        """Optimizer steps, for settings that went through `for_samples`; ValueError where they still have
        epochs."""
        if self.max_steps is None:
            raise ValueError("training.epochs: the steps are known once the samples are (`for_samples`)")
        return self.max_steps

    def for_samples(self, n: int) -> Self:
        """Return these settings with `max_steps` in place of `epochs`, for n samples and rounded up."""
        if self.epochs is None:
            return self
        steps = max(1, ceil(self.epochs * n / self.n_labelled - 1e-9))
        return self.model_copy(update={"max_steps": steps, "epochs": None})

    @property
    def n_mixed(self) -> int:
        """Instruction samples in a step of `mixed`."""
        return round(self.mix_share * self.batch_size)

    @property
    def extra_source(self) -> str | None:
        """Source of samples that the objective adds to the data set's own."""
        return self.mix_source if self.objective == "mixed" else None

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.batch_size % self.micro_batch_size:
            raise ValueError(
                f"micro_batch_size={self.micro_batch_size} has to divide batch_size={self.batch_size}"
            )
        if (self.max_steps is None) == (self.epochs is None):
            state = "both are given" if self.max_steps else "neither is given"
            raise ValueError(
                f"max_steps and epochs: {state}; expected exactly one, the other null (such as "
                "training.epochs=1 training.max_steps=null)"
            )
        self._check_objective()
        if self.early_stopping_patience and self.max_steps and self.validate_every > self.max_steps:
            raise ValueError(
                f"early_stopping_patience needs validations: expected validate_every <= max_steps="
                f"{self.max_steps}, not {self.validate_every}"
            )
        if self.loader == "unsloth" and self.device == "cpu":
            raise ValueError("loader=unsloth needs a GPU: expected device=cuda, or loader=transformers")
        if self.loader == "unsloth" and self.batching == "packed":
            raise ValueError("loader=unsloth takes no packed rows: expected batching=length_grouped")
        return self

    def _check_objective(self) -> None:
        """Raise `ValueError` where settings contradict the objective."""
        if self.objective == "pairwise":
            if self.micro_batch_size % 2:
                raise ValueError(
                    "objective=pairwise keeps a pair in one forward pass: expected an even micro_batch_size, "
                    f"not {self.micro_batch_size}"
                )
            if self.balance == "label":
                raise ValueError(
                    "objective=pairwise: a pair holds both labels; expected balance=none or cell"
                )
        elif self.objective == "curriculum" and abs(sum(self.curriculum_shares) - 1) > 1e-6:
            raise ValueError(f"curriculum_shares={list(self.curriculum_shares)}: expected a sum of 1")
        elif self.objective == "mixed" and not 0 < self.n_mixed < self.batch_size:
            raise ValueError(
                f"mix_share={self.mix_share} of batch_size={self.batch_size} is {self.n_mixed} "
                "samples: expected at least one instruction and one label in every step"
            )


class Push(Config):
    """Settings of `push.py`, which uploads a trained adapter, or the merged model, to the hub."""

    repo: str | None = None
    """Repository on the hub, `owner/name`."""
    private: bool = True
    """Whether a new repository is private."""
    merged: bool = False
    """Upload the full model of `merge.py` in place of the adapter."""
    dry_run: bool = True
    """Show the card and the files, and upload nothing."""


Position = Literal["last", "mean", "max", "tokens"]
"""Vectors that stand for a prompt: that of its last token, where the answer is to begin; the mean or the
maximum, by dimension, over the tokens of the judged response; or each of these tokens' own."""

Storage = Literal["float16", "int8"]
"""Number format of hidden states on disk; in `int8` each vector has a scale of its own, its largest value
over 127."""


class Head(Config):
    """Settings of a head, and the grid its validation chooses from: layers × positions × regularisation
    strengths."""

    name: FileName
    """Name of the head in folder names."""
    kind: Literal["linear", "mlp", "attention"]
    """Form of the head. `linear`: logistic regression. `mlp`: one hidden layer. `attention`: a softmax over
    the response's tokens by a learned query, and a linear readout of what it attends to."""
    layers: Annotated[tuple[Annotated[float, Field(gt=0, le=1)], ...], Field(min_length=1)]
    """Layers to read, as shares of the model's depth: 0.5 of 30 layers is the output of layer 15."""
    positions: Annotated[tuple[Position, ...], Field(min_length=1)]
    """Vectors that stand for a prompt: `last` is that of its last token, `mean` and `max` are over the tokens
    of the response; `tokens` are all of these, for `attention`, which takes nothing else."""
    regularisation: Annotated[tuple[Annotated[float, Field(gt=0)], ...], Field(min_length=1)]
    """Weights of the squared norm: `linear` adds it to the mean loss, the other heads decay by it in
    AdamW."""
    hidden: Annotated[int, Field(ge=1)] = 64
    """Hidden units of an `mlp` head."""
    queries: Annotated[int, Field(ge=1)] = 1
    """Queries of an `attention` head, each with a readout of its own; the score is of their sum."""
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 1e-3
    """Learning rate of AdamW, for `mlp` and `attention` heads."""
    epochs: Annotated[int, Field(ge=1)] = 60
    """Most epochs, for `mlp` and `attention` heads; the one with the best validation AUROC is kept."""
    batch_size: Annotated[int, Field(ge=1)] = 64
    """Samples per step, for `mlp` and `attention` heads."""
    draw: Literal["all", "bootstrap"] = "all"
    """Training samples: all of the view, or as many questions drawn from it with replacement, by `seed`. A
    `linear` head is the same for every seed with `all`; with `bootstrap` its seeds are replicates."""
    max_tokens: Annotated[int, Field(ge=16)] = 2048
    """Longest prompt in tokens; longer prompts of the train and validation splits are dropped and counted."""
    window: Annotated[int, Field(ge=1)] | None = None
    """Tokens per window: a longer response is scored in windows, and its score is the highest of them. Null:
    each response is one window, however long."""
    storage: Storage = "float16"
    """Number format of hidden states on disk: `int8` takes half the space, with a scale for each vector."""

    @model_validator(mode="after")
    def _reads_what_it_can(self) -> "Head":
        by_token = "tokens" in self.positions
        if by_token != (self.kind == "attention") or (by_token and len(self.positions) > 1):
            raise ValueError(
                f"positions={list(self.positions)} with kind={self.kind}: attention reads "
                "positions=[tokens], the others last, mean or max"
            )
        if self.window is not None and "last" in self.positions:
            raise ValueError(
                f"window={self.window} with positions={list(self.positions)}: the prompt's last token is in "
                "no window; expected positions without last, or window=null"
            )
        return self
