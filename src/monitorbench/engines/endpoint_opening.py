"""How what a monitor's answer has to stand behind (`monitor.opening`) reaches an endpoint.

By token ids it is among them, as in process. A chat endpoint renders the template itself: it is told to write
the same by `monitor.chat_template_kwargs`, which vLLM's server and its like take. Without either, a hybrid
would begin to think, and every answer of one token would be a piece of a thought.
"""

from monitorbench.config.base import ConfigError
from monitorbench.config.engine import OpenAiEngine
from monitorbench.config.monitor import Monitor


def with_opening(monitor: Monitor, engine: OpenAiEngine) -> OpenAiEngine:
    """The endpoint, told how the monitor's answers begin.

    Raises `ConfigError` where neither way is open.
    """
    if engine.by_token_ids:
        return engine
    given = (monitor.chat_template_kwargs or {}) | dict(engine.extra_body.get("chat_template_kwargs", {}))
    if monitor.opening and monitor.reasoning is None and not given:
        raise ConfigError(
            f"monitor={monitor.name}: its answer stands behind opening={monitor.opening!r}, which a chat "
            "endpoint is not sent; expected engine.by_token_ids=true (a vLLM server), or "
            "monitor.chat_template_kwargs that make its template write it"
        )
    if not given:
        return engine
    return engine.model_copy(update={"extra_body": engine.extra_body | {"chat_template_kwargs": given}})
