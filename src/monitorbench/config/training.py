"""How a monitor is fine-tuned: `conf/training/<name>.yaml`, and how the result is published.

An objective's checks of its settings are here, one function each, and not beside its code in
`training.objectives`: a sweep is refused before anything heavy is imported. Checks that need samples are
there.
"""

from collections.abc import Callable, Mapping
from math import ceil
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from monitorbench.config.base import Config, FileName
from monitorbench.config.engine import Dtype, ResolvedDtype, resolved_dtype
from monitorbench.config.hardware import Device

Objective = Literal["sft", "pairwise", "curriculum", "mixed"]
"""What a monitor is fine-tuned towards; each is one file in `training.objectives`."""


class Training(Config):
    """LoRA fine-tuning on the label tokens, towards one of the objectives."""

    name: FileName
    """What folders call it."""
    objective: Objective = "sft"
    """`sft`: the label alone. `pairwise` adds a margin between the scores of a pair, `curriculum` goes from
    explicit to implicit categories, `mixed` adds instruction-following data."""
    batching: Literal["padded", "length_grouped", "packed"] = "length_grouped"
    """How the samples of an optimizer step become forward passes; the step's gradient is the same in all."""
    balance: Literal["none", "label", "cell"] = "none"
    """`label`: both labels equally often; `cell`: every cell equally often, and both labels in each."""
    learning_rate: Annotated[float, Field(gt=0, le=1)]
    """The highest, after the warm-up."""
    lora_rank: Annotated[int, Field(ge=1)] = 16
    """Rank of the two matrices of each layer."""
    lora_alpha: Annotated[int, Field(ge=1)] = 32
    """They count alpha/rank times."""
    lora_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of their inputs that is dropped."""
    max_steps: Annotated[int, Field(ge=1)] | None = None
    """Optimizer steps; samples are gone through as often as that takes. Exactly one of this and `epochs`."""
    epochs: Annotated[float, Field(gt=0, le=1000)] | None = None
    """How often each sample is gone through; subsets of any size get the same dose."""
    batch_size: Annotated[int, Field(ge=1)]
    """Samples per optimizer step, over all processes."""
    micro_batch_size: Annotated[int, Field(ge=1)]
    """Samples per forward pass, on average where packed; divides `batch_size`."""
    warmup_share: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Share of the steps in which the learning rate rises."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    """AdamW's."""
    max_grad_norm: Annotated[float, Field(gt=0)] = 1.0
    """Longer gradients are clipped."""
    max_tokens: Annotated[int, Field(ge=16)]
    """Longer samples are dropped and counted; nothing is truncated."""
    dtype: Dtype = "auto"
    """Of the frozen base weights; the adapter's are float32."""
    device: Device = "auto"
    """Where it runs; `auto`: a GPU where there is one."""
    loader: Literal["transformers", "unsloth"] = "transformers"
    """Who loads the model: everything else is one code path. `unsloth` needs a GPU."""
    gradient_checkpointing: bool = False
    """Compute activations twice and keep fewer."""
    validate_every: Annotated[int, Field(ge=1)]
    """Steps between points of the learning curve (AUROC on the validation split)."""
    early_stopping_patience: Annotated[int, Field(ge=1)] | None = None
    """Stop after so many validations without a better AUROC, and keep the best adapter; None: the last."""
    checkpoint_every: Annotated[int, Field(ge=1)]
    """Steps between two checkpoints, from which a training resumes."""
    margin: Annotated[float, Field(ge=0)] = 2.0
    """`pairwise`: by how much a misbehavior sample's score (a logit) shall exceed its counterpart's."""
    pair_weight: Annotated[float, Field(gt=0)] = 1.0
    """`pairwise`: weight of the margin term beside the label's loss."""
    curriculum_shares: tuple[
        Annotated[float, Field(ge=0)], Annotated[float, Field(ge=0)], Annotated[float, Field(gt=0)]
    ] = (0.3, 0.3, 0.4)
    """`curriculum`: shares of the steps at which each category joins, from explicit to implicit."""
    mix_source: Literal["gsm8k", "mbpp"] = "gsm8k"
    """`mixed`: worked answers to plain requests, from this source's own files."""
    mix_share: Annotated[float, Field(gt=0, lt=1)] = 0.25
    """`mixed`: share of every step's samples that are instructions."""

    @property
    def resolved_dtype(self) -> ResolvedDtype:
        """What `dtype` is on this machine."""
        return resolved_dtype(self.dtype, self.device)

    @property
    def n_labelled(self) -> int:
        """Samples of a step that are judged ones."""
        return self.batch_size - (self.n_mixed if self.objective == "mixed" else 0)

    @property
    def steps(self) -> int:
        """`max_steps` of settings that have been `for_samples`; else ValueError where they have epochs."""
        if self.max_steps is None:
            raise ValueError("training.epochs: the steps are known once the samples are (`for_samples`)")
        return self.max_steps

    def for_samples(self, n: int) -> Self:
        """The same with `max_steps` for n samples: `epochs` of them, rounded up."""
        if self.epochs is None:
            return self
        steps = max(1, ceil(self.epochs * n / self.n_labelled - 1e-9))
        return self.model_copy(update={"max_steps": steps, "epochs": None})

    @property
    def n_mixed(self) -> int:
        """`mixed`: instruction samples in a step."""
        return round(self.mix_share * self.batch_size)

    @property
    def extra_source(self) -> str | None:
        """The source of samples that the objective adds to the data set's own."""
        return self.mix_source if self.objective == "mixed" else None

    @model_validator(mode="after")
    def _divides(self) -> Self:
        if self.batch_size % self.micro_batch_size:
            raise ValueError(
                f"micro_batch_size={self.micro_batch_size} has to divide batch_size={self.batch_size}"
            )
        return self

    @model_validator(mode="after")
    def _has_one_dose(self) -> Self:
        if (self.max_steps is None) == (self.epochs is None):
            given = "both are given" if self.max_steps else "neither is given"
            raise ValueError(
                f"max_steps and epochs: {given}; expected exactly one, the other null (such as "
                "training.epochs=1 training.max_steps=null)"
            )
        return self

    @model_validator(mode="after")
    def _objective_fits(self) -> Self:
        if check := _OBJECTIVE_CHECKS.get(self.objective):
            check(self)
        return self

    @model_validator(mode="after")
    def _is_validated(self) -> Self:
        if self.early_stopping_patience and self.max_steps and self.validate_every > self.max_steps:
            raise ValueError(
                f"early_stopping_patience needs validations: expected validate_every <= max_steps="
                f"{self.max_steps}, not {self.validate_every}"
            )
        return self

    @model_validator(mode="after")
    def _loads(self) -> Self:
        if self.loader == "unsloth" and self.device == "cpu":
            raise ValueError("loader=unsloth needs a GPU: expected device=cuda, or loader=transformers")
        if self.loader == "unsloth" and self.batching == "packed":
            raise ValueError("loader=unsloth takes no packed rows: expected batching=length_grouped")
        return self


def _check_pairwise(training: Training) -> None:
    if training.micro_batch_size % 2:
        raise ValueError(
            "objective=pairwise keeps a pair in one forward pass: expected an even micro_batch_size, "
            f"not {training.micro_batch_size}"
        )
    if training.balance == "label":
        raise ValueError("objective=pairwise: a pair holds both labels; expected balance=none or cell")


def _check_curriculum(training: Training) -> None:
    if abs(sum(training.curriculum_shares) - 1) > 1e-6:
        raise ValueError(f"curriculum_shares={list(training.curriculum_shares)}: expected a sum of 1")


def _check_mixed(training: Training) -> None:
    if not 0 < training.n_mixed < training.batch_size:
        raise ValueError(
            f"mix_share={training.mix_share} of batch_size={training.batch_size} is {training.n_mixed} "
            "samples: expected at least one instruction and one label in every step"
        )


_OBJECTIVE_CHECKS: Mapping[Objective, Callable[[Training], None]] = {
    "pairwise": _check_pairwise,
    "curriculum": _check_curriculum,
    "mixed": _check_mixed,
}
"""Of the objectives whose settings can be at odds with the others."""


class Push(Config):
    """`push.py`: a trained adapter, or the merged model, as a repository on the hub."""

    repo: str | None = None
    """`owner/name` on the hub."""
    private: bool = True
    """Whether a new repository is private."""
    merged: bool = False
    """The full model of `merge.py` in place of the adapter."""
    dry_run: bool = True
    """Show the card and the files, and upload nothing."""
