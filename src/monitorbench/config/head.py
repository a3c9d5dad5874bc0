"""A probe, a head on hidden states: what it reads and how it is fitted (`conf/head/<name>.yaml`)."""

from typing import Annotated, Literal

from pydantic import Field

from monitorbench.config.base import Config, FileName

Position = Literal["last", "mean", "max"]
"""Which vector stands for a prompt: that of its last token, where the answer is to begin, or the mean or the
maximum, by dimension, over the tokens of the judged response."""


class Head(Config):
    """A head, and what its validation chooses from: layers × positions × strengths of regularisation."""

    name: FileName
    """What folders call it."""
    kind: Literal["linear", "mlp"]
    """`linear`: logistic regression. `mlp`: one hidden layer."""
    layers: Annotated[tuple[Annotated[float, Field(gt=0, le=1)], ...], Field(min_length=1)]
    """Shares of the model's depth: 0.5 of 30 layers is what layer 15 puts out."""
    positions: Annotated[tuple[Position, ...], Field(min_length=1)]
    """See `Position`."""
    regularisation: Annotated[tuple[Annotated[float, Field(gt=0)], ...], Field(min_length=1)]
    """Weights of the squared norm: of `linear` it is added to the mean loss, of `mlp` AdamW decays by it."""
    hidden: Annotated[int, Field(ge=1)] = 64
    """`mlp`: units."""
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 1e-3
    """`mlp`: AdamW's."""
    epochs: Annotated[int, Field(ge=1)] = 60
    """`mlp`: at most; what is kept is that of the best validation AUROC."""
    batch_size: Annotated[int, Field(ge=1)] = 64
    """`mlp`: samples of a step."""
    draw: Literal["all", "bootstrap"] = "all"
    """The training samples: all of the view, or a draw of its questions with replacement, as many as there
    are, by `seed`. So the seeds of a `linear` head, else the same each time, are replicates of it."""
    max_tokens: Annotated[int, Field(ge=16)] = 2048
    """Prompts of the train and validation split that are longer are dropped and counted."""
