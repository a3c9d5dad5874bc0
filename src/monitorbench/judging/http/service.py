"""An HTTP server of JSON: a function a path, and what it refuses before a function sees it.

Promises: every request is answered with one JSON object, in one line where it is refused, and none with a
traceback; a body is at most `Limits.most_bytes` and no more than that is ever held of it; with a key only
`/health` is answered without it; one request that fails takes nothing from the others. No TLS.
"""

import contextlib
import hmac
import json
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

MOST_BYTES = 4 * 2**20
_SECONDS_TO_SEND = 30
"""A connection that says nothing for so long is closed, and a body is whole by then or refused."""
_SECONDS_TO_LINGER = 5.0
_LONGEST_IDLE = 1.0
"""Seconds without a byte of a refused body, after which the rest is not waited for."""
_PIECE = 2**16
_log = logging.getLogger(__name__)


class Refusal(NamedTuple):
    """Why a request is not judged: the HTTP status and one line."""

    status: int
    error: str


class Answer(NamedTuple):
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


_USUAL = Limits()
Post = Callable[[bytes, Mapping[str, str]], Answer | Refusal]
"""From a body and the request's headers, whose names are in lower case, to the answer."""


def as_error(path: str, refusal: Refusal) -> Answer:
    """The usual answer to what is refused."""
    return Answer(refusal.status, {"error": refusal.error})


@contextmanager
def listening(
    posts: Mapping[str, Post],
    host: str,
    port: int,
    key: str | None,
    *,
    limits: Limits = _USUAL,
    refused: Callable[[str, Refusal], Answer] = as_error,
    health: Callable[[], Mapping[str, Any]] = lambda: {"status": "ok"},
) -> Iterator["Server"]:
    """A server that is bound to its port; `serve_forever` answers. Raises `OSError` where it is taken.

    `posts` are called by path, from a thread a connection. `refused` makes the answer of a refusal on one of
    these paths, or on "" where the path is not known yet.
    """

    class Handler(_Handler):
        def __init__(self, *given: Any) -> None:
            self.posts, self.expected, self.refused, self.health = posts, key, refused, health
            self.most_bytes = limits.most_bytes
            super().__init__(*given)

    with Server((host, port), Handler, limits, refused) as server:
        yield server


class Server(ThreadingHTTPServer):
    """What `listening` gives."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(
        self,
        address: tuple[str, int],
        handler: type[BaseHTTPRequestHandler],
        limits: Limits,
        refused: Callable[[str, Refusal], Answer],
    ) -> None:
        super().__init__(address, handler)
        self.in_hand = _Slots(limits.at_once)
        self._connections, self._refused = _Slots(limits.connections), refused

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for a connection, or 503 where there are too many."""
        if not self._connections.take():
            self._turn_away(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # the machine has no thread left
            self._connections.give_back()
            self._turn_away(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """See `ThreadingMixIn`."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.give_back()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is the client's business; anything else is said in the log."""
        error = sys.exception()
        if not isinstance(error, OSError):
            _log.error("serve: a connection ended", exc_info=error)

    def drain(self, seconds: float) -> None:
        """Wait until no request is in hand, at most so long."""
        self.in_hand.empty(seconds)

    def _turn_away(self, request: socket.socket) -> None:
        status, body = self._refused("", Refusal(503, "too many connections; try again"))
        text = json.dumps(body).encode()
        head = (
            f"HTTP/1.1 {status} Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
            f"Connection: close\r\nContent-Length: {len(text)}\r\n\r\n"
        )
        with contextlib.suppress(OSError):
            request.settimeout(_LONGEST_IDLE)
            request.sendall(head.encode() + text)
        self.shutdown_request(request)


class _Slots:
    """How many of something may be there at once; None: any number."""

    def __init__(self, most: int | None) -> None:
        self._most, self._taken = most, 0
        self._changed = threading.Condition()

    def take(self) -> bool:
        with self._changed:
            if self._most is not None and self._taken >= self._most:
                return False
            self._taken += 1
            return True

    def give_back(self) -> None:
        with self._changed:
            self._taken -= 1
            self._changed.notify_all()

    def empty(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._taken == 0, seconds)


class _Handler(BaseHTTPRequestHandler):
    """Of one connection; `listening` says who answers."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "monitorbench", ""
    timeout = _SECONDS_TO_SEND
    disable_nagle_algorithm = True
    wbufsize = _PIECE  # head and body leave together
    server: Server
    posts: Mapping[str, Post]
    expected: str | None
    refused: Callable[[str, Refusal], Answer]
    health: Callable[[], Mapping[str, Any]]
    most_bytes: int

    def do_GET(self) -> None:
        """`/health`."""
        if self._path == "/health":
            self._send(Answer(200, self.health()))
        else:
            self._refuse(self._unknown_path())

    def do_POST(self) -> None:
        """One of the paths that are answered."""
        refusal = self._refusal()
        if refusal is None and not self.server.in_hand.take():
            refusal = Refusal(429, "too many requests in hand; try again")
        if refusal is not None:
            self._refuse(refusal)
            return
        try:
            found = self._answered()
            self._send(self._answer_to(found) if isinstance(found, Refusal) else found)
        except OSError:  # the client went away
            self.close_connection = True
        finally:
            self.server.in_hand.give_back()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is no HTTP, or a method that is none of these."""
        self.close_connection = True
        self._send(self.refused("", Refusal(int(code), str(message or "no HTTP request")[:120])))

    def log_message(self, *_: object) -> None:
        """Nothing: what is asked is nobody's business, and how often is the caller's."""

    @property
    def _path(self) -> str:
        return self.path.partition("?")[0]

    def _answered(self) -> Answer | Refusal:
        body = self._body(int(self.headers["Content-Length"]))
        if body is None:
            self.close_connection = True
            return Refusal(408, f"the body was not whole within {_SECONDS_TO_SEND} s")
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
        until = time.monotonic() + _SECONDS_TO_SEND
        while left and time.monotonic() < until:
            piece = self.rfile.read1(min(left, _PIECE))
            if not piece:
                break
            pieces.append(piece)
            left -= len(piece)
        return None if left else b"".join(pieces)

    def _refusal(self) -> Refusal | None:
        if not self._has_key():
            return Refusal(401, "no key; expected Authorization: Bearer KEY, with the key of server.json")
        if self._path not in self.posts:
            return self._unknown_path()
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

    def _answer_to(self, refusal: Refusal) -> Answer:
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

    def _send(self, answer: Answer) -> None:
        body = json.dumps(answer.body).encode()
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
