"""Settings of a probe, a head on hidden states: what it reads and how it is fitted
(`conf/head/<name>.yaml`)."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from monitorbench.config.base import Config, FileName

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
