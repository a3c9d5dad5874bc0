"""What `eval/serve.py` serves as a guardrail: where it listens, how it fails, what it takes, what it logs."""

from typing import Annotated, Literal

from pydantic import Field

from monitorbench.config.base import Config


class Serve(Config):
    """`serve.py` with `serve.guardrail=true`: the monitor of `operating_point`, answering flag or pass."""

    guardrail: bool = False
    """Whether what `operating_point` was calibrated for is served, at its threshold; else `monitor` is."""
    host: str = "127.0.0.1"
    """The address that the guardrail listens at; another than 127.0.0.1 asks for a key."""
    port: Annotated[int, Field(ge=0, le=65535)] = 0
    """Its port; 0 takes a free one."""
    api_key_env: Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$")] | None = None
    """NAME of the environment variable with the key that it asks for; null: one is made where `host` can be
    reached from other machines, and is in `server.json`."""
    fails: Literal["closed", "open"] = "closed"
    """What is answered where there is no score (unscored, timed out, overloaded, model gone): flag, or pass.
    """
    shadow: bool = False
    """Answers pass whatever is found; the log says what would have been answered."""
    timeout_seconds: Annotated[float, Field(gt=0, le=600)] = 10.0
    """From a request's last byte to its answer; then it has none from the monitor."""
    most_bytes: Annotated[int, Field(ge=1024, le=2**28)] = 4 * 2**20
    """Of a request's body; a longer one is refused."""
    at_once: Annotated[int, Field(ge=1, le=10_000)] = 256
    """Requests in hand, waiting ones included; one more is refused, and so is one more question to a judge
    that hangs with so many behind it. Connections: four times as many."""
    log_text: bool = False
    """Whether the log holds the requests and responses themselves."""
    telemetry: bool = False
    """Whether each decision is also a line of `events.jsonl`: OpenTelemetry's `gen_ai.evaluation.result`, as
    a collector's `otlpjsonfile` receiver reads it."""
