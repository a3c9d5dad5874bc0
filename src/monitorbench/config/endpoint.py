"""Settings of an endpoint that answers requests, a provider's or our own server's (`engine.kind=openai`)."""

import os
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from monitorbench.config.base import Config, ConfigError, FileName, UserError
from monitorbench.config.monitor import Monitor, Prices


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


_OURS = frozenset({"messages", "model", "n", "stream", "max_tokens", "max_completion_tokens"})
"""Fields that `extra_body` may not replace: answers would be misread, or come from another model."""


class Served(Config):
    """Facts about one of our own servers that decide its answers."""

    weights: str
    """Name of the server's weights."""
    adapter: str
    """Hash of the server's adapter; empty for none."""
    dtype: str
    """Precision in which the server computes scores."""
    training: dict[str, Any] | None
    """Facts about the training of the server's adapter, as far as they are recorded."""


class OpenAiEngine(Config):
    """An OpenAI-compatible chat endpoint: a vLLM server, OpenAI, DeepSeek, Gemini's, Anthropic's."""

    kind: Literal["openai"]
    name: FileName
    """Name of the endpoint in folder names."""
    base_url: str
    """Address of the API, up to what precedes `/chat/completions`."""
    model: Annotated[str, Field(min_length=1)]
    """Name of the model at the endpoint."""
    api: Literal["chat", "moderations"] = "chat"
    """Form of its requests: chat completions, or `/moderations`, which rates a text by category."""
    api_key_env: Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$")] | None = None
    """NAME of the environment variable with the key; null where the endpoint requires none."""
    concurrency: Annotated[int, Field(ge=1, le=1000)] = 64
    """Most requests in flight at once, including those waiting for a retry."""
    timeout_seconds: Annotated[float, Field(gt=0)] = 300.0
    """Seconds that one attempt may take, from its start to its last byte."""
    max_retries: Annotated[int, Field(ge=0, le=20)] = 3
    """Most retries of one request after its first attempt."""
    requests_per_minute: Annotated[int, Field(ge=1)] | None = None
    """Most requests per minute; null: no limit."""
    tokens_per_minute: Annotated[int, Field(ge=1)] | None = None
    """Most tokens per minute, prompt and completion together; null: no limit."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0
    """Sampling temperature; null sends none, for models that refuse the field."""
    logprobs: bool = True
    """Whether log-probabilities are requested; without them there is no score."""
    top_logprobs: Annotated[int, Field(ge=1, le=20)] = 20
    """Alternatives requested at each position, where `logprobs` is on."""
    structured: Literal["none", "json_schema", "json_object"] = "json_schema"
    """Field of the request that makes the endpoint answer in JSON."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """Name that the endpoint uses for the limit of the answer's tokens."""
    prices: Prices | None = None
    """Prices from which the cost of each verdict is computed; null: not known."""
    max_failed: Annotated[float, Field(ge=0, le=1)] = 0.02
    """Largest share of an evaluation's samples that may stay without an answer; with more it is
    incomplete."""
    max_cost: Annotated[float, Field(gt=0)] | None = None
    """Spending limit: no further request is sent once this much is spent; requests in flight then come on
    top."""
    extra_body: dict[str, Any] = Field(default={})
    """Fields added to every request, such as `reasoning_effort`."""
    by_token_ids: bool = False
    """Send `/completions` the token ids that an engine of this process would get, in place of chat messages;
    for servers with vLLM's fields whose tokenizer is available locally."""
    served_model: str | None = None
    """Name of the model in the endpoint's answers, if neither `model` nor a dated form of it."""
    model_may_change: bool = False
    """Whether answers by another version of the model, by the name that they give, only cause a warning. The
    name in a run's first answer is expected in all later ones, also where the run is resumed."""
    batch: BatchApi | None = None
    """Submit all requests together, for answers within a day at half the price; null: requests are sent one
    by one."""
    server: FileName | None = None
    """`engine.served_as` of a running `eval/serve.py`, which supplies `base_url`, `model` and the key."""
    server_seconds: Annotated[int, Field(ge=0)] = 0
    """Seconds to wait until that server answers."""
    serves: Served | None = None
    """Facts that the server reports about its model, which then identify the judge wherever it is served. Not
    to be set."""
    takes_token_ids: ClassVar[bool] = False
    """False: an endpoint gets chat messages, and has its own weights."""

    @property
    def precision(self) -> str:
        """Precision in which one of our servers computes scores; empty where it is not known."""
        return self.serves.dtype if self.serves else ""

    def api_key(self) -> str | None:
        """Return the key in the variable that `api_key_env` names; None where the endpoint requires none.

        Raises `UserError` where the variable is not set, or holds no key.
        """
        if self.api_key_env is None:
            return None
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            raise UserError(f"{self.base_url} needs a key: set the environment variable {self.api_key_env}")
        if not (key.isascii() and key.isprintable()):
            raise UserError(f"the environment variable {self.api_key_env} holds no key: not plain ASCII")
        return key

    @property
    def paid_prices(self) -> Prices | None:
        """Prices that are paid, lowered by the share of a batch API."""
        if self.prices is None or self.batch is None:
            return self.prices
        share = self.batch.price_share
        prices: dict[str, float | None] = self.prices.model_dump(exclude={"looked_up"})
        return Prices.model_validate({name: price and price * share for name, price in prices.items()})

    def with_opening(self, monitor: Monitor) -> "OpenAiEngine":
        """Return the endpoint with a request that makes answers begin as the monitor's do.

        By token ids the monitor's `opening` is among them, as in process. A chat endpoint renders the
        template itself, and `chat_template_kwargs` make it write the same; without them a hybrid model would
        begin to think, and every answer of one token would be a piece of a thought. Raises `ConfigError`
        where neither is possible.
        """
        arguments = (monitor.chat_template_kwargs or {}) | dict(
            self.extra_body.get("chat_template_kwargs", {})
        )
        if self.by_token_ids or not (arguments or monitor.opening):
            return self
        if not arguments and monitor.reasoning is None:
            raise ConfigError(
                f"monitor={monitor.name}: its answer stands behind opening={monitor.opening!r}, which a chat "
                "endpoint is not sent; expected engine.by_token_ids=true (a vLLM server), or "
                "monitor.chat_template_kwargs that make its template write it"
            )
        extra = {"chat_template_kwargs": arguments} if arguments else {}
        return self.model_copy(update={"extra_body": self.extra_body | extra})

    def own_identity(self) -> dict[str, Any]:
        """Return the settings of the endpoint that decide its answers."""
        served = self.serves
        assert self.server is None or served, "judging.serving.served comes first"
        return {
            "weights": f"served:{served.weights}" if served else f"endpoint:{self.base_url}:{self.model}",
            "adapter": served.adapter if served else "",
            "engine": self.kind,
            "dtype": self.precision,
            "request": {"by_token_ids": True}
            if self.by_token_ids
            else {
                "temperature": self.temperature,
                "structured": self.structured,
                "top_logprobs": self.top_logprobs if self.logprobs else 0,
                "extra_body": self.extra_body,
                **({"api": self.api} if self.api != "chat" else {}),
                **({"api": "messages"} if self.batch and self.batch.format == "anthropic" else {}),
            },
        }

    @field_validator("base_url")
    @classmethod
    def _is_plain(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("expected a URL such as https://host/v1")
        if parts.username or parts.password or parts.query:
            raise ValueError("expected no user, password or query: a key belongs into api_key_env's variable")
        return value

    @model_validator(mode="after")
    def _agrees(self) -> "OpenAiEngine":
        if self.max_cost is not None and self.prices is None:
            raise ValueError("max_cost needs prices: fill in engine.prices")
        if self.serves is not None and self.server is None:
            raise ValueError("serves is not to be set: it is read from engine.server")
        if self.by_token_ids and (self.temperature != 0 or self.extra_body):
            raise ValueError("by_token_ids decodes as in process: expected temperature=0 and extra_body={}")
        if self.api == "moderations" and (self.by_token_ids or self.batch):
            raise ValueError("api=moderations takes text: expected by_token_ids=false and batch=null")
        if self.batch is not None and (self.by_token_ids or self.server is not None):
            raise ValueError("batch is a provider's: expected by_token_ids=false and server=null")
        is_beyond_messages = self.logprobs or self.structured != "none"
        if self.batch is not None and self.batch.format == "anthropic" and is_beyond_messages:
            raise ValueError("batch.format=anthropic: expected logprobs=false and structured=none")
        if clash := sorted(_OURS & self.extra_body.keys()):
            raise ValueError(f"extra_body may not set {clash[0]!r}")
        return self
