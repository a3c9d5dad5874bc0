"""A provider's batch API, called so that no batch is handed in twice: a file knows each call's fate.

A batch is written down before it is handed in, and again with its name there. A process that was killed in
between leaves one without a name, which the next one looks for at the provider before it hands in anything.
"""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import httpx2
from pydantic import BaseModel, ValidationError

from monitorbench.config.base import UserError
from monitorbench.config.endpoint import OpenAiEngine
from monitorbench.engines.endpoint.limits import retry_delay
from monitorbench.engines.endpoint.reply import one_line
from monitorbench.engines.endpoint.wire import BoundedBody, Problem, client_settings, outcome_of, problem_of
from monitorbench.runs.files import write_atomically

FILE = "batches.json"
_MOST_BYTES = 2**24
"""Bytes of an answer that is no file of results."""
_T = TypeVar("_T")


class UnknownFate(Exception):
    """A call may have been done or not: its answer did not come."""


class BatchWire:
    """The provider, at `engine.base_url`: each call done, refused for good, or of unknown fate.

    Only a call that surely did nothing is made again, unless it is one that asks. No text has the key.
    """

    def __init__(self, config: OpenAiEngine, key: str | None, headers: Mapping[str, str]) -> None:
        self._config, self._key = config, key
        self._base = config.base_url.rstrip("/")
        self._client = httpx2.Client(**client_settings(config, headers))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def ask(self, path: str) -> dict[str, Any]:
        """GET a JSON object; raises `UserError` where it can't be had."""
        return self._repeated("GET", path, _json_object, _MOST_BYTES)

    def do(self, path: str, **how: Any) -> dict[str, Any]:
        """POST; raises `UnknownFate`, or `UserError` where it is refused."""
        return self._repeated("POST", path, _json_object, _MOST_BYTES, **how)

    def lines(self, url: str, most_bytes: int, n: int) -> list[bytes]:
        """The lines of a file of results on `n` requests; a longer one than `most_bytes` is left out.

        `url` may be whole, of the same host. Raises `UserError` where the file can't be had whole.
        """
        lines = self._repeated("GET", url, lambda body: body.split(b"\n"), most_bytes * (n + 1), patient=True)
        return [line for line in lines if line.strip() and len(line) <= most_bytes]

    def _repeated(
        self,
        method: str,
        path: str,
        read: Callable[[bytes], _T | Problem],
        most: int,
        *,
        patient: bool = False,
        **how: Any,
    ) -> _T:
        retries = 0
        while True:
            outcome = self._once(method, path, most, patient=patient, **how)
            answer = outcome if isinstance(outcome, Problem) else read(outcome)
            if not isinstance(answer, Problem):
                return answer
            detail = one_line(answer.detail)
            if not answer.retry:
                raise UserError(f"{self._base}: {detail}")
            if method == "POST" and not answer.is_undone:
                raise UnknownFate(detail)
            retries += 1
            if retries > self._config.max_retries:
                raise UserError(f"{self._base}: {detail}; the same command goes on")
            time.sleep(retry_delay(retries, answer.headers, time.time()))

    def _once(self, method: str, path: str, most: int, *, patient: bool, **how: Any) -> bytes | Problem:
        seconds, url = self._config.timeout_seconds, self._url(path)
        try:
            with self._client.stream(method, url, **how) as response:
                body, deadline = BoundedBody(response, most), time.monotonic() + seconds
                for chunk in response.iter_raw():
                    body.add(chunk)
                    # A file of results may be large: it only has to go on coming.
                    if not patient and time.monotonic() > deadline:
                        raise TimeoutError
                return outcome_of(response, body.whole(), self._config, self._key)
        except Exception as error:
            return problem_of(error, seconds)

    def _url(self, path: str) -> str:
        if "://" not in path:
            return f"{self._base}/{path}"
        ours, theirs = urlsplit(self._base), urlsplit(path)
        if (ours.scheme, ours.netloc) != (theirs.scheme, theirs.netloc):
            raise UserError(
                f"{self._base}: its results are elsewhere ({theirs.hostname}), where no key is sent"
            )
        return path


def _json_object(body: bytes) -> dict[str, Any] | Problem:
    try:
        answer = json.loads(body)
    except ValueError:
        return Problem("bad_response", "no JSON came back", retry=True)
    return answer if isinstance(answer, dict) else Problem("bad_response", "no JSON object", retry=True)


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


class _File(BaseModel):
    batches: list[BatchRecord] = []


class BatchState:
    """The batches of a run, written as they change. Raises `UserError` for a file that can't be read."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.batches: list[BatchRecord] = []
        if self.path.exists():
            try:
                self.batches = _File.model_validate_json(self.path.read_bytes()).batches
            except (OSError, ValidationError) as error:
                raise UserError(
                    f"{self.path}: can't be read ({type(error).__name__}); it names batches that are "
                    "paid for: mend it, or remove it and pay again"
                ) from error

    def save(self) -> None:
        """Write the file, whole or not at all."""
        write_atomically(self.path, _File(batches=self.batches).model_dump_json(indent=1) + "\n")

    def those(self, state: str) -> list[BatchRecord]:
        """The batches in that state."""
        return [batch for batch in self.batches if batch.state == state]

    @property
    def reserved(self) -> float:
        """The most that may still have to be paid for batches that are handed in."""
        return sum(batch.most_cost for batch in self.batches if batch.state in ("submitting", "open"))
