"""What a model's tokens cost."""

from typing import Annotated

from pydantic import Field

from monitorbench.config.base import Config

Price = Annotated[float, Field(ge=0)]


class Prices(Config):
    """Price of a million tokens each, in whatever currency `max_cost` is."""

    prompt: Price
    """Of prompt tokens."""
    cached_prompt: Price | None
    """Of prompt tokens that the provider had cached; null: as the others."""
    completion: Price
    """Reasoning counts as completion."""
    looked_up: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = None
    """The day on which somebody read them off the provider's page."""
