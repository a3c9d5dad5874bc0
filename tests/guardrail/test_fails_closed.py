"""Every way in which a request ends without a score, in one table: with `fails: closed` none passes."""

import errno
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scripted_monitor import Running, by_number, monitor_of, running, threshold

from monitorbench.guardrail.service import PATH
from monitorbench.interop.guardrail import litellm
from monitorbench.judging.serving import connection
from monitorbench.judging.serving import http as server
from monitorbench.records import Sample, Verdict
from monitorbench.scoring.operating_point import threshold_point

JSON = {"Content-Type": "application/json"}


class Way(NamedTuple):
    """A request, and how it ends."""

    name: str
    response: Any = "0.1"
    """The judged response, which would pass; bytes are a whole body."""
    status: int = 200
    error: str = ""
    """A part of what is said."""
    headers: dict[str, str] = {}  # noqa: RUF012 (a NamedTuple's default, never written to)
    settings: dict[str, Any] = {}  # noqa: RUF012 (likewise)
    method: str = "POST"
    around: Callable[[Running, pytest.MonkeyPatch], Any] | None = None
    """A context in which it is asked."""


@contextmanager
def _connections(served: Running, _: pytest.MonkeyPatch) -> Iterator[None]:
    with ExitStack() as stack:
        for _n in range(4):
            stack.enter_context(socket.create_connection(("127.0.0.1", served.port)))
        yield


@contextmanager
def _one_that_hangs(served: Running, _: pytest.MonkeyPatch) -> Iterator[None]:
    HANGS.clear()
    BEGUN.clear()
    with ThreadPoolExecutor(1) as client:
        client.submit(served.post, _body(PATH, "hangs"))
        assert BEGUN.wait(60)
        try:
            yield
        finally:
            HANGS.set()


@contextmanager
def _full_disk(served: Running, patched: pytest.MonkeyPatch) -> Iterator[None]:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with patched.context() as here:
        here.setattr("monitorbench.runs.keyed_log.os.write", full)
        yield


@contextmanager
def _a_fault_of_ours(served: Running, patched: pytest.MonkeyPatch) -> Iterator[None]:
    def breaks(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    with patched.context() as here:
        here.setattr("monitorbench.guardrail.service.DecisionLine", breaks)
        yield


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "SECONDS_TO_LINGER", 0.1)


HANGS, BEGUN = threading.Event(), threading.Event()
DEEP = b"[" * 5000 + b"]" * 5000
WAYS = [
    Way("the judge gives no label", "no number", error="no_label"),
    Way("the model breaks", "die", error="failed"),
    Way("the endpoint is gone", "lost", error="http_error"),
    Way("the score is no number", "nan", error=""),
    Way("too late", "hangs", error="timed_out", settings={"timeout_seconds": 0.2}),
    Way(
        "behind one that hangs", error="timed_out", settings={"timeout_seconds": 0.2}, around=_one_that_hangs
    ),
    Way("too many in hand", status=429, error="too many", settings={"at_once": 1}, around=_one_that_hangs),
    Way("too many connections", status=503, error="too many", settings={"at_once": 1}, around=_connections),
    Way("a full disk", error="not_logged", around=_full_disk),
    Way("a fault of ours", status=500, error="log says why", around=_a_fault_of_ours),
    Way("no body", b"", 400, "no JSON"),
    Way("no JSON", b"{", 400, "no JSON"),
    Way("half a UTF-8 letter", b'{"request": "a", "response": "\xc3"}', 400, "no JSON"),
    Way("a field twice", b'{"request": "a", "request": "b", "response": "c"}', 400, "'request' twice"),
    Way("nested without end", DEEP, 400, ""),
    Way("nothing in it", "  ", 400, "nothing in it"),
    Way("too large", "x" * 5 * 2**20, 413, "expected at most"),
    Way("another Host", status=403, error="Host", headers={"Host": "evil.example"}),
    Way("a page", status=403, error="Origin", headers={"Origin": "http://evil.example"}),
    Way("no JSON type", status=415, error="application/json", headers={"Content-Type": "text/plain"}),
    Way("a head too long", status=431, error="head", headers={"X": "x" * 2**16}),
    Way("two lengths", status=400, error="", headers={"Transfer-Encoding": "chunked", "Content-Length": "3"}),
    Way("another method", status=405, error="not here", method="PUT"),
]


def _judged(sample: Sample) -> Verdict:
    if sample.response[-1].content == "hangs":
        BEGUN.set()
        HANGS.wait(60)
    return by_number(sample)


def _body(path: str, response: Any) -> bytes:
    if isinstance(response, bytes):
        return response
    if path == PATH:
        return json.dumps({"request": "Why?", "response": response}).encode()
    sent = {"input_type": "response", "texts": [response], "structured_messages": [_ASKED]}
    return json.dumps(sent).encode()


_ASKED = {"role": "user", "content": "Why?"}


def _ask(served: Running, path: str, way: Way) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    try:
        connection.request(way.method, path, _body(path, way.response), JSON | way.headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


@pytest.mark.parametrize("path", [PATH, litellm.PATH], ids=["own", "litellm"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_what_has_no_score_is_not_passed(
    way: Way, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """If it failed: this would be the way around the guardrail."""
    HANGS.clear()
    with (
        monitor_of(_judged) as monitor,
        running(monitor, tmp_path, **way.settings) as served,
        ExitStack() as s,
    ):
        if way.around is not None:
            s.enter_context(way.around(served, monkeypatch))
        status, answer = _ask(served, path, way)
        HANGS.set()
        assert answer.get("action") not in ("pass", "NONE")
        assert status == way.status
        if path == PATH:
            assert way.error in str(answer["error"])
        s.close()
        assert _ask(served, path, Way("in order"))[1]["action"] in ("pass", "NONE")


def test_a_body_that_ends_too_soon_is_not_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """If it failed: what a broken connection left out would be taken for all that was said."""
    monkeypatch.setattr(connection, "SECONDS_TO_SEND", 0.3)
    whole = _body(PATH, "0.1")
    head = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    length = f"Content-Length: {len(whole) + 9}\r\n\r\n"
    pieces = f"Transfer-Encoding: chunked\r\n\r\n{len(whole):x}\r\n"
    with monitor_of() as monitor, running(monitor, tmp_path) as served:
        for sent, ends in (
            (f"{head}{length}".encode() + whole, True),
            (f"{head}{length}".encode() + whole, False),
            (f"{head}{pieces}".encode() + whole + b"\r\n", True),
            (f"{head}{pieces}".encode() + whole + b"\r\n", False),
        ):
            with socket.create_connection(("127.0.0.1", served.port), timeout=30) as client:
                client.sendall(sent)
                if ends:
                    client.shutdown(socket.SHUT_WR)
                answer = b"".join(iter(lambda client=client: client.recv(65536), b""))
            assert answer.startswith(b"HTTP/1.1 400 " if ends else b"HTTP/1.1 408 ")
            assert json.loads(answer.partition(b"\r\n\r\n")[2])["action"] == "flag"


@pytest.mark.parametrize("response", ["0.1", "no number"], ids=["a score below the threshold", "no score"])
def test_a_category_without_a_threshold_is_not_passed(response: str, tmp_path: Path):
    """If it failed: naming another category would be the way around a threshold."""
    point = threshold_point(threshold(0.2, "sycophancy_bias"), threshold(None, "safety_permission"))
    with monitor_of(point=point) as monitor, running(monitor, tmp_path) as served:
        for category in ("safety_permission", "specification_gaming", "", None):
            body = {"request": "Why?", "response": response, "category": category}
            assert served.post(body)[1]["action"] == "flag"
