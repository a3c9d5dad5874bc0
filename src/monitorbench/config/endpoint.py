"""`engine.kind=openai`: an endpoint that is sent requests, a provider's or a server of ours."""

import os
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from monitorbench.config.base import Config, ConfigError, FileName, UserError
from monitorbench.config.batch import BatchApi
from monitorbench.config.monitor import Monitor
from monitorbench.config.prices import Prices

_OURS = frozenset({"messages", "model", "n", "stream", "max_tokens", "max_completion_tokens"})
"""Fields that no `extra_body` may replace: answers would be misread, or come from another model."""


class Served(Config):
    """What decides the answers of a server of ours."""

    weights: str
    """What names its weights."""
    adapter: str
    """Its hash; empty for none."""
    dtype: str
    """The precision that its scores are computed in."""
    training: dict[str, Any] | None
    """What is known of the adapter's training."""


class OpenAiEngine(Config):
    """An OpenAI-compatible chat endpoint: a vLLM server, OpenAI, DeepSeek, Gemini's, Anthropic's."""

    kind: Literal["openai"]
    name: FileName
    """What folders call it."""
    base_url: str
    """Up to what precedes `/chat/completions`."""
    model: Annotated[str, Field(min_length=1)]
    """As the endpoint names it."""
    api_key_env: Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$")] | None = None
    """NAME of the environment variable with the key; null where the endpoint asks for none."""
    concurrency: Annotated[int, Field(ge=1, le=1000)] = 64
    """Requests in flight at once, waiting for a retry included."""
    timeout_seconds: Annotated[float, Field(gt=0)] = 300.0
    """For one attempt from its start to its last byte."""
    max_retries: Annotated[int, Field(ge=0, le=20)] = 3
    """Of one request, after its first attempt."""
    requests_per_minute: Annotated[int, Field(ge=1)] | None = None
    """Null: no limit."""
    tokens_per_minute: Annotated[int, Field(ge=1)] | None = None
    """Prompt and completion together."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0
    """Null sends none, for models that refuse the field."""
    logprobs: bool = True
    """Whether log-probabilities are asked for; without them there is no score."""
    top_logprobs: Annotated[int, Field(ge=1, le=20)] = 20
    """Alternatives requested at each position, where `logprobs` is on."""
    structured: Literal["none", "json_schema", "json_object"] = "json_schema"
    """How the request makes the endpoint answer in JSON."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What the endpoint calls the limit of the answer's tokens."""
    prices: Prices | None = None
    """For the cost of each verdict; null: not known."""
    max_failed: Annotated[float, Field(ge=0, le=1)] = 0.02
    """The share of an evaluation's samples that may stay without an answer; with more it is incomplete."""
    max_cost: Annotated[float, Field(gt=0)] | None = None
    """No request is sent any more once this much is spent; what is in flight then comes on top."""
    extra_body: dict[str, Any] = Field(default={})
    """Fields added to every request, such as `reasoning_effort`."""
    by_token_ids: bool = False
    """Sends `/completions` the token ids that an engine of this process would get, in place of chat messages:
    for servers with vLLM's fields, whose tokenizer is here."""
    served_model: str | None = None
    """What the endpoint calls the model in its answers, if neither `model` nor a dated form of it."""
    model_may_change: bool = False
    """Whether answers by another version of the model, by the name that they give, are a warning alone: the
    name that a run's first answer gave is expected of all others, also where the run is resumed."""
    batch: BatchApi | None = None
    """Hands all requests in together, for answers within a day at half the price; null: asks one by one."""
    server: FileName | None = None
    """The `engine.served_as` of an `eval/serve.py`, which says `base_url`, `model` and the key."""
    server_seconds: Annotated[int, Field(ge=0)] = 0
    """How long to wait until that server answers."""
    serves: Served | None = None
    """What it says it serves, which then names the judge, wherever it is served. Not to be set."""
    takes_token_ids: ClassVar[bool] = False
    """It is sent chat messages, and has its own weights."""

    @property
    def precision(self) -> str:
        """What a server of ours computes scores in; empty where nobody says."""
        return self.serves.dtype if self.serves else ""

    def api_key(self) -> str | None:
        """The key in the variable that `api_key_env` names; None where the endpoint asks for none.

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
        """What is paid, which a batch API's share lowers."""
        if self.prices is None or self.batch is None:
            return self.prices
        share = self.batch.price_share
        prices: dict[str, float | None] = self.prices.model_dump(exclude={"looked_up"})
        return Prices.model_validate({name: one and one * share for name, one in prices.items()})

    def with_opening(self, monitor: Monitor) -> "OpenAiEngine":
        """The endpoint, told how the monitor's answers begin.

        By token ids its `opening` is among them, as in process. A chat endpoint renders the template itself,
        and is told to write the same by `chat_template_kwargs`; without, a hybrid would begin to think, and
        every answer of one token would be a piece of a thought. Raises `ConfigError` where neither is open.
        """
        given = (monitor.chat_template_kwargs or {}) | dict(self.extra_body.get("chat_template_kwargs", {}))
        if self.by_token_ids or not (given or monitor.opening):
            return self
        if not given and monitor.reasoning is None:
            raise ConfigError(
                f"monitor={monitor.name}: its answer stands behind opening={monitor.opening!r}, which a chat "
                "endpoint is not sent; expected engine.by_token_ids=true (a vLLM server), or "
                "monitor.chat_template_kwargs that make its template write it"
            )
        told = {"chat_template_kwargs": given} if given else {}
        return self.model_copy(update={"extra_body": self.extra_body | told})

    def own_identity(self) -> dict[str, Any]:
        """What of an endpoint decides its answers."""
        served = self.serves
        assert self.server is None or served, "judging.served comes first"
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

    def _beyond_messages(self) -> bool:
        return self.logprobs or self.structured != "none"

    @model_validator(mode="after")
    def _agrees(self) -> "OpenAiEngine":
        if self.max_cost is not None and self.prices is None:
            raise ValueError("max_cost needs prices: fill in engine.prices")
        if self.serves is not None and self.server is None:
            raise ValueError("serves is not to be set: it is read from engine.server")
        if self.by_token_ids and (self.temperature != 0 or self.extra_body):
            raise ValueError("by_token_ids decodes as in process: expected temperature=0 and extra_body={}")
        if self.batch is not None and (self.by_token_ids or self.server is not None):
            raise ValueError("batch is a provider's: expected by_token_ids=false and server=null")
        if self.batch is not None and self.batch.format == "anthropic" and self._beyond_messages():
            raise ValueError("batch.format=anthropic: expected logprobs=false and structured=none")
        if clash := sorted(_OURS & self.extra_body.keys()):
            raise ValueError(f"extra_body may not set {clash[0]!r}")
        return self
