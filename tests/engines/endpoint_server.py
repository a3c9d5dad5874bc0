"""A chat endpoint on this machine that misbehaves as it is told to: real HTTP, real sockets.

What it answers is a function of the last message's text and of how often that was asked before.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from local_server import LocalServer, QuietHandler, running


@dataclass(frozen=True)
class Answer:
    """`body` as it goes over the wire; `after` seconds; `how` it is sent."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    after: float = 0.0
    how: str = "whole"
    """`whole`, `cut` before the first byte, `half` of the body, or `trickle`: blanks without end."""


@dataclass(frozen=True)
class Asked:
    text: str
    at: float
    headers: Mapping[str, str]
    body: Mapping[str, Any]


Script = Callable[[str, int], Answer]


class EndpointServer(LocalServer):
    request_queue_size = 256

    def __init__(self, script: Script) -> None:
        super().__init__(_Handler)
        self.script = script
        self.asked: list[Asked] = []
        self.in_flight = self.most_in_flight = self.connections = 0
        self.lock = threading.Lock()
        self.over = threading.Event()
        """Ends every wait of an answer."""
        self._times: Counter[str] = Counter()

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def answer(self, asked: Asked) -> Answer:
        with self.lock:
            self.asked.append(asked)
            before = self._times[asked.text]
            self._times[asked.text] += 1
        return self.script(asked.text, before)


class _Handler(QuietHandler):
    server: EndpointServer
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        with self.server.lock:
            self.server.connections += 1

    def finish(self) -> None:
        with self.server.lock:
            self.server.connections -= 1
        super().finish()

    def answer(self, body: bytes) -> None:
        request = json.loads(body)
        text = (
            request["messages"][-1]["content"]
            if "messages" in request
            else json.dumps(request.get("prompt", request.get("input")))
        )
        asked = Asked(text, time.monotonic(), self._headers(), request)
        with self.server.lock:
            self.server.in_flight += 1
            self.server.most_in_flight = max(self.server.most_in_flight, self.server.in_flight)
        try:
            answer = self.server.answer(asked)
            self.server.over.wait(answer.after)
        finally:
            with self.server.lock:
                self.server.in_flight -= 1
        asked_for = request.get("model", "").encode()
        answer = replace(answer, body=answer.body.replace(b'"model": "@asked"', b'"model": "%s"' % asked_for))
        self.close_connection = answer.how != "whole"
        if answer.how == "cut":
            return
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        endless = answer.how == "trickle"
        self.send_header("Content-Length", str(10**9 if endless else len(answer.body)))
        self.end_headers()
        if answer.how == "half":
            self.wfile.write(answer.body[: len(answer.body) // 2])
            return
        self.wfile.write(answer.body)
        while endless and not self.server.over.wait(0.02):
            self.wfile.write(b"\n")

    def _headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}


def chat(
    text: str | None = "no",
    *,
    finish: str | None = "stop",
    logprobs: Mapping[str, float] | Sequence[tuple[str, Mapping[str, float]]] | None = None,
    usage: Mapping[str, Any] | None = None,
    **message: Any,
) -> bytes:
    """The body of a chat completion. `logprobs` of the first position, or (token, those) of each."""
    positions = [(text or "", logprobs)] if isinstance(logprobs, Mapping) else logprobs
    content = [
        {
            "token": token,
            "logprob": top.get(token, -1.0),
            "top_logprobs": [{"token": t, "logprob": value} for t, value in top.items()],
        }
        for token, top in positions or ()
    ]
    choice = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": text, **message},
        "logprobs": None if logprobs is None else {"content": content},
    }
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "@asked", "choices": [choice]}
    return json.dumps({**body, "usage": usage or {"prompt_tokens": 10, "completion_tokens": 1}}).encode()


@contextmanager
def serving(script: Script) -> Iterator[EndpointServer]:
    """The server on a free port, in a thread."""
    with running(EndpointServer(script)) as server:
        try:
            yield server
        finally:
            server.over.set()
