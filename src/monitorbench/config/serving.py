"""Settings of `eval/serve.py` as a guardrail: its address, limits, log, and what it answers on failure."""

from typing import Annotated, Literal

from pydantic import Field

from monitorbench.config.base import Config


class Serve(Config):
    """`serve.py` with `serve.guardrail=true`: the monitor of `operating_point`, answering flag or pass."""

    guardrail: bool = False
    """Serve the monitor that `operating_point` was calibrated for, at its threshold; false serves
    `monitor`."""
    host: str = "127.0.0.1"
    """Address the guardrail listens at; any other than 127.0.0.1 requires a key."""
    port: Annotated[int, Field(ge=0, le=65535)] = 0
    """Port the guardrail listens on; 0 picks a free port."""
    api_key_env: Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$")] | None = None
    """NAME of the environment variable with the key that clients must send; null: a key is made where `host`
    can be reached from other machines, and written to `server.json`."""
    fails: Literal["closed", "open"] = "closed"
    """Answer where there is no score (unscored, timed out, overloaded, model gone). `closed`: flag. `open`:
    pass."""
    shadow: bool = False
    """Answer pass to everything; the log says what would have been answered."""
    timeout_seconds: Annotated[float, Field(gt=0, le=600)] = 10.0
    """Seconds from a request's last byte to its answer; after them it is answered without the monitor."""
    most_bytes: Annotated[int, Field(ge=1024, le=2**28)] = 4 * 2**20
    """Largest request body in bytes; a longer one is refused."""
    at_once: Annotated[int, Field(ge=1, le=10_000)] = 256
    """Most requests in hand, waiting ones included; any further request is refused, and so is a further
    question to a judge that hangs with this many waiting behind it. Connections are limited to four times as
    many."""
    log_text: bool = False
    """Whether the log holds the text of requests and responses."""
    telemetry: bool = False
    """Whether each decision is also a line of `events.jsonl`: OpenTelemetry's `gen_ai.evaluation.result`, as
    a collector's `otlpjsonfile` receiver reads it."""
