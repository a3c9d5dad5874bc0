"""A chat endpoint that misbehaves, as a process of its own: raw sockets, so that it may send anything.

`http://127.0.0.1:PORT/MODE/v1` misbehaves by `modes.MODES[MODE]` for about half of the requests, by their
text, until `POST /heal/MODE`. A second port is the other origin, to which redirects lead; whoever asks it
anything is told that everything is well, and `GET /strangers/MODE` says how many did.
"""

import hashlib
import json
import math
import socketserver
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from benchmarks.faults.modes import MODES
from benchmarks.faults.wire import Body, Wire, as_bytes
from benchmarks.measuring import ROOT

YES, NO = "yes", "no"


def reply(text: str) -> Body:
    """The body of a chat completion with a label and its log-probabilities."""
    p = 0.9 if text == YES else 0.2
    top = [{"token": YES, "logprob": math.log(p)}, {"token": NO, "logprob": math.log(1 - p)}]
    position = {"token": text, "logprob": math.log(max(p, 1 - p)), "top_logprobs": top}
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": text},
        "logprobs": {"content": [position]},
    }
    usage = {"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 101}
    whole = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
    return {**whole, "choices": [choice], "usage": usage}


def right_and_opposite(text: str) -> tuple[str, str]:
    """The answer that the endpoint gives about a text when it is well, and the opposite one."""
    return (YES, NO) if hashlib.sha256(text.encode()).digest()[0] % 2 else (NO, YES)


def _is_struck(text: str) -> bool:
    return bool(hashlib.sha256(text.encode()).digest()[1] % 2)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, handler: type[socketserver.BaseRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.healed: set[str] = set()
        self.strangers: Counter[str] = Counter()
        self.elsewhere = ""
        self.other: _Server | None = None

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is part of the play."""


class _Endpoint(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        path, headers = self._head()
        if path.startswith("/strangers/") and self.server.other:
            asked = self.server.other.strangers[path.removeprefix("/strangers/")]
            Wire(self.request, "", "").answer(str(asked).encode())
            return
        if path.startswith("/heal/"):
            self.server.healed.add(path.removeprefix("/heal/"))
            Wire(self.request, "", "").answer(b"{}")
            return
        body = json.loads(self.rfile.read(int(headers.get("content-length", 0))))
        text = body["messages"][-1]["content"]
        mode = path.split("/")[1]
        wire = Wire(
            self.request,
            f"{self.server.elsewhere}/{mode}/v1",
            headers["authorization"].removeprefix("Bearer "),
        )
        right, opposite = right_and_opposite(text)
        if mode in MODES and mode not in self.server.healed and _is_struck(text):
            MODES[mode](wire, reply(right), reply(opposite))
        else:
            wire.answer(as_bytes(reply(right)))

    def _head(self) -> tuple[str, dict[str, str]]:
        _, path, _ = self.rfile.readline().decode("latin-1").split(" ", 2)
        headers = {}
        while (line := self.rfile.readline().decode("latin-1").strip()) != "":
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return path, headers


class _Elsewhere(_Endpoint):
    """Another origin: nobody of ours has any business there."""

    def handle(self) -> None:
        path, _ = self._head()
        self.server.strangers[path.split("/")[1]] += 1
        Wire(self.request, "", "").answer(as_bytes(reply(NO)))


class Endpoint(NamedTuple):
    """A running server."""

    url: str

    def base(self, mode: str) -> str:
        """URL below which the server misbehaves in that mode; where no mode has that name, it behaves."""
        return f"{self.url}/{mode}/v1"

    def heal(self, mode: str) -> None:
        """Have that mode behave from now on."""
        with urllib.request.urlopen(urllib.request.Request(f"{self.url}/heal/{mode}", method="POST")):
            pass

    def strangers(self, mode: str) -> int:
        """How many requests of that mode went to the other origin."""
        with urllib.request.urlopen(f"{self.url}/strangers/{mode}") as answer:
            return int(answer.read())


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    """The server as a child process: what it holds in memory is not counted as its client's."""
    command = [sys.executable, "-m", "benchmarks.faults.endpoint_server"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        try:
            yield Endpoint(process.stdout.readline().strip())
        finally:
            process.kill()


def _main() -> None:
    here, elsewhere = _Server(_Endpoint), _Server(_Elsewhere)
    here.other, here.elsewhere = elsewhere, f"http://127.0.0.1:{elsewhere.server_address[1]}"
    for serve in (elsewhere.serve_forever, here.serve_forever):
        threading.Thread(target=serve, daemon=True).start()
    print(f"http://127.0.0.1:{here.server_address[1]}", flush=True)
    sys.stdin.read()  # until whoever started this ends, in whatever way


if __name__ == "__main__":
    _main()
