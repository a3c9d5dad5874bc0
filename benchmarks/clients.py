"""Clients of a server on the loopback: many at once, load for a while, and what may never be answered."""

import http.client
import json
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from benchmarks.judged import body_of
from benchmarks.measuring import Ratio
from monitorbench.guardrail.decision import read_lines
from monitorbench.guardrail.service import PATH
from monitorbench.records import Sample

TIMEOUT = 120.0
BROKEN = (b"{", b'{"request": "a"}', b"[" * 5000, b"\xff\xfe")
LARGE = json.dumps({"request": "a", "response": "x" * 20 * 2**20}).encode()
ODD_EACH = 25
"""Every so many requests of the load one is malformed, and the first of every second client is large."""


class Reply(NamedTuple):
    """One request as its client saw it."""

    seconds: float
    status: int
    """0: the connection broke."""
    answer: dict[str, Any]

    @property
    def passed_unscored(self) -> bool:
        """Whether the guardrail let the request through without a score, which must never be."""
        return self.answer.get("action") == "pass" and self.answer.get("score") is None


@contextmanager
def running(server: Any) -> Iterator[int]:
    """Serve in a thread of its own while the body runs; yields the port."""
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.port
    finally:
        server.shutdown()
        thread.join()


def ask(port: int, body: bytes, path: str = PATH) -> Reply:
    """Send one request on a connection of its own; timed from opening it to the answer's last byte."""
    began = time.perf_counter()
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=2 * TIMEOUT)
    try:
        client.request("POST", path, body, {"Content-Type": "application/json"})
        answer = client.getresponse()
        content = answer.read()
        seconds = time.perf_counter() - began
        return Reply(seconds, answer.status, json.loads(content))
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Reply(time.perf_counter() - began, 0, {"error": repr(error)})
    finally:
        client.close()


def ask_at_once(port: int, samples: Sequence[Sample], clients: int) -> list[Reply]:
    """Send as many requests as there are clients, which begin together."""
    together = threading.Barrier(clients)

    def client(number: int) -> Reply:
        together.wait()
        return ask(port, body_of(samples[number % len(samples)]))

    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(client, range(clients)))


def load(port: int, samples: Sequence[Sample], clients: int, seconds: float) -> list[Reply]:
    """Have clients ask without a pause, now and then with what is no request."""
    until = time.monotonic() + seconds

    def client(first: int) -> list[Reply]:
        replies = [ask(port, LARGE)] if first % 2 == 0 else []
        number = first
        while time.monotonic() < until:
            is_odd = number % ODD_EACH == 0
            body = BROKEN[number % len(BROKEN)] if is_odd else body_of(samples[number % len(samples)])
            replies.append(ask(port, body))
            number += 1
        return replies

    with ThreadPoolExecutor(clients) as pool:
        return [reply for replies in pool.map(client, range(clients)) for reply in replies]


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Percentiles in milliseconds; NaN where there are no times."""
    times = np.array(seconds or [np.nan]) * 1000
    return {f"p{share} ms": float(np.percentile(times, share)) for share in (50, 95, 99)}


def answered(replies: Sequence[Reply]) -> list[float]:
    """Seconds of the requests that were answered with status 200."""
    return [reply.seconds for reply in replies if reply.status == 200]


def safety_ratios(replies: Sequence[Reply], log: Any, n_others: int = 0) -> dict[str, Ratio]:
    """Count what must not be; `n_others`: answers beside these that the decision log has a line for, too."""
    unlogged = len(answered(replies)) + n_others - len(read_lines(log))
    return {
        "broken connections": Ratio(sum(reply.status == 0 for reply in replies), most=0),
        "answers without a line in the log": Ratio(unlogged, most=0),
        "passed without a score": Ratio(sum(reply.passed_unscored for reply in replies), most=0),
    }
