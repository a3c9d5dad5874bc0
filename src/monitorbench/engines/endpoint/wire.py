"""The wire to an endpoint: a request's fields, and what comes back, bounded, told apart and without the key.

No redirect is followed, and no body is larger than an answer can be: it is counted as it comes in and as it
is unpacked, so that neither two hundred megabytes nor a gzip bomb are ever in memory. Headers are limited to
100 KiB by the HTTP library. How long all of it may take is the caller's to say. An endpoint that wants the
key published may echo it in any field, turned round or encoded: the key as it is, reversed, in hexadecimal
and in base64 is taken out, and both of the first with any of their characters escaped.
"""

import base64
import dataclasses
import os
import re
import ssl
import time
import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import httpx2

from monitorbench import strict_json
from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.engines.endpoint.limits import LONGEST_RETRY_AFTER_SECONDS, retry_after
from monitorbench.engines.protocol import Decoding, Failure, Reply

_CONNECT_SECONDS = 30.0
"""A machine that doesn't take a connection by then is not there."""


def client_settings(config: OpenAiEngine, headers: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of an HTTP client for the endpoint, synchronous or not."""
    seconds = config.timeout_seconds
    # A server of ours is on a node that a proxy doesn't know, or would see the key on the way to.
    trusts_environment = config.server is None
    return {
        "headers": {"accept-encoding": "gzip, deflate", **headers},
        "timeout": httpx2.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS), pool=None),
        "limits": httpx2.Limits(max_connections=None, max_keepalive_connections=None),
        "follow_redirects": False,
        "trust_env": trusts_environment,
        "verify": _certificates(trusts_environment, *map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR"))),
    }


@lru_cache(maxsize=4)
def _certificates(trusts_environment: bool, *named: str | None) -> ssl.SSLContext:
    """The machine's certificates, or those that the environment names.

    Reading them takes some 25 ms, and a pilot opens a client at each of an agent's steps.
    """
    return httpx2.create_ssl_context(trust_env=trusts_environment)


def chat_fields(config: OpenAiEngine, decoding: Decoding) -> dict[str, Any]:
    """All of a chat completion's body but its messages and `engine.extra_body`."""
    structured = decoding.structured
    fields: dict[str, Any] = {"model": config.model, config.max_tokens_field: decoding.max_new_tokens}
    if config.temperature is not None:
        fields["temperature"] = config.temperature
    if config.logprobs:
        fields |= {"logprobs": True, "top_logprobs": config.top_logprobs}
    if structured is not None and config.structured == "json_schema":
        schema = {"name": "verdict", "schema": structured, "strict": True}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif structured is not None and config.structured == "json_object":
        fields["response_format"] = {"type": "json_object"}
    return fields


_RETRIED = frozenset({408, 409, 429})
_HOPELESS = frozenset({401, 402, 403, 404})
_HOPELESS_CODES = frozenset(
    {"insufficient_quota", "model_not_found", "unsupported_parameter", "unsupported_value"}
)
"""Whatever the status, every other request would be answered alike."""
REFUSED = ("content_filter", "content_policy_violation", "Content Exists Risk")
"""OpenAI's codes and DeepSeek's message, in the body of a 400."""
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|max(imum)? context length|maximum model length"
    r"|context (window|length|size) (is|of|exceeded|limit)"
    r"|exceeds? the (available |maximum |model's )?(context|number of tokens|token limit)"
    r"|(prompt|input) is too long|input token count .*exceeds",
    re.IGNORECASE,
)
"""Words of OpenAI, vLLM, DeepSeek, Anthropic, Gemini and llama.cpp for more than the context holds."""


def is_too_long(said: str) -> bool:
    """Whether an endpoint refuses a request since its model's context can't hold it."""
    return _TOO_LONG.search(said) is not None


class Problem(NamedTuple):
    """A call that got no answer. `ends_run`: no other request would fare better.

    With both `retry` and `ends_run`, it is hopeless once the retries are used up.
    """

    failure: Failure
    detail: str
    headers: Mapping[str, str] = {}
    retry: bool = False
    ends_run: bool = False
    is_undone: bool = False
    """Whether the endpoint surely did nothing."""


def outcome_of(
    response: httpx2.Response, body: bytes, config: OpenAiEngine, key: str | None
) -> bytes | Problem:
    """The body of a successful response, or what is wrong, both without the key."""
    status, headers = response.status_code, response.headers
    body = redacted_body(body, key)
    if 200 <= status < 300:
        return body
    code, message = _error(body[:_MOST_ERROR])
    # Before it is cut short: half of an encoded key would not be found.
    detail = redacted(f"HTTP {status}: {message}".removesuffix(": "), key)
    if status == 400 and any(word in f"{code} {message}" for word in REFUSED):
        return Problem("refused", detail)
    if status in (400, 413, 422) and is_too_long(f"{code} {message}"):
        return Problem("too_long", detail)
    if "location" in headers and 300 <= status < 400:
        # Followed, it would take the judged text to somebody else, and bring back their answer.
        where = _origin(headers["location"])
        redirect = f"HTTP {status}: redirects to {where}, which is not followed: set engine.base_url to it"
        return Problem("http_error", f"{redirect} if that is meant", ends_run=True)
    if status in (401, 403):  # their messages quote the key
        why = f"the key in {config.api_key_env} is not taken" if config.api_key_env else "it asks for a key"
        return Problem("http_error", f"HTTP {status}: {why}", ends_run=True)
    if status in _HOPELESS or code in _HOPELESS_CODES:
        return Problem("http_error", detail, ends_run=True)
    if status in _RETRIED or status >= 500:
        wait = retry_after(headers, time.time())
        if wait > LONGEST_RETRY_AFTER_SECONDS:
            return Problem("http_error", f"HTTP {status}, not before {wait:.0f} s are over", ends_run=True)
        return Problem("http_error", detail, headers, retry=True, is_undone=status in _RETRIED)
    return Problem("http_error", detail)


def problem_of(error: Exception, seconds: float) -> Problem:
    """The end of a call that has so many seconds; raises an error that no endpoint can cause."""
    match error:
        case httpx2.ConnectTimeout():
            why = "it takes no connection: is it running?"
            return Problem("timed_out", why, retry=True, ends_run=True, is_undone=True)
        case TimeoutError() | httpx2.TimeoutException():
            return Problem("timed_out", f"no answer within {seconds:g} s", retry=True)
        case httpx2.ConnectError():
            why = "nothing answers there: is it running?"
            return Problem("http_error", why, retry=True, ends_run=True, is_undone=True)
        case httpx2.HTTPError():
            return Problem("http_error", f"connection cut ({type(error).__name__})", retry=True)
        case RefusedBody():
            return Problem("bad_response", str(error))
        case UnicodeEncodeError():
            return Problem("http_error", "not sent: the prompt holds half a surrogate pair")
    raise error


def _error(body: bytes) -> tuple[str, str]:
    """An error's code and message, as far as a body has them in the usual form; else all of it."""
    text = body.decode("utf-8", "replace")
    try:
        given = strict_json.loads(body, of_python=True)
    except (ValueError, RecursionError):
        return "", text
    error = given.get("error", given) if isinstance(given, dict) else None
    if not isinstance(error, dict):
        return "", error if isinstance(error, str) else text
    message = error.get("message")
    return str(error.get("code") or ""), message if isinstance(message, str) else text


def _origin(location: str) -> str:
    """Scheme, host and port of a redirect's target: its path and query may hold anything."""
    try:
        parts = urlsplit(location)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "no URL"
    return f"{parts.scheme}://{parts.hostname}{port}" if parts.hostname else "another path there"


_CHARACTERS_A_TOKEN = 512
"""Characters that a token of an answer may take in JSON, in its text and once more escaped."""
_CHARACTERS_AN_ALTERNATIVE = 192
"""Characters of an alternative in `top_logprobs`: token, log-probability, and the token's bytes."""
_BASE_BYTES = 2**21
_MOST_ERROR = 20_000
"""Bytes of an error that are read."""


class RefusedBody(Exception):
    """A body that is larger than any answer to the question, or is packed in a way nobody asked for."""


def most_bytes(max_new_tokens: int, top_logprobs: int) -> int:
    """Bytes that a response may have: 2 MiB, and what so many tokens with their alternatives take."""
    return _BASE_BYTES + max_new_tokens * (_CHARACTERS_A_TOKEN + top_logprobs * _CHARACTERS_AN_ALTERNATIVE)


class BoundedBody:
    """A response's body as it comes in, unpacked, of at most `most` bytes both as received and as unpacked.

    Its methods raise `RefusedBody` for a larger one.
    """

    def __init__(self, response: httpx2.Response, most: int) -> None:
        self._packed = response.headers.get("content-encoding", "").strip().lower()
        if self._packed not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise RefusedBody("a body packed in a way that was not asked for")
        self._most, self._received, self._unpacked = most, 0, bytearray()
        self._unpacker: Any = None

    def add(self, chunk: bytes) -> None:
        """Take the next bytes, as they were sent."""
        self._received += len(chunk)
        if self._received > self._most:
            raise RefusedBody(f"a body of more than {self._most} bytes")
        if self._packed in ("", "identity"):
            self._unpacked += chunk
            return
        try:
            if self._unpacker is None and chunk:
                self._unpacker = zlib.decompressobj(_window(self._packed, chunk))
            if self._unpacker is not None:
                self._unpacked += self._unpacker.decompress(chunk, self._most + 1 - len(self._unpacked))
        except zlib.error as error:
            raise RefusedBody(f"a body that is no {self._packed}") from error
        if len(self._unpacked) > self._most:
            raise RefusedBody(f"a body that unpacks to more than {self._most} bytes")

    def whole(self) -> bytes:
        """The body, all of which has come in."""
        if self._unpacker is not None and not self._unpacker.eof:
            raise RefusedBody(f"a {self._packed} body that breaks off")
        return bytes(self._unpacked)


def _window(packed: str, first: bytes) -> int:
    """Window for `zlib`; servers call both zlib's own form and the bare one `deflate`."""
    if packed != "deflate":
        return 16 + zlib.MAX_WBITS
    return zlib.MAX_WBITS if first[0] & 0x0F == 8 else -zlib.MAX_WBITS


_SHORTEST_KEY = 8
"""One of fewer characters is a local server's placeholder, and a word like others."""
_ESCAPES = ("\\", "%", "&#")


def redacted(text: str, key: str | None, shortest: int = 6) -> str:
    """A text without the key, nor a beginning or an end of it of at least `shortest` characters.

    Error messages like to quote keys in part. Nothing is taken out for a key of fewer than 8 characters.
    """
    if key is None or len(key) < _SHORTEST_KEY:
        return text
    for form in _encoded(key):
        text = text.replace(form, "***")
    if any(mark in text for mark in _ESCAPES):
        text = _escaped(key).sub("***", text)
    for length in range(len(key), shortest - 1, -1):
        text = text.replace(key[:length], "***").replace(key[-length:], "***")
    return text


def redacted_body(body: bytes, key: str | None) -> bytes:
    """A response's body without the whole key; JSON stays JSON."""
    if key is None:
        return body
    text = body.decode("utf-8", "surrogateescape")
    return redacted(text, key, shortest=len(key)).encode("utf-8", "surrogateescape")


def redacted_reply(reply: Reply, key: str | None) -> Reply:
    """The reply without the key in any of its texts; what is escaped in a body shows in them alone."""
    length = len(key or "")
    return dataclasses.replace(
        reply,
        text=redacted(reply.text, key, length),
        reasoning=redacted(reply.reasoning, key, length),
        finish_reason=redacted(reply.finish_reason, key),
        served_model=redacted(reply.served_model, key),
        detail=redacted(reply.detail, key),
    )


@lru_cache(maxsize=8)
def _encoded(key: str) -> tuple[str, ...]:
    """Plain spellings of a key, the longest first."""
    spellings: set[str] = set()
    for text in (key, key[::-1]):
        hexadecimal = text.encode().hex()
        spellings |= {text, hexadecimal, hexadecimal.upper()}
        for offset in range(3):
            standard = _base64_of(text, offset)
            for form in (standard, standard.translate(str.maketrans("+/", "-_"))):
                spellings |= {form, form[::-1], form.replace("/", "\\/"), quote(form, safe="")}
    return tuple(sorted(spellings, key=len, reverse=True))


def _base64_of(text: str, offset: int) -> str:
    """The digits that the text alone decides in the base64 of anything that holds it at `offset` modulo 3."""
    digits = base64.b64encode(b"\0" * offset + text.encode()).decode()
    return digits[-(-8 * offset // 6) : 8 * (offset + len(text)) // 6]


@lru_cache(maxsize=8)
def _escaped(key: str) -> re.Pattern[str]:
    """The key or its reverse with any of its characters as an escape of URLs, JSON, Python or HTML."""
    begins = "".join(re.escape(text) for text in sorted({key[0], key[-1], "%", "\\", "&"}))
    spellings = ("".join(map(_any_spelling, text)) for text in (key, key[::-1]))
    return re.compile(f"(?=[{begins}])(?:{'|'.join(spellings)})")


def _any_spelling(character: str) -> str:
    code, plain = ord(character), re.escape(character)
    escapes = rf"%(?:25)*(?i:{code:02x})|\\+u(?i:{code:04x})|\\+x(?i:{code:02x})"
    return rf"(?:\\*{plain}|{escapes}|&\#0*{code};|&\#[xX]0*(?i:{code:x});)"
