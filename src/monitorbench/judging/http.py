"""An HTTP server of JSON: a function a path, and what it refuses before a function sees it.

Starlette on uvicorn reads the requests. Promises: every request is answered with one JSON object, in one line
where it is refused, and none with a traceback; a body is at most `Limits.most_bytes` and no more than that is
ever held of it, and neither a head nor a body may take for ever; a request that could be read as two is
refused and its connection closed; a request that a web page makes, or that names another host, is refused;
with a key only `/health` is answered without it; one request that fails takes nothing from the others; on
leaving `serve_forever` the requests in hand have been answered, and no other is taken. No TLS.
"""

import asyncio
import hmac
import ipaddress
import json
import logging
import math
import socket
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

import h11
import uvicorn
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from monitorbench.config.base import UserError

MOST_BYTES = 4 * 2**20
MOST_HEAD = 2**15
"""Bytes of a request's line and headers."""
SECONDS_TO_SEND = 30.0
"""A connection that says nothing for so long is closed; a head that has begun, and then its body, is whole by
then or refused."""
SECONDS_TO_LINGER = 5.0
"""The rest of a refused body is read and dropped for so long: its client then comes to reading the answer."""
_BACKLOG = 2048
_THREADS = 256
"""Requests that a function answers at once where `Limits.at_once` gives no number; others wait."""
_REFUSING = 8
"""Refusals that are answered, and logged, at once."""
_TRUNCATED = "is_truncated"
"""Key of a request's state: its client ended the connection within the body."""
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class Refusal(NamedTuple):
    """Why a request is not judged: the HTTP status and one line."""

    status: int
    error: str


class HttpAnswer(NamedTuple):
    """A status and a JSON object."""

    status: int
    body: Mapping[str, Any]


class Limits(NamedTuple):
    """What a server takes; None: no limit."""

    most_bytes: int = MOST_BYTES
    at_once: int | None = None
    """Requests in hand, bodies that are being received included; one more is refused (429)."""
    connections: int | None = None
    """Open at once; a request on one more is refused (503)."""
    seconds_to_end: float = SECONDS_TO_SEND
    """How long the requests in hand are waited for in the end."""


_USUAL = Limits()
Post = Callable[[bytes, Mapping[str, str]], HttpAnswer | Refusal]
"""From a body and the request's headers, whose names are in lower case, to the answer."""
Refused = Callable[[str, Refusal], HttpAnswer]
"""From a path and the refusal of a request on it to the answer."""


def as_error(path: str, refusal: Refusal) -> HttpAnswer:
    """The usual answer to a refused request."""
    return HttpAnswer(refusal.status, {"error": refusal.error})


class HttpServer:
    """A server that is bound to its port; `listening` gives it."""

    def __init__(self, bound: socket.socket, service: "_Service") -> None:
        """Serve `service` on a socket that listens already."""
        self._bound, self._service = bound, service
        self.port: int = bound.getsockname()[1]
        self._server = uvicorn.Server(
            uvicorn.Config(
                service.application(),
                http=partial(_Connection, service.refused),  # type: ignore[arg-type]  # it takes any factory
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_config=None,
                log_level=logging.CRITICAL,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=_BACKLOG,
                h11_max_incomplete_event_size=MOST_HEAD,
                timeout_keep_alive=math.ceil(SECONDS_TO_SEND),
                timeout_graceful_shutdown=math.ceil(service.limits.seconds_to_end),
            )
        )
        service.connections = self._server.server_state.connections

    def serve_forever(self) -> None:
        """Answer until `shutdown`, or Ctrl-C, which is raised once the requests in hand are answered."""
        self._server.run([self._bound])

    def shutdown(self) -> None:
        """Have `serve_forever`, which another thread is in, answer what is in hand and return."""
        self._server.should_exit = True


@contextmanager
def listening(
    posts: Mapping[str, Post],
    host: str,
    port: int,
    key: str | None,
    *,
    names: tuple[str, ...] = (),
    limits: Limits = _USUAL,
    refused: Refused = as_error,
    health: Callable[[], Mapping[str, Any]] = lambda: {"status": "ok"},
) -> Iterator[HttpServer]:
    """A server that is bound to its port; `serve_forever` answers. Raises `UserError` where it is taken.

    `posts` are called by path, each request in a thread of its own. `names` are those by which clients may
    address the server, beside `host`, `localhost` and any IP address. `refused` makes the answer of a refusal
    on one of the paths, or on "" where the path is not known yet.
    """
    bound = socket.socket()
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, port))
            bound.listen(_BACKLOG)
        except OSError as error:
            raise UserError(
                f"port={port}: can't be had on {host} ({error.strerror or error}); expected a free one"
            ) from error
        hosts = frozenset(name.lower() for name in ("localhost", host, *names))
        yield HttpServer(bound, _Service(posts, key, hosts, limits, refused, health))
    finally:
        bound.close()


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


class _Service:
    """The paths of a server, and what holds for every request."""

    def __init__(
        self,
        posts: Mapping[str, Post],
        key: str | None,
        hosts: frozenset[str],
        limits: Limits,
        refused: Refused,
        health: Callable[[], Mapping[str, Any]],
    ) -> None:
        self._posts, self._key, self._hosts = posts, key, hosts
        self.limits, self.refused, self._health = limits, refused, health
        self.connections: set[Any] = set()
        self._in_hand = 0
        self._threads = CapacityLimiter(limits.at_once or _THREADS)
        self._refusing = CapacityLimiter(_REFUSING)

    def application(self) -> Starlette:
        """`/health` and the paths; any other is 404, any other method 405."""
        routes = [Route(path, self._post, methods=["POST"]) for path in self._posts]
        return Starlette(
            routes=[Route("/health", self._get_health, methods=["GET"]), *routes],
            exception_handlers={HTTPException: self._not_here},
        )

    async def _not_here(self, request: Request, error: Exception) -> Response:
        paths = f"expected POST {' or '.join(self._posts)}, or GET /health"
        status = error.status_code if isinstance(error, HTTPException) else 500
        said = f"{request.method[:20]} {request.url.path[:80]}: not here; {paths}"
        return await self._refuse(request, Refusal(status, said))

    async def _get_health(self, request: Request) -> Response:
        refusal = self._from_elsewhere(request) or _malformed(request)
        return await self._refuse(request, refusal) if refusal else _reply(HttpAnswer(200, self._health()))

    async def _post(self, request: Request) -> Response:
        try:
            refusal = self._refusal(request)
            if refusal is None and self.limits.at_once is not None and self._in_hand >= self.limits.at_once:
                refusal = Refusal(429, "too many requests in hand; try again")
            if refusal is not None:
                return await self._refuse(request, refusal)
            self._in_hand += 1
            try:
                return await self._answer(request)
            finally:
                self._in_hand -= 1
        except ClientDisconnect:
            return Response()  # nobody is there to read it

    async def _answer(self, request: Request) -> Response:
        try:
            async with asyncio.timeout(SECONDS_TO_SEND):
                body = await _body(request, self.limits.most_bytes)
        except TimeoutError:
            body = Refusal(408, f"the body was not whole within {SECONDS_TO_SEND:g} s")
        if request.scope["state"].get(_TRUNCATED):
            body = Refusal(400, "the connection ended within the body")
        if isinstance(body, Refusal):
            return await self._refuse(request, body)
        path = request.url.path
        try:
            found = await _in_thread(self._threads, self._posts[path], body, request.headers)
        except Exception:  # of this request alone: the others are still answered
            _log.exception("serve: a request could not be judged")
            found = Refusal(500, "the request could not be judged; the server's log says why")
        if isinstance(found, Refusal):
            found = await _in_thread(self._refusing, self.refused, path, found)
        return _reply(found)

    async def _refuse(self, request: Request, refusal: Refusal) -> Response:
        """Say why, and close; the rest of the body is dropped first, for a while."""
        # A client with `Expect` waits to be asked for its body; one that is too slow has been waited for.
        if "expect" not in request.headers and refusal.status != 408:
            try:
                async with asyncio.timeout(SECONDS_TO_LINGER):
                    async for _ in request.stream():
                        pass
            except (TimeoutError, RuntimeError):  # RuntimeError: it was read before
                pass
        path = request.url.path
        known = path in self._posts and request.method == "POST"
        answer = self.refused if known else as_error
        return _reply(await _in_thread(self._refusing, answer, path, refusal), closes=True)

    def _refusal(self, request: Request) -> Refusal | None:
        """Why a request is refused before its body is read; None where it isn't."""
        if refusal := self._from_elsewhere(request) or _malformed(request):
            return refusal
        if not self._has_key(request):
            return Refusal(401, "no key; expected Authorization: Bearer KEY, with the key of server.json")
        if self.limits.connections is not None and len(self.connections) > self.limits.connections:
            return Refusal(503, "too many connections; try again")
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return Refusal(415, "expected Content-Type: application/json")
        length = request.headers.get("content-length", "0")
        if len(length) > 12 or int(length) > self.limits.most_bytes:
            return Refusal(413, f"{length[:20]} bytes; expected at most {self.limits.most_bytes}")
        return None

    def _from_elsewhere(self, request: Request) -> Refusal | None:
        return to_another_host(request.headers, self._hosts) or from_a_page(request.headers)

    def _has_key(self, request: Request) -> bool:
        if self._key is None:
            return True
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        given = given or request.headers.get("x-api-key", "")
        return hmac.compare_digest(given.encode("latin-1", "replace"), self._key.encode())


class _Connection(H11Protocol):
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
            self.cycle.scope["state"][_TRUNCATED] = True
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
            reply = _reply(
                self._refused("", Refusal(400, "no HTTP request, or a head that is too long")), True
            )
            head = h11.Response(
                status_code=reply.status_code, headers=reply.raw_headers, reason=b"Bad Request"
            )
            for event in (head, h11.Data(data=bytes(reply.body)), h11.EndOfMessage()):
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


def _reply(answer: HttpAnswer, closes: bool = False) -> Response:
    headers = {"connection": "close"} if closes else {}
    if answer.status in (429, 503):
        headers["retry-after"] = "1"
    body = json.dumps(answer.body).encode()
    return Response(body, answer.status, headers, media_type="application/json")


async def _in_thread(limiter: CapacityLimiter, function: Callable[..., _T], *given: Any) -> _T:
    return await to_thread.run_sync(function, *given, limiter=limiter, abandon_on_cancel=True)


async def _body(request: Request, most: int) -> bytes | Refusal:
    """The whole body, of which at most `most` bytes are ever held."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            return Refusal(413, f"more than {most} bytes; expected at most {most}")
    return bytes(body)


def _malformed(request: Request) -> Refusal | None:
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
