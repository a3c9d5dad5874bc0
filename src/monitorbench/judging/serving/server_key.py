"""Middleware of vLLM's server: without its key only `/health` is answered.

vLLM's own check leaves out paths such as `/invocations`, which answer chats as well.
"""

import hmac
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]


class KeyRequired:
    """ASGI; the key is the environment's VLLM_API_KEY, which has to be set."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self._app = app
        self._expected = f"Bearer {os.environ['VLLM_API_KEY']}".encode()

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Pass a request on, or answer 401."""
        if scope["type"] == "lifespan" or scope.get("path") == "/health":
            await self._app(scope, receive, send)
            return
        given = dict(scope.get("headers", ())).get(b"authorization", b"")
        if scope["type"] == "http" and hmac.compare_digest(given, self._expected):
            await self._app(scope, receive, send)
            return
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        else:
            await send({"type": "websocket.close", "code": 1008})
