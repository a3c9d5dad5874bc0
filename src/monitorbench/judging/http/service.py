"""An HTTP server of JSON: a function a path, and what it refuses before a function sees it.

Promises: every request is answered with one JSON object, in one line where it is refused, and none with a
traceback; a body is at most `Limits.most_bytes` and no more than that is ever held of it, and neither a head
nor a body may take for ever; what could be read as two requests, or as one of another length, is refused, and
its connection closed; with a key only `/health` is answered without it; one request that fails takes nothing
from the others; on leaving `listening` what is in hand is answered, and nothing else any more. No TLS.
"""

import contextlib
import hmac
import io
import json
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.judging.http.bounds import MOST_HEAD, Incoming, Slots, TooLong

MOST_BYTES = 4 * 2**20
_SECONDS_TO_SEND = 30
"""A connection that says nothing for so long is closed; a head that has begun, and then its body, is whole by
then or refused."""
_MOST_TOLD = 64
"""Connections too many that are told so at once; others are closed with a word."""
_SECONDS_TO_LINGER = 5.0
_LONGEST_IDLE = 1.0
"""Seconds without a byte of a refused body, after which the rest is not waited for."""
_PIECE = 2**16
_FULL = "too many connections; try again"
_ENDING = "the server is ending"
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
    """Open at once, each a thread; one more is refused (503)."""
    seconds_to_end: float = _SECONDS_TO_SEND
    """How long the requests in hand are waited for in the end."""


_USUAL = Limits()
Post = Callable[[bytes, Mapping[str, str]], HttpAnswer | Refusal]
"""From a body and the request's headers, whose names are in lower case, to the answer."""


def as_error(path: str, refusal: Refusal) -> HttpAnswer:
    """The usual answer to what is refused."""
    return HttpAnswer(refusal.status, {"error": refusal.error})


@contextmanager
def listening(
    posts: Mapping[str, Post],
    host: str,
    port: int,
    key: str | None,
    *,
    limits: Limits = _USUAL,
    refused: Callable[[str, Refusal], HttpAnswer] = as_error,
    health: Callable[[], Mapping[str, Any]] = lambda: {"status": "ok"},
) -> Iterator["HttpServer"]:
    """A server that is bound to its port; `serve_forever` answers. Raises `UserError` where it is taken.

    `posts` are called by path, from a thread a connection. `refused` makes the answer of a refusal on one of
    these paths, or on "" where the path is not known yet.
    """

    class Handler(_Handler):
        def __init__(self, *given: Any) -> None:
            self.posts, self.expected, self.refused, self.health = posts, key, refused, health
            self.most_bytes = limits.most_bytes
            super().__init__(*given)

    class Full(Handler):
        is_full = True
        timeout = _LONGEST_IDLE

    try:
        server = HttpServer((host, port), Handler, Full, limits, refused)
    except OSError as error:
        raise UserError(
            f"port={port}: can't be had on {host} ({error.strerror or error}); expected a free one"
        ) from error
    with server:
        try:
            yield server
        finally:
            server.drain(limits.seconds_to_end)


class HttpServer(ThreadingHTTPServer):
    """What `listening` gives."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(
        self,
        address: tuple[str, int],
        handler: type[BaseHTTPRequestHandler],
        full: type[BaseHTTPRequestHandler],
        limits: Limits,
        refused: Callable[[str, Refusal], HttpAnswer],
    ) -> None:
        """`full` is the handler of connections that are too many."""
        super().__init__(address, handler)
        self.in_hand, self.is_ending = Slots(limits.at_once), False
        self._kinds = ((Slots(limits.connections), handler), (Slots(_MOST_TOLD), full))
        self._refused = refused

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for a connection, or 503 where there are too many."""
        for slots, handler in self._kinds:
            if not slots.take():
                continue
            given = (slots, handler, request, client_address)
            try:
                threading.Thread(target=self._converse, args=given, daemon=True).start()
                return
            except RuntimeError:  # the machine has no thread left
                slots.give_back()
        self._turn_away(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is the client's business; anything else is said in the log."""
        error = sys.exception()
        if not isinstance(error, OSError):
            _log.error("serve: a connection ended", exc_info=error)

    def drain(self, seconds: float) -> None:
        """Take no request any more, and wait until none is in hand, at most so long."""
        self.is_ending = True
        self.in_hand.close()
        self.in_hand.empty(seconds)

    def _converse(
        self, slots: Slots, handler: type[BaseHTTPRequestHandler], request: Any, client_address: Any
    ) -> None:
        try:
            handler(request, client_address, self)
        except Exception:  # whatever it is, it ends this connection alone; the log says it
            self.handle_error(request, client_address)
        finally:
            self.shutdown_request(request)
            slots.give_back()

    def _turn_away(self, request: socket.socket) -> None:
        status, body = self._refused("", Refusal(503, _FULL))
        text = json.dumps(body).encode()
        head = (
            f"HTTP/1.1 {status} Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
            f"Connection: close\r\nContent-Length: {len(text)}\r\n\r\n"
        )
        with contextlib.suppress(OSError):
            request.settimeout(_LONGEST_IDLE)
            request.sendall(head.encode() + text)
        self.shutdown_request(request)


class _Handler(BaseHTTPRequestHandler):
    """Of one connection; `listening` says who answers."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "monitorbench", ""
    timeout: ClassVar[float] = _SECONDS_TO_SEND
    disable_nagle_algorithm = True
    wbufsize = _PIECE  # head and body leave together
    requestline = request_version = command = path = ""  # of what is no request
    is_full: ClassVar[bool] = False
    """Whether this connection is one too many: it is told so, in the form of what it asks."""
    is_answered = False
    server: HttpServer
    posts: Mapping[str, Post]
    expected: str | None
    refused: Callable[[str, Refusal], HttpAnswer]
    health: Callable[[], Mapping[str, Any]]
    most_bytes: int

    def setup(self) -> None:
        """See `StreamRequestHandler`."""
        super().setup()
        self.rfile.close()
        self.incoming = Incoming(self.connection)
        self.rfile = io.BufferedReader(self.incoming)

    def handle(self) -> None:
        """See `BaseHTTPRequestHandler`; one too many is told so also where it asks nothing."""
        super().handle()
        if self.is_full and not self.is_answered:
            self._send(self.refused("", Refusal(503, _FULL)))

    def handle_one_request(self) -> None:
        """See `BaseHTTPRequestHandler`."""
        self.incoming.expect_head(self.timeout)
        try:
            super().handle_one_request()
        except TooLong:
            self.send_error(431, f"head of more than {MOST_HEAD} bytes")

    def parse_request(self) -> bool:
        """See `BaseHTTPRequestHandler`; a head that others may read otherwise is none."""
        if not super().parse_request():
            return False
        if self._is_ambiguous:
            self.send_error(400, "malformed headers; expected NAME: VALUE, and one Content-Length")
            return False
        return True

    def handle_expect_100(self) -> bool:
        """Ask for the body, unless it is refused without."""
        if self.command == "POST" and not self._is_ambiguous and self._refusal() is None:
            self.send_response_only(100)
            self.end_headers()
            self.wfile.flush()
        return True

    def do_GET(self) -> None:
        """`/health`."""
        if self._path != "/health":
            self._refuse(self._unknown_path())
        elif self.server.is_ending:
            self._refuse(Refusal(503, _ENDING))
        elif self.headers.get("Content-Length", "0") == "0" and "Transfer-Encoding" not in self.headers:
            self._send(HttpAnswer(200, self.health()))
        else:  # a body that is not read would pass for the next request
            self.close_connection = True
            self._send(HttpAnswer(200, self.health()))
            self._linger()

    def do_POST(self) -> None:
        """One of the paths that are answered."""
        refusal = self._refusal()
        if refusal is None and not self.server.in_hand.take():
            ending = Refusal(503, _ENDING) if self.server.is_ending else None
            refusal = ending or Refusal(429, "too many requests in hand; try again")
        if refusal is not None:
            self._refuse(refusal)
            return
        try:
            found = self._answered()
            self._send(self._answer_to(found) if isinstance(found, Refusal) else found)
        except OSError:  # the client went away
            self.close_connection = True
            return
        finally:
            self.server.in_hand.give_back()
        if isinstance(found, Refusal) and self.close_connection:
            self._linger()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is no HTTP, or a method that is none of these."""
        self.close_connection = True
        self._send(self.refused("", Refusal(int(code), str(message or "no HTTP request")[:120])))
        self._linger()

    def log_message(self, *_: object) -> None:
        """Nothing: what is asked is nobody's business, and how often is the caller's."""

    @property
    def _path(self) -> str:
        return self.path.partition("?")[0]

    @property
    def _is_ambiguous(self) -> bool:
        return bool(self.headers.defects) or len(self.headers.get_all("Content-Length", ())) > 1

    def _answered(self) -> HttpAnswer | Refusal:
        body = self._body(int(self.headers["Content-Length"]))
        if body is None:
            self.close_connection = True
            return Refusal(408, f"the body was not whole within {_SECONDS_TO_SEND} s")
        if self.server.is_ending:  # its judge and its log may be closed before there is an answer
            return Refusal(503, _ENDING)
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            return self.posts[self._path](body, headers)
        except Exception:  # of this request alone: the others are still answered
            _log.exception("serve: a request could not be judged")
            self.close_connection = True
            return Refusal(500, "the request could not be judged; the server's log says why")

    def _body(self, length: int) -> bytes | None:
        """The body; None where it is not whole in time."""
        pieces, left = [], length
        self.incoming.expect_body(_SECONDS_TO_SEND)
        with contextlib.suppress(TimeoutError):
            while left and (piece := self.rfile.read1(min(left, _PIECE))):
                pieces.append(piece)
                left -= len(piece)
        return None if left else b"".join(pieces)

    def _refusal(self) -> Refusal | None:
        if not self._has_key():
            return Refusal(401, "no key; expected Authorization: Bearer KEY, with the key of server.json")
        if self._path not in self.posts:
            return self._unknown_path()
        if self.is_full or self.server.is_ending:
            return Refusal(503, _FULL if self.is_full else _ENDING)
        # A page in somebody's browser can send a plain text anywhere, but not this.
        if self.headers.get_content_type() != "application/json":
            return Refusal(415, "expected Content-Type: application/json")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or "Transfer-Encoding" in self.headers:
            return Refusal(411, "no length; expected Content-Length")
        if len(length) > 12 or int(length) > self.most_bytes:
            return Refusal(413, f"{length[:20]} bytes; expected at most {self.most_bytes}")
        return None

    def _has_key(self) -> bool:
        if self.expected is None:
            return True
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        given = given or self.headers.get("x-api-key", "")
        return hmac.compare_digest(given.encode("latin-1", "replace"), self.expected.encode())

    def _unknown_path(self) -> Refusal:
        return Refusal(
            404, f"{self.path[:80]}: not here; expected POST {' or '.join(self.posts)}, or GET /health"
        )

    def _answer_to(self, refusal: Refusal) -> HttpAnswer:
        known = self._path in self.posts and self.command == "POST"
        return (self.refused if known else as_error)(self._path, refusal)

    def _refuse(self, refusal: Refusal) -> None:
        """Say why, and close: what was not read of the body would pass for the next request."""
        self.close_connection = True
        self._send(self._answer_to(refusal))
        self._linger()

    def _linger(self) -> None:
        """Drop what is still being sent for a while, so that the client comes to reading the answer."""
        until = time.monotonic() + _SECONDS_TO_LINGER
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(_LONGEST_IDLE)
            while time.monotonic() < until and self.connection.recv(_PIECE):
                pass

    def _send(self, answer: HttpAnswer) -> None:
        body = json.dumps(answer.body).encode()
        self.is_answered = True
        self.close_connection = self.close_connection or self.is_full or self.server.is_ending
        self.connection.settimeout(self.timeout)
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if answer.status in (429, 503):
            self.send_header("Retry-After", "1")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
