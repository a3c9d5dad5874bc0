"""The HTTP server before a function is asked: what it reads, for how long, and what it says no to."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import pytest

from monitorbench.config.base import UserError
from monitorbench.judging.http import service
from monitorbench.judging.http.service import HttpAnswer, HttpServer, Limits, Refusal, listening

BODY = json.dumps({"a": 1}).encode()
HEAD = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
POST = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


class Asked:
    """A server's port, the bodies that its function was given, and what was refused."""

    def __init__(self) -> None:
        self.server: HttpServer
        self.bodies: list[bytes] = []
        self.refused: list[tuple[str, int]] = []
        self.goes_on = threading.Event()
        self.goes_on.set()

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    def echo(self, body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        self.goes_on.wait()
        self.bodies.append(body)
        return HttpAnswer(200, {"length": len(body)})

    def refuses(self, path: str, refusal: Refusal) -> HttpAnswer:
        self.refused.append((path, refusal.status))
        return HttpAnswer(refusal.status, {"error": refusal.error})


@contextmanager
def running(limits: Limits = service._USUAL) -> Iterator[Asked]:
    asked = Asked()
    posts = {"/echo": asked.echo}
    with listening(posts, "127.0.0.1", 0, None, limits=limits, refused=asked.refuses) as asked.server:
        thread = threading.Thread(target=asked.server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield asked
        finally:
            asked.server.shutdown()
            thread.join()


@pytest.fixture
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service._Handler, "timeout", 0.3)
    monkeypatch.setattr(service, "_SECONDS_TO_SEND", 0.3)
    monkeypatch.setattr(service, "_LONGEST_IDLE", 0.1)


def said(port: int, *pieces: bytes) -> bytes:
    """All that is answered, up to the connection's end or half a minute."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        for piece in pieces:
            client.sendall(piece)
        client.shutdown(socket.SHUT_WR)
        return rest(client)


def rest(client: socket.socket) -> bytes:
    return b"".join(iter(lambda: client.recv(65536), b""))


def statuses(answer: bytes) -> list[int]:
    return [int(one[:3]) for one in answer.split(b"HTTP/1.1 ")[1:]]


@pytest.mark.parametrize(
    ("first", "found"),
    [
        (b"GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(POST), [200]),
        (b"GET /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", [200]),
        (HEAD + b"Content-Length: 2\r\nContent-Length: %d\r\n\r\n{}" % (2 + len(POST)), [400]),
        (HEAD + b"Content-Length: 2\r\nX : y\r\nTransfer-Encoding: chunked\r\n\r\n{}", [400]),
        (HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", [411]),
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


def test_a_body_that_stalls_is_told_so(in_a_hurry: None):
    """If it failed: the client would wait for an answer that does not come, and no log say so."""
    with running() as asked, socket.create_connection(("127.0.0.1", asked.port), timeout=30) as client:
        client.sendall(POST[:-2])
        assert statuses(rest(client)) == [408]
        assert asked.refused == [("/echo", 408)]


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
        assert statuses(kept.recv(65536)) == [200]
        for _ in range(5):
            assert statuses(said(asked.port, large)) == [503]
        assert asked.refused == [("/echo", 503)] * 5
        assert statuses(said(asked.port, b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")) == [200]
        kept.sendall(POST)
        assert statuses(kept.recv(65536)) == [200]


def test_what_is_in_hand_at_the_end_is_answered_and_no_more():
    """If it failed: an answer would be lost at each restart, or be given when its log is closed."""
    with running() as asked, ExitStack() as stack:
        first, idle = (
            stack.enter_context(socket.create_connection(("127.0.0.1", asked.port), timeout=30))
            for _ in range(2)
        )
        idle.sendall(POST)
        assert statuses(idle.recv(65536)) == [200]
        while asked.server.in_hand._taken:  # it is answered a moment before it is out of hand
            time.sleep(0.01)
        asked.goes_on.clear()
        first.sendall(POST)
        while not asked.server.in_hand._taken:
            time.sleep(0.01)
        ending = threading.Thread(target=asked.server.drain, args=(30,))
        ending.start()
        while not asked.server.is_ending:
            time.sleep(0.01)
        idle.sendall(POST)
        assert statuses(rest(idle)) == [503]
        assert ending.is_alive()
        asked.goes_on.set()
        assert statuses(rest(first)) == [200]
        ending.join()
        assert statuses(said(asked.port, b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")) == [503]


def test_a_port_that_is_taken_is_said_to_be():
    """If it failed: a server would end with a traceback after its model was loaded."""
    with running() as asked:
        taken = listening({}, "127.0.0.1", asked.port, None)
        with pytest.raises(UserError, match=f"port={asked.port}: can't be had on 127.0.0.1"), taken:
            pass
