"""Every way in which a request ends without a score, in one table, over both APIs and all that can be set.

With `fails: closed` none passes; what passes with `fails: open` and in shadow is in a log all the same.
"""

import errno
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scripted_monitor import NAME, Running, by_number, monitor_of, running, scripted, threshold, verdict

from monitorbench.guardrail.decision import read_lines
from monitorbench.guardrail.service import PATH
from monitorbench.interop import litellm
from monitorbench.judging.serving import connection
from monitorbench.judging.serving import http as server
from monitorbench.records import Sample, Verdict
from monitorbench.scoring.operating_point import threshold_point

JSON = {"Content-Type": "application/json"}
MODES = {
    "closed": ({}, "flag"),
    "open": ({"fails": "open"}, "pass"),
    "shadow": ({"shadow": True}, "pass"),
}
"""Settings, and what is answered where there is no score."""
PROXYS = {"flag": "BLOCKED", "pass": "NONE"}
CATEGORIES = threshold_point(threshold(0.2, "sycophancy_bias"), threshold(None, "safety_permission"))


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
    category: str | None = None
    """Of a request to a point that has a threshold for some categories alone."""
    cut: str = ""
    """The body ends too soon: `length` and `chunked` where its sender ends, `waits` where it doesn't."""
    around: Callable[[Running, pytest.MonkeyPatch], Any] | None = None
    """A context in which it is asked."""
    lasts: bool = False
    """Whether no later request has a score, either."""
    key: str | None = None
    is_logged: bool = True
    """Whether a log has a line of it."""


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
        client.submit(served.post, _body(PATH, "hangs", None))
        assert BEGUN.wait(60)
        try:
            yield
        finally:
            HANGS.set()


@contextmanager
def _raises(name: str, error: Exception, patched: pytest.MonkeyPatch) -> Iterator[None]:
    def breaks(*_: object, **__: object) -> None:
        raise error

    with patched.context() as here:
        here.setattr(f"monitorbench.{name}", breaks)
        yield


def _full_disk(served: Running, patched: pytest.MonkeyPatch) -> Any:
    return _raises("runs.keyed_log.os.write", OSError(errno.ENOSPC, "No space left on device"), patched)


def _a_fault_of_ours(served: Running, patched: pytest.MonkeyPatch) -> Any:
    return _raises("guardrail.service.DecisionLine", ZeroDivisionError(), patched)


@contextmanager
def _an_end(served: Running, _: pytest.MonkeyPatch) -> Iterator[None]:
    """The server's end, while this one waits behind one that hangs."""
    (runner,) = served.guardrail._monitor._runners.values()
    with _one_that_hangs(served, _), ThreadPoolExecutor(1) as ending:
        threading.Timer(0.3, ending.submit, (runner.close,)).start()
        yield
        HANGS.set()


HANGS, BEGUN = threading.Event(), threading.Event()
DEEP = b"[" * 5000 + b"]" * 5000
WAYS = [
    Way("the judge gives no label", "no number", error="no_label"),
    Way("the model breaks", "die", error="failed"),
    Way("the endpoint is gone", "lost", error="http_error"),
    Way("the score is no number", "nan", error=""),
    Way("a prompt without its middle", "cut", error="too_long"),
    Way("too late", "hangs", error="timed_out", settings={"timeout_seconds": 0.2}),
    Way(
        "behind one that hangs", error="timed_out", settings={"timeout_seconds": 0.2}, around=_one_that_hangs
    ),
    Way("the server ends", error="failed", around=_an_end, lasts=True),
    Way("too many in hand", status=429, error="too many", settings={"at_once": 1}, around=_one_that_hangs),
    Way("too many connections", status=503, error="too many", settings={"at_once": 1}, around=_connections),
    Way("a full disk", error="not_logged", around=_full_disk, is_logged=False),
    Way("a fault of ours", status=500, error="log says why", around=_a_fault_of_ours),
    Way("a category without a threshold", error="no_threshold", category="safety_permission"),
    Way("a category that nobody calibrated", status=400, error="category", category="specification_gaming"),
    Way("no category, where each has its own", status=400, error="sycophancy_bias, safety", category=""),
    Way("a category that is no name", status=400, error="category", category="NO NAME"),
    Way("no body", b"", 400, "no JSON"),
    Way("no JSON", b"{", 400, "no JSON"),
    Way("half a UTF-8 letter", b'{"request": "a", "response": "\xc3"}', 400, "no JSON"),
    Way("a field twice", b'{"request": "a", "request": "b", "response": "c"}', 400, "'request' twice"),
    Way("a field missing", b'{"request": "a"}', 400, "response: missing"),
    Way(
        "a field too many",
        b'{"request": "a", "response": "b", "threshold": 1}',
        400,
        "'threshold': no such field",
    ),
    Way(
        "no answer in it",
        b'{"trajectory": [{"role": "user", "content": "a"}]}',
        400,
        "no message of an assistant",
    ),
    Way(
        "no role",
        b'{"request": "a", "response": [{"role": "robot", "content": "a"}]}',
        400,
        "response.0.role",
    ),
    Way("nested without end", DEEP, 400, ""),
    Way("nothing in it", "  ", 400, "nothing in it"),
    Way("too large", "x" * 5 * 2**20, 413, "expected at most"),
    Way("a body cut off", status=400, error="ended within the body", cut="length"),
    Way("a chunked body cut off", status=400, error="ended within the body", cut="chunked"),
    Way("a body that does not end", status=408, error="not whole within", cut="waits"),
    Way("no key", status=401, error="no key", key="secret", is_logged=False),
    Way("another Host", status=403, error="Host", headers={"Host": "evil.example"}),
    Way("a page", status=403, error="Origin", headers={"Origin": "http://evil.example"}),
    Way("no JSON type", status=415, error="application/json", headers={"Content-Type": "text/plain"}),
    # Longer by a little, so that it arrives at once: a part of it would be no HTTP request.
    Way("a head too long", status=431, error="head", headers={"X": "x" * connection.MOST_HEAD}),
    Way("two lengths", status=400, error="", headers={"Transfer-Encoding": "chunked", "Content-Length": "3"}),
    Way("another method", status=405, error="not here", method="PUT", is_logged=False),
]


def _judged(sample: Sample) -> Verdict:
    if sample.response[-1].content == "hangs":
        BEGUN.set()
        HANGS.wait(60)
        return verdict(0.1)
    if sample.response[-1].content == "cut":
        return verdict(0.1).model_copy(update={"truncated_tokens": 5})
    return by_number(sample)


def _body(path: str, response: Any, category: str | None) -> bytes:
    if isinstance(response, bytes):
        return response
    named = {"category": category} if category is not None else {}
    if path == PATH:
        return json.dumps({"request": "Why?", "response": response, **named}).encode()
    asked = [{"role": "user", "content": "Why?"}]
    sent = {"input_type": "response", "texts": [response], "structured_messages": asked}
    return json.dumps({**sent, "additional_provider_specific_params": named}).encode()


def _ask(served: Running, path: str, way: Way) -> tuple[int, dict[str, Any]]:
    body = _body(path, way.response, way.category)
    if way.cut:
        return _ask_in_part(served, path, way.cut, body)
    headers = JSON | way.headers | ({"x-api-key": "secreT"} if way.key else {})
    client = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    try:
        client.request(way.method, path, body, headers)
        answer = client.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        client.close()


def _ask_in_part(served: Running, path: str, how: str, body: bytes) -> tuple[int, dict[str, Any]]:
    """Send all of a body, and say that there is more."""
    pieces = f"Transfer-Encoding: chunked\r\n\r\n{len(body):x}\r\n".encode() + body + b"\r\n"
    length = f"Content-Length: {len(body) + 9}\r\n\r\n".encode() + body
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n".encode()
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as client:
        client.sendall(head + (pieces if how == "chunked" else length))
        if how != "waits":
            client.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    first, _, content = answer.partition(b"\r\n\r\n")
    return int(first.split()[1]), json.loads(content)


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Running]]:
    """A server for each mode, for all requests that want nothing of their own of it."""
    with ExitStack() as stack:
        opened: dict[str, Running] = {}

        def of_mode(mode: str) -> Running:
            if mode not in opened:
                folder = tmp_path_factory.mktemp(mode)
                opened[mode] = stack.enter_context(_served(Way("usual"), mode, folder))
            return opened[mode]

        yield of_mode


@contextmanager
def _served(way: Way, mode: str, folder: Path) -> Iterator[Running]:
    point = None if way.category is None else CATEGORIES
    settings, _ = MODES[mode]
    with (
        monitor_of(runners={NAME: scripted(_judged)}, point=point) as monitor,
        running(monitor, folder, way.key, **settings, **way.settings) as served,
    ):
        yield served


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_what_has_no_score_is_answered_as_set(
    way: Way,
    mode: str,
    usual: Callable[[str], Running],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    """If it failed: this would be the way around the guardrail, or a shadow would stop what is real."""
    monkeypatch.setattr(server, "SECONDS_TO_LINGER", 0.1)
    monkeypatch.setattr(connection, "SECONDS_TO_SEND", 0.3 if way.cut else 30)
    has_its_own = way.settings or way.key or way.cut or way.around or way.lasts or way.category is not None
    with ExitStack() as stack:
        served = None if has_its_own else usual(mode)
        for path in (PATH, litellm.PATH):
            if served is None or way.lasts:
                served = stack.enter_context(_served(way, mode, tmp_path / path[1:5]))
            before = _logged(served)
            _ask_and_recover(way, mode, path, served, monkeypatch)
            decisions, refusals = (
                lines[len(known) :] for lines, known in zip(_logged(served), before, strict=True)
            )
            _look_into_the_logs(decisions, refusals, way, MODES[mode][1])


def _ask_and_recover(
    way: Way, mode: str, path: str, served: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ask without a score, and then for what has one."""
    action = MODES[mode][1]
    HANGS.clear()
    with ExitStack() as stack:
        if way.around is not None:
            stack.enter_context(way.around(served, monkeypatch))
        status, answer = _ask(served, path, way)
        HANGS.set()
        is_proxys = path == litellm.PATH
        lets_through = is_proxys and action == "pass" and status == 200 != way.status
        assert status == way.status or (lets_through and way.status in (400, 408, 413, 429, 500, 503))
        if way.method == "POST":
            assert answer["action"] == (PROXYS[action] if is_proxys else action)
        said = str(answer.get("error") or answer.get("blocked_reason") or "")
        assert "\n" not in said
        assert way.error in said or is_proxys
    if not (way.key or way.lasts):
        fine = Way("in order", category=None if way.category is None else "sycophancy_bias")
        assert _ask(served, path, fine)[1]["action"] in ("pass", "NONE")
        unsafe = Way("above", "0.9", category=fine.category)
        alarm = _ask(served, path, unsafe)[1]["action"]
        assert alarm in (("pass", "NONE") if mode == "shadow" else ("flag", "BLOCKED"))


def _logged(served: Running) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The lines of both logs so far, decisions and refusals."""
    return (read_lines(served.folder / "decisions.jsonl"), read_lines(served.folder / "refusals.jsonl"))


def _look_into_the_logs(
    decisions: Sequence[dict[str, Any]], refusals: Sequence[dict[str, Any]], way: Way, action: str
) -> None:
    """What came to no score has its line, in one log or in the other."""
    unscored = [line for line in decisions if line["flagged"] is None]
    if way.status != 200:
        answered = [(line["status"], line["answered"]) for line in refusals]
        assert (answered, unscored) == ([(way.status, action)] * way.is_logged, [])
        return
    assert (bool(unscored), refusals) == (way.is_logged, [])
    for line in unscored:
        decided = "pass" if line["fails"] == "open" else "flag"
        assert (line["decided"], line["answered"]) == (decided, action)
        assert way.error in line["error"]
