"""A provider's batch API: answers within a day, at half the price."""

from typing import Annotated, Literal

from pydantic import Field

from monitorbench.config.base import Config


class BatchApi(Config):
    """How requests are handed in together, and their answers fetched when they are there."""

    format: Literal["openai", "anthropic"]
    """`openai`: `/files` and `/batches`, with chat completions. `anthropic`: `/messages/batches`."""
    price_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Of `prices`, what a batch costs."""
    poll_seconds: Annotated[float, Field(gt=0)] = 60
    """Between two questions whether a batch has ended."""
    most_requests: Annotated[int, Field(ge=1)] | None = None
    """In one batch; null: the provider's limit (OpenAI 50,000, Anthropic 100,000)."""
    most_megabytes: Annotated[float, Field(gt=0)] | None = None
    """Of one batch; null: the provider's limit (OpenAI 200, Anthropic 256)."""
