"""What our servers refuse before a path's function sees it, on a connection and in a request's head.

A head has to be whole in time, no request may be read as two, come from a web page or name another host, and
with a key only `/health` is answered without it; what is no HTTP is answered in JSON as well.
"""

import asyncio
import hmac
import ipaddress
import json
import os
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from typing import Any, NamedTuple

import h11
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol


class Refusal(NamedTuple):
    """Why a request is not judged: the HTTP status and one line."""

    status: int
    error: str


class HttpAnswer(NamedTuple):
    """A status and a JSON object."""

    status: int
    body: Mapping[str, Any]


Refused = Callable[[str, Refusal], HttpAnswer]
"""A function from a path and the refusal of a request on it to the answer."""


def as_error(path: str, refusal: Refusal) -> HttpAnswer:
    """The usual answer to a refused request."""
    return HttpAnswer(refusal.status, {"error": refusal.error})


def reply(answer: HttpAnswer, closes: bool = False) -> Response:
    """The answer as a response; one that `closes` is the last on its connection."""
    headers = {"connection": "close"} if closes else {}
    if answer.status in (429, 503):
        headers["retry-after"] = "1"
    body = json.dumps(answer.body).encode()
    return Response(body, answer.status, headers, media_type="application/json")


MOST_HEAD = 2**15
"""Bytes of a request's line and headers."""


def to_another_host(headers: Headers, hosts: Collection[str]) -> Refusal | None:
    """The refusal of a request to another host than `hosts`, whose names are in lower case; None for others.

    A page whose own name leads here (DNS rebinding) sends that name as `Host`; an address has no name to be
    rebound.
    """
    host = headers.get("host", "")
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if not (name.lower() in hosts or _is_address(name)):
        return Refusal(
            403,
            f"Host {name[:80]!r}: not a name of this server; expected an IP address, localhost or its own "
            "name (of a guardrail also serve.names)",
        )
    return None


def from_a_page(headers: Headers) -> Refusal | None:
    """The refusal of a request that a web page of another place makes, as a browser says; None for others."""
    host = headers.get("host", "")
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        return Refusal(403, f"Origin {origin[:80]!r}: a page of another place; expected none")
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return Refusal(403, "Sec-Fetch-Site: a page of another place; expected none")
    return None


def malformed(request: Request) -> Refusal | None:
    """The refusal of a head that is too long, or that another reader may take for one of another length."""
    if sum(len(name) + len(value) + 4 for name, value in request.headers.raw) > MOST_HEAD:
        return Refusal(431, f"head of more than {MOST_HEAD} bytes")
    if "content-length" in request.headers and "transfer-encoding" in request.headers:
        return Refusal(400, "both Content-Length and Transfer-Encoding; expected one")
    return None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


SECONDS_TO_SEND = 30.0
"""A connection that says nothing for so long is closed; a head that has begun, and then its body, is whole by
then or refused."""
TRUNCATED = "is_truncated"
"""Key of a request's state: its client ended the connection within the body."""


class Connection(H11Protocol):
    """A connection whose heads have to be whole in time, and that answers in JSON to what is no HTTP."""

    def __init__(self, refused: Refused, **given: Any) -> None:
        super().__init__(**given)
        self._refused = refused
        self._head: asyncio.TimerHandle | None = None
        self._is_half_closed = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        super().data_received(data)
        self._watch_head()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep a connection whose client sends no more and waits for its answer."""
        self._is_half_closed = True
        if self._is_answering and self.cycle.more_body:
            self.cycle.scope["state"][TRUNCATED] = True
            self.cycle.more_body = False
            self.cycle.message_event.set()
        return self._is_answering

    def on_response_complete(self) -> None:
        """See `H11Protocol`."""
        super().on_response_complete()
        if self._is_half_closed and not self._is_answering:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        super().connection_lost(exc)
        self._watch_head()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP request, and close."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            refusal = Refusal(400, "no HTTP request, or a head that is too long")
            answer = reply(self._refused("", refusal), closes=True)
            head = h11.Response(
                status_code=answer.status_code, headers=answer.raw_headers, reason=b"Bad Request"
            )
            for event in (head, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    @property
    def _is_answering(self) -> bool:
        """Whether a request waits for its answer."""
        return self.cycle is not None and not self.cycle.response_complete

    def _watch_head(self) -> None:
        """Close the connection in `SECONDS_TO_SEND` unless a request's head is whole by then."""
        if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
            if self._head is not None:
                self._head.cancel()
            self._head = None
        elif self._head is None:
            self._head = self.loop.call_later(SECONDS_TO_SEND, self.transport.close)


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
