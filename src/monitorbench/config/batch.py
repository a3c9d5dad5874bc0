"""Settings of a provider's batch API: answers within a day, at half the price."""

from typing import Annotated, Literal

from pydantic import Field

from monitorbench.config.base import Config


class BatchApi(Config):
    """How requests are submitted together and their answers fetched once they are ready."""

    format: Literal["openai", "anthropic"]
    """API of the provider. `openai`: `/files` and `/batches`, with chat completions. `anthropic`:
    `/messages/batches`."""
    price_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Price of a batch as a share of `prices`."""
    poll_seconds: Annotated[float, Field(gt=0)] = 60
    """Seconds between two checks whether a batch has ended."""
    most_requests: Annotated[int, Field(ge=1)] | None = None
    """Most requests in one batch; null: the provider's limit (OpenAI 50,000, Anthropic 100,000)."""
    most_megabytes: Annotated[float, Field(gt=0)] | None = None
    """Largest size of one batch in MB; null: the provider's limit (OpenAI 200, Anthropic 256)."""
