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
import logging
import math
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

import uvicorn
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from monitorbench.config.base import UserError
from monitorbench.judging.serving import connection
from monitorbench.judging.serving.connection import (
    MOST_HEAD,
    HttpAnswer,
    Refusal,
    Refused,
    as_error,
    from_a_page,
    malformed,
    reply,
    to_another_host,
)

MOST_BYTES = 4 * 2**20
SECONDS_TO_LINGER = 5.0
"""The rest of a refused body is read and dropped for so long: its client then comes to reading the answer."""
_BACKLOG = 2048
_THREADS = 256
"""Requests that a function answers at once where `Limits.at_once` gives no number; others wait."""
_REFUSING = 8
"""Refusals that are answered, and logged, at once."""
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class Limits(NamedTuple):
    """Limits of a server; None: no limit."""

    most_bytes: int = MOST_BYTES
    at_once: int | None = None
    """Requests in hand, bodies that are being received included; one more is refused (429)."""
    connections: int | None = None
    """Open at once; a request on one more is refused (503)."""
    seconds_to_end: float = connection.SECONDS_TO_SEND
    """How long the requests in hand are waited for in the end."""


_USUAL = Limits()
Post = Callable[[bytes, Mapping[str, str]], HttpAnswer | Refusal]
"""A function from a body and the request's headers (names in lower case) to the answer."""


class HttpServer:
    """A server that is bound to its port; `listening` gives it."""

    def __init__(self, bound: socket.socket, service: "_Service") -> None:
        """Serve `service` on a socket that listens already."""
        self._bound, self._service = bound, service
        self.port: int = bound.getsockname()[1]
        self._server = uvicorn.Server(
            uvicorn.Config(
                service.application(),
                http=partial(connection.Connection, service.refused),  # type: ignore[arg-type]  # it takes any factory
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
                timeout_keep_alive=math.ceil(connection.SECONDS_TO_SEND),
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
        refusal = self._from_elsewhere(request) or malformed(request)
        return await self._refuse(request, refusal) if refusal else reply(HttpAnswer(200, self._health()))

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
            async with asyncio.timeout(connection.SECONDS_TO_SEND):
                body = await _body(request, self.limits.most_bytes)
        except TimeoutError:
            body = Refusal(408, f"the body was not whole within {connection.SECONDS_TO_SEND:g} s")
        if request.scope["state"].get(connection.TRUNCATED):
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
        return reply(found)

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
        return reply(await _in_thread(self._refusing, answer, path, refusal), closes=True)

    def _refusal(self, request: Request) -> Refusal | None:
        """Why a request is refused before its body is read; None where it isn't."""
        if refusal := self._from_elsewhere(request) or malformed(request):
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
        sent_key = request.headers.get("authorization", "").removeprefix("Bearer ")
        sent_key = sent_key or request.headers.get("x-api-key", "")
        return hmac.compare_digest(sent_key.encode("latin-1", "replace"), self._key.encode())


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
