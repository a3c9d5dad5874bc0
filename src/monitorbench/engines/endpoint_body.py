"""The HTTP client of chat endpoints: no redirect is followed, and no body is larger than it may be.

A body is counted as it comes in and as it is unpacked, so that neither two hundred megabytes nor a gzip bomb
are ever in memory. Headers are limited to 100 KiB by the HTTP library. How long all of it may take is the
caller's to say.
"""

import zlib
from typing import Any

import httpx2
import openai

_CHARACTERS_A_TOKEN = 512
"""Of an answer: what a token may take in JSON, in its text and once more escaped."""
_CHARACTERS_AN_ALTERNATIVE = 192
"""What one alternative of `top_logprobs` takes: token, log-probability, and the token's bytes."""
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
    """What `zlib` is told of a packed body; servers call both zlib's own form and the bare one `deflate`."""
    if packed != "deflate":
        return 16 + zlib.MAX_WBITS
    return zlib.MAX_WBITS if first[0] & 0x0F == 8 else -zlib.MAX_WBITS
