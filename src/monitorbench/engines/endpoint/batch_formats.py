"""The two batch APIs: what is sent, how a batch is found again, and what a line of its results says.

OpenAI: https://platform.openai.com/docs/api-reference/batch; Anthropic:
https://platform.claude.com/docs/en/api/messages/batches. Not run against either; only against a local server
that follows these pages.

HTTP for batch APIs: each call done, refused for good, or of unknown fate; no key in any text.

Only a call that surely did nothing is made again, unless it is one that asks.
"""

import calendar
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeVar
from urllib.parse import quote, urlsplit

import httpx2
from pydantic import BaseModel

from monitorbench.config.base import UserError
from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.engines.endpoint.limits import LONGEST_RETRY_AFTER_SECONDS, retry_after, retry_delay
from monitorbench.engines.endpoint.reply import one_line
from monitorbench.engines.endpoint.wire import REFUSED, chat_fields, is_too_long, redacted, redacted_body
from monitorbench.engines.protocol import Decoding, Failure, Request

_MOST_BYTES = 2**24
"""Bytes of an answer that is no file of results."""
_T = TypeVar("_T")
_AGAIN = frozenset({408, 409, 429})


class UnknownFate(Exception):
    """A call may have been done or not: its answer did not come."""


class _Again(Exception):
    """Nothing was done; with the headers that may say when to come back."""

    def __init__(self, detail: str, headers: Mapping[str, str]) -> None:
        super().__init__(detail)
        self.headers = headers


class BatchWire:
    """The provider, at `engine.base_url`."""

    def __init__(self, config: OpenAiEngine, key: str | None, headers: Mapping[str, str]) -> None:
        self._config, self._key = config, key
        self._base = config.base_url.rstrip("/")
        timeout = httpx2.Timeout(config.timeout_seconds, connect=min(30.0, config.timeout_seconds))
        # Packed bodies are not asked for: what is unpacked here could be of any size.
        all_headers = {"accept-encoding": "identity", **headers}
        self._client = httpx2.Client(timeout=timeout, follow_redirects=False, headers=all_headers)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def ask(self, path: str) -> dict[str, Any]:
        """GET a JSON object; raises `UserError` where it can't be had."""
        return self._repeated(lambda: self._json("GET", path), asks=True)

    def do(self, path: str, **how: Any) -> dict[str, Any]:
        """POST; raises `UnknownFate`, or `UserError` where it is refused."""
        return self._repeated(lambda: self._json("POST", path, **how), asks=False)

    def lines(self, url: str, most_bytes: int) -> list[bytes]:
        """The lines of a file of results, without the key; a longer one than `most_bytes` is cut off.

        `url` may be whole, of the same host. Raises `UserError` where the file can't be had whole.
        """
        return self._repeated(lambda: list(self._lines(url, most_bytes)), asks=True)

    def _repeated(self, call: Callable[[], _T], *, asks: bool) -> _T:
        retries = 0
        while True:
            try:
                return call()
            except (_Again, UnknownFate, httpx2.TransportError) as error:
                nothing = isinstance(error, _Again | httpx2.ConnectError | httpx2.ConnectTimeout)
                detail = redacted(str(error), self._key) or type(error).__name__
                if not (asks or nothing):
                    raise UnknownFate(one_line(detail)) from None
                retries += 1
                if retries > self._config.max_retries:
                    raise UserError(f"{self._base}: {one_line(detail)}; the same command goes on") from None
                time.sleep(retry_delay(retries, getattr(error, "headers", {}), time.time()))

    def _json(self, method: str, path: str, **how: Any) -> dict[str, Any]:
        with self._client.stream(method, self._url(path), **how) as response:
            body = b"".join(self._chunks(response, _MOST_BYTES))
        self._refuse(response, body)
        try:
            answer = json.loads(redacted_body(body, self._key))
        except ValueError as error:
            raise UnknownFate("no JSON came back") from error
        if not isinstance(answer, dict):
            raise UnknownFate("no JSON object came back")
        return answer

    def _lines(self, url: str, most: int) -> Iterator[bytes]:
        with self._client.stream("GET", self._url(url)) as response:
            if response.status_code != 200:
                self._refuse(response, b"".join(self._chunks(response, _MOST_BYTES)))
            line, too_long = bytearray(), False
            for chunk in self._chunks(response, None):
                first, *following = chunk.split(b"\n")
                for number, piece in enumerate((first, *following)):
                    if number:
                        yield redacted_body(bytes(line), self._key)
                        line, too_long = bytearray(), False
                    too_long = too_long or len(line) + len(piece) > most
                    line = bytearray() if too_long else line + piece
            yield redacted_body(bytes(line), self._key)

    def _chunks(self, response: httpx2.Response, most: int | None) -> Iterator[bytes]:
        deadline, received = time.monotonic() + self._config.timeout_seconds, 0
        if response.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
            raise UserError(f"{self._base}: a packed body, which was not asked for")
        for chunk in response.iter_raw():
            received += len(chunk)
            if most is not None and received > most:
                raise UserError(f"{self._base}: an answer of more than {most} bytes")
            # A file of results may be large: it only has to go on coming.
            if most is not None and time.monotonic() > deadline:
                raise UnknownFate(f"no whole answer within {self._config.timeout_seconds:g} s")
            yield chunk

    def _refuse(self, response: httpx2.Response, body: bytes) -> None:
        status = response.status_code
        if 200 <= status < 300:
            return
        message = redacted(body[:2000].decode("utf-8", "replace"), self._key)
        if status in (401, 403):  # their messages quote the key
            message = f"the key in {self._config.api_key_env} is not taken"
        detail = one_line(f"HTTP {status}: {message}")
        wait = retry_after(response.headers, time.time())
        if status in _AGAIN and wait <= LONGEST_RETRY_AFTER_SECONDS:
            raise _Again(detail, response.headers)
        if status >= 500:
            raise UnknownFate(detail)
        raise UserError(f"{self._base}: {detail}")

    def _url(self, path: str) -> str:
        if "://" not in path:
            return f"{self._base}/{path}"
        ours, theirs = urlsplit(self._base), urlsplit(path)
        if (ours.scheme, ours.netloc) != (theirs.scheme, theirs.netloc):
            raise UserError(
                f"{self._base}: its results are elsewhere ({theirs.hostname}), where no key is sent"
            )
        return path


_CLOCKS_DIFFER_SECONDS = 600.0
_PAGES = 20
"""Pages that are read of a list of batches, newest first."""


class BatchRecord(BaseModel):
    """One batch: `submitting` until its `id` is known, `open` until all that it answered is in the log.

    `foreign` is one of somebody else that was taken for ours.
    """

    nonce: str
    """Names it at the provider, where one can be given."""
    keys: list[str]
    """The keys of its requests."""
    submitted: float
    """UNIX time, in seconds."""
    most_cost: float
    """The most that the batch may cost."""
    id: str | None = None
    state: Literal["submitting", "open", "collected", "foreign"] = "submitting"


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


class Format(Protocol):
    """A provider's batch API."""

    most_requests: int
    most_megabytes: int

    def headers(self, key: str | None) -> dict[str, str]:
        """Headers of every call."""
        ...

    def item(self, config: OpenAiEngine, request: Request, decoding: Decoding) -> dict[str, Any]:
        """One request of a batch."""
        ...

    def submit(self, wire: BatchWire, lines: Sequence[bytes], nonce: str) -> str:
        """Hand in a batch; its id. Raises what `BatchWire.do` raises."""
        ...

    def find(self, wire: BatchWire, batch: BatchRecord, known: frozenset[str]) -> str | None:
        """The id of a batch that may have been handed in; `known` ids are those of others."""
        ...

    def status(self, wire: BatchWire, batch_id: str) -> BatchStatus:
        """How far a batch is."""
        ...

    def outcome(self, line: Mapping[str, Any]) -> BatchOutcome:
        """Read a line; raises `ValueError`, `KeyError`, `TypeError` or `AttributeError` for another form."""
        ...


class OpenAiBatches:
    """`/files` and `/batches`."""

    most_requests, most_megabytes = 50_000, 200

    def headers(self, key: str | None) -> dict[str, str]:
        """See `Format.headers`."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def item(self, config: OpenAiEngine, request: Request, decoding: Decoding) -> dict[str, Any]:
        """See `Format.item`."""
        messages = [message._asdict() for message in request.messages]
        body = chat_fields(config, decoding) | {"messages": messages} | config.extra_body
        return {"custom_id": request.key, "method": "POST", "url": "/v1/chat/completions", "body": body}

    def submit(self, wire: BatchWire, lines: Sequence[bytes], nonce: str) -> str:
        """See `Format.submit`."""
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
        """See `Format.find`: its metadata names it."""
        for entry in _listed(wire, "batches", "after"):
            if (entry.get("metadata") or {}).get("monitorbench") == batch.nonce:
                return str(entry["id"])
            if entry.get("created_at", batch.submitted) < batch.submitted - _CLOCKS_DIFFER_SECONDS:
                return None
        return None

    def status(self, wire: BatchWire, batch_id: str) -> BatchStatus:
        """See `Format.status`."""
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
        """See `Format.outcome`."""
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
        """See `Format.headers`."""
        return {"anthropic-version": "2023-06-01"} | ({"x-api-key": key} if key else {})

    def item(self, config: OpenAiEngine, request: Request, decoding: Decoding) -> dict[str, Any]:
        """See `Format.item`."""
        system = "\n\n".join(turn.content for turn in request.messages if turn.role == "system")
        turns = [message._asdict() for message in request.messages if message.role != "system"]
        params: dict[str, Any] = {"model": config.model, "max_tokens": decoding.max_new_tokens}
        if config.temperature is not None:
            params["temperature"] = config.temperature
        if system:
            params["system"] = system
        return {"custom_id": request.key, "params": params | {"messages": turns} | config.extra_body}

    def submit(self, wire: BatchWire, lines: Sequence[bytes], nonce: str) -> str:
        """See `Format.submit`."""
        content = b'{"requests": [' + b",".join(lines) + b"]}"
        headers = {"content-type": "application/json"}
        return str(wire.do("messages/batches", content=content, headers=headers)["id"])

    def find(self, wire: BatchWire, batch: BatchRecord, known: frozenset[str]) -> str | None:
        """See `Format.find`: one of its size from then on, which its results prove to be ours or not."""
        batch_id: str | None = None
        for entry in _listed(wire, "messages/batches", "after_id"):
            if _seconds(str(entry.get("created_at"))) < batch.submitted - _CLOCKS_DIFFER_SECONDS:
                break
            n = sum((entry.get("request_counts") or {}).values())
            if n == len(batch.keys) and str(entry["id"]) not in known:
                batch_id = str(entry["id"])  # the oldest: ours came before what was handed in since
        return batch_id

    def status(self, wire: BatchWire, batch_id: str) -> BatchStatus:
        """See `Format.status`."""
        answer = wire.ask(f"messages/batches/{quote(batch_id, safe='')}")
        state, counts = str(answer.get("processing_status")), answer.get("request_counts") or {}
        summary = f"{state}, {counts.get('processing', '?')} of {sum(counts.values())} to be answered"
        where = answer.get("results_url")
        if state == "ended" and not where:
            return BatchStatus(True, summary, failed="its results are not there any more")
        return BatchStatus(state == "ended", summary, (str(where),) if where else ())

    def outcome(self, line: Mapping[str, Any]) -> BatchOutcome:
        """See `Format.outcome`."""
        key, result = str(line["custom_id"]), line["result"]
        if result["type"] == "errored":
            error = result["error"].get("error") or result["error"]
            kind = str(error.get("type"))
            at_fault = "HTTP 400" if kind == "invalid_request_error" else ""
            return _failed(key, f"{at_fault} {kind}", str(error.get("message")))
        if result["type"] != "succeeded":
            return _failed(key, str(result["type"]), "before it was its turn")
        return BatchOutcome(key, json.dumps(_as_completion(result["message"])).encode())


def format_of(config: OpenAiEngine) -> Format:
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
