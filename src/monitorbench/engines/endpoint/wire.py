"""The wire to a chat endpoint: what a request is sent as, one attempt at it, and the bytes that come back.

No redirect is followed, and no body is larger than an answer can be: it is counted as it comes in and as it
is unpacked, so that neither two hundred megabytes nor a gzip bomb are ever in memory. Headers are limited to
100 KiB by the HTTP library. How long all of it may take is the caller's to say.

Takes the key that an endpoint was sent out of every text that comes from it.

An endpoint that wants the key published may echo it in any field, turned round or encoded. The key as it is,
reversed, in hexadecimal and in base64 are found, and both of the first with any of their characters escaped.
"""

import asyncio
import base64
import dataclasses
import re
import time
import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import httpx2
import openai

from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.engines.endpoint.limits import LONGEST_RETRY_AFTER_SECONDS, retry_after
from monitorbench.engines.protocol import Decoding, Failure, Reply, Request


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
    """An attempt that got no answer. `ends_run`: no other request would fare better.

    With both `retry` and `ends_run`, it is hopeless once the retries are used up.
    """

    failure: Failure
    detail: str
    headers: Mapping[str, str] = {}
    retry: bool = False
    ends_run: bool = False


async def attempt(
    client: openai.AsyncOpenAI,
    request: Request,
    fields: Mapping[str, Any],
    extra_body: Mapping[str, Any],
    timeout_seconds: float,
) -> bytes | Problem:
    """Ask once. `detail` may quote the endpoint, and so the key: redact it before it goes anywhere."""
    create: Any = client.chat.completions.with_raw_response.create
    prompt: dict[str, Any] = {"messages": [message._asdict() for message in request.messages]}
    if request.token_ids:
        create = client.completions.with_raw_response.create
        prompt = {"prompt": list(request.token_ids)}
    try:
        # The client's own time-out is for each read: a byte a second would keep it waiting for ever.
        async with asyncio.timeout(timeout_seconds):
            response = await create(**prompt, extra_body=dict(extra_body), **fields)
    except (TimeoutError, openai.APITimeoutError) as error:
        if isinstance(error.__cause__, httpx2.ConnectTimeout):
            return Problem("timed_out", "it takes no connection: is it running?", retry=True, ends_run=True)
        return Problem("timed_out", f"no answer within {timeout_seconds:g} s", retry=True)
    except openai.APIStatusError as error:
        return _of_status(error)
    except openai.APIConnectionError as error:
        cause = error.__cause__
        if isinstance(cause, httpx2.ConnectError):
            return Problem("http_error", "nothing answers there: is it running?", retry=True, ends_run=True)
        return Problem("http_error", f"connection cut ({type(cause).__name__})", retry=True)
    except RefusedBody as error:
        return Problem("bad_response", str(error))
    except UnicodeEncodeError:
        return Problem("http_error", "not sent: the prompt holds half a surrogate pair")
    content: bytes = response.content
    return content


def _of_status(error: openai.APIStatusError) -> Problem:
    status, headers = error.status_code, error.response.headers
    detail = f"HTTP {status}: {error.message.removeprefix(f'Error code: {status}').removeprefix(' - ')}"
    if status == 400 and any(word in f"{error.code} {error.message}" for word in REFUSED):
        return Problem("refused", detail)
    if status in (400, 413, 422) and is_too_long(f"{error.code} {error.message}"):
        return Problem("too_long", detail)
    if "location" in headers and 300 <= status < 400:
        # Followed, it would take the judged text to somebody else, and bring back their answer.
        where = _origin(headers["location"])
        redirect = f"HTTP {status}: redirects to {where}, which is not followed: set engine.base_url to it"
        return Problem("http_error", f"{redirect} if that is meant", ends_run=True)
    if status in (401, 403):  # their messages quote the key
        return Problem("http_error", f"HTTP {status}", ends_run=True)
    if status in _HOPELESS or error.code in _HOPELESS_CODES:
        return Problem("http_error", detail, ends_run=True)
    if status in _RETRIED or status >= 500:
        wait = retry_after(headers, time.time())
        if wait > LONGEST_RETRY_AFTER_SECONDS:
            return Problem("http_error", f"HTTP {status}, not before {wait:.0f} s are over", ends_run=True)
        return Problem("http_error", detail, headers, retry=True)
    return Problem("http_error", detail)


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
_OF_THE_BODY = {"content-encoding", "content-length", "transfer-encoding"}


class RefusedBody(Exception):
    """A body that is larger than any answer to the question, or is packed in a way nobody asked for."""


def most_bytes(max_new_tokens: int, top_logprobs: int) -> int:
    """Bytes that a response may have: 2 MiB, and what so many tokens with their alternatives take."""
    return _BASE_BYTES + max_new_tokens * (_CHARACTERS_A_TOKEN + top_logprobs * _CHARACTERS_AN_ALTERNATIVE)


class BoundedClient(openai.DefaultAsyncHttpxClient):
    """Responses are read whole, up to `most` bytes both as received and as unpacked.

    `send` raises `RefusedBody` for a larger one, with its connection closed.
    """

    def __init__(self, most: int, *, trust_env: bool) -> None:
        super().__init__(follow_redirects=False, trust_env=trust_env)
        self._most = most

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        """Send a request; its response, read and unpacked."""
        request.headers["accept-encoding"] = "gzip, deflate"
        response = await super().send(request, **how | {"stream": True, "follow_redirects": False})
        try:
            content = await _read(response, self._most)
        finally:
            await response.aclose()
        headers = [
            (name, value) for name, value in response.headers.multi_items() if name not in _OF_THE_BODY
        ]
        return httpx2.Response(response.status_code, headers=headers, content=content, request=request)


async def _read(response: httpx2.Response, most: int) -> bytes:
    """The unpacked body."""
    packed = response.headers.get("content-encoding", "").strip().lower()
    if packed not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise RefusedBody("a body packed in a way that was not asked for")
    received, unpacked = 0, bytearray()
    unpacker: Any = None
    async for chunk in response.aiter_raw():
        received += len(chunk)
        if received > most:
            raise RefusedBody(f"a body of more than {most} bytes")
        if packed in ("", "identity"):
            unpacked += chunk
            continue
        try:
            if unpacker is None and chunk:
                unpacker = zlib.decompressobj(_window(packed, chunk))
            unpacked += unpacker.decompress(chunk, most + 1 - len(unpacked)) if unpacker else b""
        except zlib.error as error:
            raise RefusedBody(f"a body that is no {packed}") from error
        if len(unpacked) > most:
            raise RefusedBody(f"a body that unpacks to more than {most} bytes")
    if unpacker is not None and not unpacker.eof:
        raise RefusedBody(f"a {packed} body that breaks off")
    return bytes(unpacked)


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
