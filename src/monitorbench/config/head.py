"""A probe, a head on hidden states: what it reads and how it is fitted (`conf/head/<name>.yaml`)."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from monitorbench.config.base import Config, FileName

Position = Literal["last", "mean", "max", "tokens"]
"""Which vectors stand for a prompt: that of its last token, where the answer is to begin; the mean or the
maximum, by dimension, over the tokens of the judged response; or each of these tokens' own."""

Storage = Literal["float16", "int8"]
"""How states are kept on disk; of `int8` each vector has a scale of its own, its largest value over 127."""


class Head(Config):
    """A head, and what its validation chooses from: layers × positions × strengths of regularisation."""

    name: FileName
    """What folders call it."""
    kind: Literal["linear", "mlp", "attention"]
    """`linear`: logistic regression. `mlp`: one hidden layer. `attention`: a softmax over the response's
    tokens by a learned query, and a linear readout of what it attends to."""
    layers: Annotated[tuple[Annotated[float, Field(gt=0, le=1)], ...], Field(min_length=1)]
    """Shares of the model's depth: 0.5 of 30 layers is what layer 15 puts out."""
    positions: Annotated[tuple[Position, ...], Field(min_length=1)]
    """Which vectors stand for a prompt: `last` is that of its last token, `mean` and `max` are over the
    tokens of the response; `tokens` are all of these, for `attention`, which takes nothing else."""
    regularisation: Annotated[tuple[Annotated[float, Field(gt=0)], ...], Field(min_length=1)]
    """Weights of the squared norm: of `linear` it is added to the mean loss, of the others AdamW decays by
    it."""
    hidden: Annotated[int, Field(ge=1)] = 64
    """`mlp`: units."""
    queries: Annotated[int, Field(ge=1)] = 1
    """`attention`: queries, each with a readout of its own; the score is of their sum."""
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 1e-3
    """`mlp`, `attention`: AdamW's."""
    epochs: Annotated[int, Field(ge=1)] = 60
    """`mlp`, `attention`: at most; what is kept is that of the best validation AUROC."""
    batch_size: Annotated[int, Field(ge=1)] = 64
    """`mlp`, `attention`: samples of a step."""
    draw: Literal["all", "bootstrap"] = "all"
    """The training samples: all of the view, or a draw of its questions with replacement, as many as there
    are, by `seed`. So the seeds of a `linear` head, else the same each time, are replicates of it."""
    max_tokens: Annotated[int, Field(ge=16)] = 2048
    """Prompts of the train and validation split that are longer are dropped and counted."""
    window: Annotated[int, Field(ge=1)] | None = None
    """Tokens: a response that is longer is scored in windows, and its score is the highest of them. Null:
    it is one, however long."""
    storage: Storage = "float16"
    """How states are kept on disk: `int8` takes half of the place, with a scale for each vector."""

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
