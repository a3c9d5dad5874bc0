"""What every chat request of a round has in common."""

from typing import Any

from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.engines.protocol import Decoding


def chat_fields(config: OpenAiEngine, decoding: Decoding) -> dict[str, Any]:
    """All of a chat completion's body but its messages and `engine.extra_body`."""
    structured = decoding.structured
    fields: dict[str, Any] = {"model": config.model, config.max_tokens_field: decoding.max_new_tokens}
    if config.temperature is not None:
        fields["temperature"] = config.temperature
    if config.logprobs:
        fields |= {"logprobs": True, "top_logprobs": config.top_logprobs}
    if structured is not None and config.structured == "json_schema":
        schema = {"name": "verdict", "schema": structured, "strict": True}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif structured is not None and config.structured == "json_object":
        fields["response_format"] = {"type": "json_object"}
    return fields
