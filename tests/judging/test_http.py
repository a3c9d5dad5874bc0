"""The HTTP server before a function is asked: what it reads, for how long, and what it says no to."""

import contextlib
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import pytest

from monitorbench.config.base import UserError
from monitorbench.judging.serving import connection, http
from monitorbench.judging.serving.connection import HttpAnswer, Refusal
from monitorbench.judging.serving.http import HttpServer, Limits, listening

BODY = json.dumps({"a": 1}).encode()
HEAD = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
POST = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


class Asked:
    """A server's port, the bodies that its function was given, and what was refused."""

    def __init__(self) -> None:
        self.server: HttpServer
        self.bodies: list[bytes] = []
        self.refused: list[tuple[str, int]] = []
        self.thread: threading.Thread
        self.arrived, self.goes_on = threading.Event(), threading.Event()
        self.goes_on.set()

    @property
    def port(self) -> int:
        return self.server.port

    def echo(self, body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        self.arrived.set()
        self.goes_on.wait()
        self.bodies.append(body)
        return HttpAnswer(200, {"length": len(body)})

    def refuses(self, path: str, refusal: Refusal) -> HttpAnswer:
        self.refused.append((path, refusal.status))
        return HttpAnswer(refusal.status, {"error": refusal.error})


@contextmanager
def running(limits: Limits = http._USUAL, names: tuple[str, ...] = ()) -> Iterator[Asked]:
    asked = Asked()
    posts = {"/echo": asked.echo}
    with listening(
        posts, "127.0.0.1", 0, None, names=names, limits=limits, refused=asked.refuses
    ) as asked.server:
        asked.thread = threading.Thread(target=asked.server.serve_forever)
        asked.thread.start()
        try:
            yield asked
        finally:
            asked.server.shutdown()
            asked.thread.join()


@pytest.fixture
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "SECONDS_TO_SEND", 0.3)
    monkeypatch.setattr(http, "SECONDS_TO_LINGER", 0.1)


def said(port: int, *pieces: bytes) -> bytes:
    """All that is answered, up to the connection's end or half a minute."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        for piece in pieces:
            client.sendall(piece)
        client.shutdown(socket.SHUT_WR)
        return rest(client)


def rest(client: socket.socket) -> bytes:
    return b"".join(iter(lambda: client.recv(65536), b""))


def first(client: socket.socket) -> bytes:
    """One answer, whole."""
    answer = b""
    while not answer.endswith(b"}"):
        answer += client.recv(65536)
    return answer


def statuses(answer: bytes) -> list[int]:
    return [int(one[:3]) for one in answer.split(b"HTTP/1.1 ")[1:]]


@pytest.mark.parametrize(
    ("first", "found"),
    [
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(POST), [200]),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", [400]),
        (HEAD + b"Content-Length: 2\r\nContent-Length: %d\r\n\r\n{}" % (2 + len(POST)), [400]),
        (HEAD + b"Content-Length: 2\r\nX : y\r\nTransfer-Encoding: chunked\r\n\r\n{}", [400]),
        (HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", [400]),
    ],
)
def test_nothing_is_smuggled_behind_a_request(first: bytes, found: list[int]):
    """If it failed: behind a proxy, one user's body could be answered as another's request."""
    with running() as asked:
        assert statuses(said(asked.port, first + POST)) == found
        assert not asked.bodies
        assert statuses(said(asked.port, POST + POST)) == [200, 200]


def test_a_head_that_drips_is_cut_off(in_a_hurry: None):
    """If it failed: without a key anybody could hold all connections, a byte at a time."""
    with running() as asked, socket.create_connection(("127.0.0.1", asked.port), timeout=30) as client:
        client.sendall(b"POST /echo HTTP/1.1\r\n")
        began = time.monotonic()
        with contextlib.suppress(OSError):
            while time.monotonic() - began < 10:
                client.sendall(b"X: 1\r\n")
                client.settimeout(0.05)
                with contextlib.suppress(TimeoutError):
                    if not client.recv(1):
                        break
        assert time.monotonic() - began < 5


def test_a_head_has_a_limit():
    """If it failed: each connection could fill the memory with its headers."""
    with running() as asked:
        fits = b"".join(b"X-%d: %s\r\n" % (n, b"x" * 1000) for n in range(31))
        assert statuses(said(asked.port, HEAD + fits + b"Content-Length: 2\r\n\r\n{}")) == [200]
        assert statuses(said(asked.port, HEAD + fits * 3 + b"Content-Length: 2\r\n\r\n{}")) == [431]


def test_a_client_that_waits_to_be_asked_for_its_body_is(in_a_hurry: None):
    """If it failed: clients that send `Expect` would wait a second each time, or for ever."""
    expects = HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    with running(Limits(most_bytes=1024)) as asked:
        with socket.create_connection(("127.0.0.1", asked.port), timeout=30) as client:
            client.sendall(expects % len(BODY))
            assert statuses(client.recv(100)) == [100]
            client.sendall(BODY)
            client.shutdown(socket.SHUT_WR)
            assert statuses(rest(client)) == [200]
        with socket.create_connection(("127.0.0.1", asked.port), timeout=30) as client:
            client.sendall(expects % 2000)
            assert statuses(rest(client)) == [413], "not asked for, to be refused then"


def test_who_is_one_too_many_is_told_so_whatever_it_sends():
    """If it failed: a client in a queue would see a broken pipe, which some take for a pass."""
    large = HEAD + b"Content-Length: 3000000\r\n\r\n" + b"x" * 3_000_000
    with running(Limits(connections=1)) as asked, ExitStack() as stack:
        kept = stack.enter_context(socket.create_connection(("127.0.0.1", asked.port), timeout=30))
        kept.sendall(POST)
        assert statuses(first(kept)) == [200]
        for _ in range(5):
            assert statuses(said(asked.port, large)) == [503]
        assert asked.refused == [("/echo", 503)] * 5
        assert statuses(said(asked.port, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")) == [200]
        kept.sendall(POST)
        assert statuses(first(kept)) == [200]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 404),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 80 + b"\r\n\r\n", 400),
        (HEAD + b"X: a\rContent-Length: 3\r\nContent-Length: 2\r\n\r\n{}", 400),
        (HEAD + b"X: a\r\n folded\r\nContent-Length: 2\r\n\r\n{}", 200),
        (HEAD + b"Content-Length: -1\r\n\r\n", 400),
        (HEAD + b"Content-Length: 99999999999999\r\n\r\n", 413),
        (HEAD + b"Content-Length: 3\r\n\r\n{}", 400),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", 400),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 200),
        (b"BREW /echo HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"POST /else HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n\r\n", 415),
        (b"POST /echo HTTP/1.0\r\nContent-Type: application/json\r\n\r\n", 403),
    ],
)
def test_what_is_no_request_of_ours_is_answered_with_a_status_and_json(sent: bytes, status: int):
    """If it failed: a proxy would wait, or take silence or a page of HTML for an answer."""
    with running() as asked:
        answer = said(asked.port, sent)
        assert statuses(answer)[0] == status
        head, _, body = answer.partition(b"\r\n\r\n")
        assert b"application/json" in head.lower()
        assert json.loads(body)
        assert statuses(said(asked.port, POST)) == [200]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ("Host: 127.0.0.1", 200),
        ("Host: LocalHost:80", 200),
        ("Host: [::1]:80", 200),
        ("Host: 192.168.1.7:8000", 200),
        ("Host: judge.example:8000", 200),
        ("Host: evil.example", 403),
        ("Host: localhost.evil.example", 403),
        ("Host: 127.0.0.1.evil.example:80", 403),
        ("Host: ", 403),
        ("Host: localhost\r\nOrigin: http://localhost", 200),
        ("Host: localhost\r\nOrigin: http://evil.example", 403),
        ("Host: localhost\r\nOrigin: null", 403),
        ("Host: localhost\r\nSec-Fetch-Site: cross-site", 403),
        ("Host: localhost\r\nSec-Fetch-Site: same-site", 403),
        ("Host: localhost\r\nSec-Fetch-Site: same-origin", 200),
    ],
)
def test_a_page_in_a_browser_gets_no_answer(headers: str, status: int):
    """If it failed: any web page could ask for scores, by a name of its own that leads here."""
    with running(names=("judge.example",)) as asked:
        for path in ("POST /echo", "GET /health"):
            head = f"{path} HTTP/1.1\r\n{headers}\r\nContent-Type: application/json\r\n"
            assert statuses(said(asked.port, f"{head}Content-Length: 2\r\n\r\n{{}}".encode())) == [status]
        assert len(asked.bodies) == (status == 200)


def test_three_hundred_connections_at_once_are_each_answered():
    """If it failed: in a burst, connections would be reset, which some clients take for a pass."""
    with running(Limits(at_once=64)) as asked, ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", asked.port), timeout=30))
            for _ in range(300)
        ]
        for client in clients:
            client.sendall(POST)
        found = Counter(status for client in clients for status in statuses(first(client)))
    assert set(found) <= {200, 429}
    assert found.total() == 300


def test_what_is_in_hand_at_the_end_is_answered_and_no_more():
    """If it failed: an answer would be lost at each restart, or be given when its log is closed."""
    with running() as asked, ExitStack() as stack:
        busy, idle = (
            stack.enter_context(socket.create_connection(("127.0.0.1", asked.port), timeout=30))
            for _ in range(2)
        )
        idle.sendall(POST)
        assert statuses(first(idle)) == [200]
        asked.goes_on.clear()
        asked.arrived.clear()
        busy.sendall(POST)
        asked.arrived.wait()
        asked.server.shutdown()
        assert rest(idle) == b"", "closed"
        assert asked.thread.is_alive()
        asked.goes_on.set()
        assert statuses(rest(busy)) == [200]
        asked.thread.join()
        with pytest.raises(ConnectionRefusedError):
            said(asked.port, POST)


def test_a_port_that_is_taken_is_said_to_be():
    """If it failed: a server would end with a traceback after its model was loaded."""
    with running() as asked:
        taken = listening({}, "127.0.0.1", asked.port, None)
        with pytest.raises(UserError, match=f"port={asked.port}: can't be had on 127.0.0.1"), taken:
            pass
