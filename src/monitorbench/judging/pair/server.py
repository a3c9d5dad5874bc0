"""The judging server: `POST /judge` with a request and a response, one judgement back; `GET /health`.

One model, one thread that asks it, in the order in which requests come. A body is at most `MOST_BYTES`, JSON
as the standard has it, and refused in one line; with a key only `/health` is answered without it.
"""

import hmac
import json
import logging
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from monitorbench.judging.pair.judge import Judgement, Judges, sample_of
from monitorbench.judging.probed import probe_reading
from monitorbench.records import Message, Role, Sample
from monitorbench.strict_json import loads

MOST_BYTES = 4 * 2**20
_SECONDS_TO_SEND = 30
"""A connection that says nothing for so long is closed."""
_log = logging.getLogger(__name__)

_Messages = Annotated[tuple[Message, ...], Field(min_length=1)]


class Asked(BaseModel):
    """What `/judge` is sent; a text stands for one message, the user's and the assistant's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    request: str | _Messages
    response: str | _Messages


def sample_asked(asked: Asked) -> Sample:
    """The request and the response as a sample."""
    request, response = (
        (Message(role=role, content=one),) if isinstance(one, str) else one
        for role, one in ((Role.USER, asked.request), (Role.ASSISTANT, asked.response))
    )
    return sample_of(request, response)


class Refusal(NamedTuple):
    """Why a request is not judged: the HTTP status and one line."""

    status: int
    error: str


def asked_in(body: bytes) -> Asked | Refusal:
    """What a body asks; a refusal for what is no JSON or has not the fields of `Asked`."""
    try:
        return Asked.model_validate(loads(body))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"][:1]) or "body"
        return Refusal(400, f"{where}: {first['msg']}; expected request and response, each text or messages")
    except (ValueError, RecursionError) as error:
        return Refusal(400, f"body: no JSON ({str(error)[:120]})")


def answer_of(judgement: Judgement, seconds: float) -> dict[str, Any]:
    """What `/judge` answers."""
    probe = None
    if judgement.probe is not None:
        probe = {"label": probe_reading(judgement.probe).answer.label, "score": judgement.probe}
    return {
        "label": judgement.label,
        "unscored": judgement.unscored,
        "detail": judgement.detail,
        "score": judgement.score,
        "probe": probe,
        "prompt_tokens": judgement.prompt_tokens,
        "seconds": round(seconds, 6),
    }


@contextmanager
def listening(judges: Judges, host: str, port: int, key: str | None) -> Iterator[ThreadingHTTPServer]:
    """A server that is bound to its port; `serve_forever` answers. Raises `OSError` where it is taken.

    `judges` is called from one thread of its own, so that torch keeps one pool of threads.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="judge") as worker:

        def timed(asked: Asked) -> dict[str, Any]:
            began = time.perf_counter()
            judgement = judges(sample_asked(asked))
            return answer_of(judgement, time.perf_counter() - began)

        class Handler(_Handler):
            expected = f"Bearer {key}".encode() if key else None

            def judged(self, asked: Asked) -> dict[str, Any]:
                return worker.submit(timed, asked).result()

        with _Server((host, port), Handler) as server:
            yield server


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


class _Handler(BaseHTTPRequestHandler):
    """Of one connection; `listening` says what judges."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "monitorbench", ""
    timeout = _SECONDS_TO_SEND
    disable_nagle_algorithm = True
    expected: bytes | None

    def judged(self, asked: Asked) -> dict[str, Any]:
        """The answer to what is asked."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """`/health`."""
        if self.path == "/health":
            self._send(200, {"status": "ok"})
        else:
            self._refuse(Refusal(404, f"{self.path[:80]}: not here; expected POST /judge or GET /health"))

    def do_POST(self) -> None:
        """`/judge`."""
        refusal = self._refusal()
        if refusal is not None:
            self._refuse(refusal)
            return
        asked = asked_in(self.rfile.read(int(self.headers["Content-Length"])))
        if isinstance(asked, Refusal):
            self._send(asked.status, {"error": asked.error})
            return
        try:
            answer = self.judged(asked)
        except Exception:  # of this request alone: the others are still answered
            _log.exception("serve: a request could not be judged")
            self._refuse(Refusal(500, "the request could not be judged; the server's log says why"))
            return
        self._send(200, answer)

    def log_message(self, *_: object) -> None:
        """Nothing: what is asked is nobody's business, and how often is the caller's."""

    def _refusal(self) -> Refusal | None:
        given = self.headers.get("Authorization", "").encode("latin-1", "replace")
        if self.expected is not None and not hmac.compare_digest(given, self.expected):
            return Refusal(401, "no key; expected Authorization: Bearer KEY, with the key of server.json")
        if self.path != "/judge":
            return Refusal(404, f"{self.path[:80]}: not here; expected POST /judge or GET /health")
        # A page in somebody's browser can send a plain text anywhere, but not this.
        if self.headers.get_content_type() != "application/json":
            return Refusal(415, "expected Content-Type: application/json")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or "Transfer-Encoding" in self.headers:
            return Refusal(411, "no length; expected Content-Length")
        if len(length) > 12 or int(length) > MOST_BYTES:
            return Refusal(413, f"{length[:20]} bytes; expected at most {MOST_BYTES}")
        return None

    def _refuse(self, refusal: Refusal) -> None:
        """Say why, and close: what was not read of the body would pass for the next request."""
        self.close_connection = True
        self._send(refusal.status, {"error": refusal.error})

    def _send(self, status: int, answer: Mapping[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
