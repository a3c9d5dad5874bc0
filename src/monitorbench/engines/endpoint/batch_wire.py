"""HTTP for batch APIs: each call done, refused for good, or of unknown fate; no key in any text.

Only a call that surely did nothing is made again, unless it is one that asks.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2

from monitorbench.config.base import UserError
from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.engines.endpoint.limits import LONGEST_RETRY_AFTER_SECONDS, retry_after, retry_delay
from monitorbench.engines.endpoint.redaction import redacted, redacted_body
from monitorbench.engines.endpoint.reply import one_line

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
