"""Prices of a model's tokens."""

from typing import Annotated

from pydantic import Field

from monitorbench.config.base import Config

Price = Annotated[float, Field(ge=0)]


class Prices(Config):
    """Prices per million tokens, in the currency of `max_cost`."""

    prompt: Price
    """Price of a million prompt tokens."""
    cached_prompt: Price | None
    """Price of a million prompt tokens that the provider had cached; null: the same as `prompt`."""
    completion: Price
    """Price of a million completion tokens, reasoning included."""
    looked_up: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = None
    """Day on which the prices were read off the provider's page."""
