"""Both batch APIs on this machine, which misbehave as they are told to: real HTTP, real sockets."""

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email import message_from_bytes
from typing import Any

from local_server import LocalServer, QuietHandler, running

Says = Callable[[str], Any]
"""From a request's text to its answer: a word, or `errored`, `expired`, `canceled`, `refused`."""


class BatchServer(LocalServer):
    def __init__(self, says: Says) -> None:
        super().__init__(_Handler)
        self.says = says
        self.batches: list[dict[str, Any]] = []
        self.files: dict[str, bytes] = {}
        self.polls = 0
        self.polls_until_done = 2
        self.calls: list[tuple[str, str]] = []
        self.largest_body = 0
        self.headers_seen: list[Mapping[str, str]] = []
        self.trouble: Callable[[str, str, int], str] = lambda method, path, before: ""
        """What goes wrong with a call that was made so often before: `cut` before it is done, `cut_after`,
        `busy` (429), `broken` (500) before or `broken_after`, `half` of the body, `no_json`, or nothing."""
        self.spoil: Callable[[list[bytes]], list[bytes]] = lambda lines: lines
        """What becomes of the lines of results."""
        self.refuses: tuple[int, str] | None = None
        self.fails = ""
        self.model = "m"
        self.lock = threading.Lock()

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def add(self, requests: list[dict[str, Any]], metadata: Mapping[str, str]) -> dict[str, Any]:
        batch = {
            "id": f"batch-{len(self.batches)}",
            "requests": requests,
            "metadata": metadata,
            "at": time.time(),
            "polls": 0,
        }
        self.batches.append(batch)
        return batch

    @property
    def keys(self) -> list[str]:
        """Every custom_id that was ever handed in."""
        return [one["custom_id"] for batch in self.batches for one in batch["requests"]]


class _Handler(QuietHandler):
    server: BatchServer
    protocol_version = "HTTP/1.1"

    def answer(self, body: bytes) -> None:
        server, method, path = self.server, self.command, self.path.removeprefix("/v1/").partition("?")[0]
        with server.lock:
            before = server.calls.count((method, path))
            server.calls.append((method, path))
            server.largest_body = max(server.largest_body, len(body))
            server.headers_seen.append({name.lower(): value for name, value in self.headers.items()})
            trouble = server.trouble(method, path, before)
            if trouble == "cut":
                self.close_connection = True
                return
            if trouble in ("busy", "broken"):
                self._send(429 if trouble == "busy" else 500, b'{"error": {"message": "later"}}')
                return
            if server.refuses and method == "POST":
                self._send(server.refuses[0], server.refuses[1].encode())
                return
            status, content = self._route(method, path, body)
        if trouble == "cut_after":
            self.close_connection = True
            return
        if trouble == "broken_after":
            status, content = 500, b"{}"
        if trouble == "no_json":
            content = b"<html>"
        self._send(status, content, half=trouble == "half")

    def _send(self, status: int, content: bytes, *, half: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if half else content)
        self.close_connection = self.close_connection or half

    def _route(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        server = self.server
        parts = path.split("/")
        if path == "files":
            kind = b"Content-Type: " + self.headers["Content-Type"].encode()
            form = message_from_bytes(kind + b"\r\n\r\n" + body).get_payload()
            (content,) = (one.get_payload(decode=True) for one in form if one.get_filename())  # type: ignore[union-attr]
            name = f"file-{len(server.files)}"
            server.files[name] = content  # type: ignore[assignment]
            return 200, json.dumps({"id": name}).encode()
        if parts[0] == "files":
            return 200, server.files[parts[1]]
        anthropic = parts[0] == "messages"
        rest = parts[2:] if anthropic else parts[1:]
        shown = self._anthropic if anthropic else self._openai
        if not rest and method == "POST":
            given = json.loads(body)
            requests = given["requests"] if anthropic else self._uploaded(given["input_file_id"])
            batch = server.add(requests, given.get("metadata", {}))
            return 200, json.dumps(shown(batch)).encode()
        if not rest:
            found = [shown(batch) for batch in reversed(server.batches)]
            return 200, json.dumps({"data": found, "has_more": False}).encode()
        batch = next(one for one in server.batches if one["id"] == rest[0])
        if rest[1:] == ["results"]:
            return 200, self._lines(batch, anthropic=True)
        batch["polls"] += 1
        return 200, json.dumps(shown(batch)).encode()

    def _uploaded(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.server.files[name].splitlines()]

    def _done(self, batch: dict[str, Any]) -> bool:
        return bool(batch["polls"] >= self.server.polls_until_done)

    def _openai(self, batch: dict[str, Any]) -> dict[str, Any]:
        n, done = len(batch["requests"]), self._done(batch)
        shown = {
            "id": batch["id"],
            "created_at": int(batch["at"]),
            "metadata": batch["metadata"],
            "status": "completed" if done else "in_progress",
            "request_counts": {"total": n, "completed": n if done else 0},
        }
        if done and self.server.fails:
            return shown | {"status": "failed", "errors": {"data": [{"message": self.server.fails}]}}
        if done:
            self.server.files[f"out-{batch['id']}"] = self._lines(batch, anthropic=False)
            shown |= {"output_file_id": f"out-{batch['id']}", "error_file_id": None}
        return shown

    def _anthropic(self, batch: dict[str, Any]) -> dict[str, Any]:
        n, done = len(batch["requests"]), self._done(batch)
        created = time.strftime("%Y-%m-%dT%H:%M:%S.000000+00:00", time.gmtime(batch["at"]))
        results = f"{self.server.base_url}/messages/batches/{batch['id']}/results" if done else None
        return {
            "id": batch["id"],
            "created_at": created,
            "processing_status": "ended" if done else "in_progress",
            "request_counts": {"processing": 0 if done else n, "succeeded": n if done else 0},
            "results_url": results,
        }

    def _lines(self, batch: dict[str, Any], *, anthropic: bool) -> bytes:
        lines = []
        for one in batch["requests"]:
            sent = one["params"] if anthropic else one["body"]
            said = self.server.says(sent["messages"][-1]["content"])
            result = self._message(said) if anthropic else self._completion(said)
            lines.append(json.dumps({"custom_id": one["custom_id"], **result}).encode())
        random.Random(1).shuffle(lines)
        return b"\n".join(self.server.spoil(lines)) + b"\n"

    def _completion(self, said: str) -> dict[str, Any]:
        if said in ("expired", "canceled"):
            code = {"expired": "batch_expired", "canceled": "batch_cancelled"}[said]
            return {"response": None, "error": {"code": code, "message": "not done in time"}}
        if said in ("errored", "refused"):
            code = "content_filter" if said == "refused" else "invalid_request"
            body = {"error": {"code": code, "message": "no"}}
            return {"response": {"status_code": 400, "body": body}, "error": None}
        message = {"role": "assistant", "content": said}
        body = {
            "model": self.server.model,
            "choices": [{"message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 1},
        }
        return {"response": {"status_code": 200, "body": body}, "error": None}

    def _message(self, said: str) -> dict[str, Any]:
        if said in ("expired", "canceled"):
            return {"result": {"type": said}}
        if said == "errored":
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}
            return {"result": {"type": "errored", "error": error}}
        message = {
            "model": self.server.model,
            "content": [{"type": "text", "text": "" if said == "refused" else said}],
            "stop_reason": "refusal" if said == "refused" else "end_turn",
            "usage": {"input_tokens": 900, "cache_read_input_tokens": 100, "output_tokens": 1},
        }
        return {"result": {"type": "succeeded", "message": message}}


@contextmanager
def batching(says: Says) -> Iterator[BatchServer]:
    """The server on a free port, in a thread."""
    with running(BatchServer(says)) as server:
        yield server
