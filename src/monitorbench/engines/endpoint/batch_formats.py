"""The two batch APIs: what is sent, how a batch is found again, and what a line of its results says.

OpenAI: https://platform.openai.com/docs/api-reference/batch; Anthropic:
https://platform.claude.com/docs/en/api/messages/batches. Not run against either; only against a local server
that follows these pages.
"""

import calendar
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.engines.endpoint.batch_calls import BatchRecord, BatchWire
from monitorbench.engines.endpoint.wire import REFUSED, chat_fields, is_too_long
from monitorbench.engines.protocol import Decoding, Failure, Request

_CLOCKS_DIFFER_SECONDS = 600.0
_PAGES = 20
"""Pages that are read of a list of batches, newest first."""


class BatchStatus(NamedTuple):
    """How far a batch is; once it has `ended`, where its `results` are, or why it `failed` and has none."""

    ended: bool
    said: str
    results: tuple[str, ...] = ()
    failed: str = ""


class BatchOutcome(NamedTuple):
    """One line of results: a chat completion's body, or why there is none."""

    key: str
    body: bytes | None
    failure: Failure = "http_error"
    detail: str = ""


class OpenAiBatches:
    """`/files` and `/batches`."""

    most_requests, most_megabytes = 50_000, 200

    def headers(self, key: str | None) -> dict[str, str]:
        """Headers of every call."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def item(self, config: OpenAiEngine, request: Request, decoding: Decoding) -> dict[str, Any]:
        """One request of a batch."""
        messages = [message._asdict() for message in request.messages]
        body = chat_fields(config, decoding) | {"messages": messages} | config.extra_body
        return {"custom_id": request.key, "method": "POST", "url": "/v1/chat/completions", "body": body}

    def submit(self, wire: BatchWire, lines: Sequence[bytes], nonce: str) -> str:
        """Hand in a batch; its id. Raises what `BatchWire.do` raises."""
        file = (f"monitorbench-{nonce}.jsonl", b"\n".join(lines) + b"\n", "application/jsonl")
        uploaded = wire.do("files", data={"purpose": "batch"}, files={"file": file})
        body = {
            "input_file_id": str(uploaded["id"]),
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {"monitorbench": nonce},
        }
        return str(wire.do("batches", json=body)["id"])

    def find(self, wire: BatchWire, batch: BatchRecord, known: frozenset[str]) -> str | None:
        """The id of a batch that may have been handed in, which its metadata names.

        `known` ids are those of others.
        """
        for entry in _listed(wire, "batches", "after"):
            if (entry.get("metadata") or {}).get("monitorbench") == batch.nonce:
                return str(entry["id"])
            if entry.get("created_at", batch.submitted) < batch.submitted - _CLOCKS_DIFFER_SECONDS:
                return None
        return None

    def status(self, wire: BatchWire, batch_id: str) -> BatchStatus:
        """How far a batch is."""
        answer = wire.ask(f"batches/{quote(batch_id, safe='')}")
        state, counts = str(answer.get("status")), answer.get("request_counts") or {}
        summary = f"{state}, {counts.get('completed', 0)} of {counts.get('total', '?')} answered"
        if state == "failed":
            errors = (answer.get("errors") or {}).get("data") or [{}]
            return BatchStatus(True, summary, failed=str(errors[0].get("message", "no reason given")))
        files = [answer.get(name) for name in ("output_file_id", "error_file_id")]
        results = tuple(f"files/{quote(str(file), safe='')}/content" for file in files if file)
        return BatchStatus(state in ("completed", "expired", "cancelled"), summary, results)

    def outcome(self, line: Mapping[str, Any]) -> BatchOutcome:
        """Read a line; raises `ValueError`, `KeyError`, `TypeError` or `AttributeError` for another form."""
        key, response, error = str(line["custom_id"]), line.get("response"), line.get("error")
        if error:
            return _failed(key, str(error.get("code") or ""), str(error.get("message") or ""))
        status, body = int(response["status_code"]), response["body"]  # type: ignore[index]
        if status == 200:
            return BatchOutcome(key, json.dumps(body).encode())
        error = body.get("error") or {}
        return _failed(key, f"HTTP {status}", f"{error.get('code') or ''} {error.get('message') or ''}")


class AnthropicBatches:
    """`/messages/batches`; its answers are read as the chat completions that they would be."""

    most_requests, most_megabytes = 100_000, 256

    def headers(self, key: str | None) -> dict[str, str]:
        """See `OpenAiBatches.headers`."""
        return {"anthropic-version": "2023-06-01"} | ({"x-api-key": key} if key else {})

    def item(self, config: OpenAiEngine, request: Request, decoding: Decoding) -> dict[str, Any]:
        """See `OpenAiBatches.item`."""
        system = "\n\n".join(turn.content for turn in request.messages if turn.role == "system")
        turns = [message._asdict() for message in request.messages if message.role != "system"]
        params: dict[str, Any] = {"model": config.model, "max_tokens": decoding.max_new_tokens}
        if config.temperature is not None:
            params["temperature"] = config.temperature
        if system:
            params["system"] = system
        return {"custom_id": request.key, "params": params | {"messages": turns} | config.extra_body}

    def submit(self, wire: BatchWire, lines: Sequence[bytes], nonce: str) -> str:
        """See `OpenAiBatches.submit`."""
        content = b'{"requests": [' + b",".join(lines) + b"]}"
        headers = {"content-type": "application/json"}
        return str(wire.do("messages/batches", content=content, headers=headers)["id"])

    def find(self, wire: BatchWire, batch: BatchRecord, known: frozenset[str]) -> str | None:
        """See `OpenAiBatches.find`: one of its size since, which its results prove to be ours or not."""
        batch_id: str | None = None
        for entry in _listed(wire, "messages/batches", "after_id"):
            if _seconds(str(entry.get("created_at"))) < batch.submitted - _CLOCKS_DIFFER_SECONDS:
                break
            n = sum((entry.get("request_counts") or {}).values())
            if n == len(batch.keys) and str(entry["id"]) not in known:
                batch_id = str(entry["id"])  # the oldest: ours came before what was handed in since
        return batch_id

    def status(self, wire: BatchWire, batch_id: str) -> BatchStatus:
        """See `OpenAiBatches.status`."""
        answer = wire.ask(f"messages/batches/{quote(batch_id, safe='')}")
        state, counts = str(answer.get("processing_status")), answer.get("request_counts") or {}
        summary = f"{state}, {counts.get('processing', '?')} of {sum(counts.values())} to be answered"
        where = answer.get("results_url")
        if state == "ended" and not where:
            return BatchStatus(True, summary, failed="its results are not there any more")
        return BatchStatus(state == "ended", summary, (str(where),) if where else ())

    def outcome(self, line: Mapping[str, Any]) -> BatchOutcome:
        """See `OpenAiBatches.outcome`."""
        key, result = str(line["custom_id"]), line["result"]
        if result["type"] == "errored":
            error = result["error"].get("error") or result["error"]
            kind = str(error.get("type"))
            at_fault = "HTTP 400" if kind == "invalid_request_error" else ""
            return _failed(key, f"{at_fault} {kind}", str(error.get("message")))
        if result["type"] != "succeeded":
            return _failed(key, str(result["type"]), "before it was its turn")
        return BatchOutcome(key, json.dumps(_as_completion(result["message"])).encode())


def format_of(config: OpenAiEngine) -> OpenAiBatches | AnthropicBatches:
    """The API that `engine.batch.format` names."""
    assert config.batch is not None
    return OpenAiBatches() if config.batch.format == "openai" else AnthropicBatches()


def _failed(key: str, code: str, message: str) -> BatchOutcome:
    detail = f"{code}: {message}".strip()
    if any(word in detail for word in REFUSED):
        return BatchOutcome(key, None, "refused", detail)
    if is_too_long(detail):
        return BatchOutcome(key, None, "too_long", detail)
    return BatchOutcome(key, None, "timed_out" if "expired" in code else "http_error", detail)


_ENDS = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "refusal": "content_filter"}


def _as_completion(message: Mapping[str, Any]) -> dict[str, Any]:
    blocks, usage = message["content"], message.get("usage") or {}
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    thought = "".join(block.get("thinking", "") for block in blocks if block["type"] == "thinking")
    cached = usage.get("cache_read_input_tokens") or 0
    prompt = usage.get("input_tokens", 0) + cached + (usage.get("cache_creation_input_tokens") or 0)
    answer = {"role": "assistant", "content": text, "reasoning_content": thought or None}
    stop = message.get("stop_reason") or ""
    return {
        "model": message.get("model"),
        "choices": [{"message": answer, "finish_reason": _ENDS.get(stop, stop or "none")}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": usage.get("output_tokens", 0),
            "prompt_tokens_details": {"cached_tokens": cached},
        },
    }


def _listed(wire: BatchWire, path: str, after: str) -> Iterator[Mapping[str, Any]]:
    """Batches, the newest first."""
    behind = ""
    for _ in range(_PAGES):
        page = wire.ask(f"{path}?limit=100{behind}")
        batches = page.get("data") or []
        yield from batches
        if not page.get("has_more") or not batches:
            return
        behind = f"&{after}={quote(str(batches[-1]['id']), safe='')}"


def _seconds(moment: str) -> float:
    """The UNIX time of an RFC 3339 moment in UTC, as this API writes it; now where it is none."""
    try:
        return calendar.timegm(time.strptime(moment[:19], "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return time.time()
