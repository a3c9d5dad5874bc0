"""`tracking=wandb_offline` and its kin: where a run's live numbers go. No part of what a run is."""

from typing import Annotated, Literal

from pydantic import Field

from monitorbench.config.base import Config


class Tracking(Config):
    """Weights & Biases. Its key is in the environment or in `wandb login`'s file, never here."""

    mode: Literal["offline", "online", "disabled"]
    """`offline` writes into the run directory and connects to nothing."""
    project: Annotated[str, Field(min_length=1)]
    entity: Annotated[str, Field(min_length=1)] | None
    """A user or a team; null: the key's own."""
    group: Annotated[str, Field(min_length=1)] | None
    """What runs are shown together: a sweep's name; null: the dataset's."""
    after_seconds: Annotated[float, Field(ge=0)]
    """W&B is started once numbers have come for so long; a shorter run has none there."""
