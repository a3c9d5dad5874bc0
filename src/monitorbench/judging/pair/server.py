"""The judging server: `POST /judge` with a request and a response, one judgement back; `GET /health`.

One model, one thread that asks it, in the order in which requests come. A body is JSON as the standard has
it, and refused in one line; limits and key are the HTTP server's (`judging.http`).
"""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from monitorbench.judging.http import HttpAnswer, HttpServer, Refusal
from monitorbench.judging.http import listening as listening_at
from monitorbench.judging.listening import reached_at
from monitorbench.judging.pair.judgement import Judgement, Judges, sample_of
from monitorbench.judging.probed import probe_reading
from monitorbench.records import Message, Role, Sample
from monitorbench.strict_json import loads

_Messages = Annotated[tuple[Message, ...], Field(min_length=1)]


class JudgeRequest(BaseModel):
    """What `/judge` is sent; a text stands for one message, the user's and the assistant's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    request: str | _Messages
    response: str | _Messages


def sample_asked(asked: JudgeRequest) -> Sample:
    """The request and the response as a sample."""
    request, response = (
        (Message(role=role, content=one),) if isinstance(one, str) else one
        for role, one in ((Role.USER, asked.request), (Role.ASSISTANT, asked.response))
    )
    return sample_of(request, response)


def asked_in(body: bytes) -> JudgeRequest | Refusal:
    """What a body asks; a refusal for what is no JSON or has not the fields of `JudgeRequest`."""
    try:
        return JudgeRequest.model_validate(loads(body))
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
def listening(judges: Judges, host: str, port: int, key: str | None) -> Iterator[HttpServer]:
    """A server that is bound to its port; `serve_forever` answers. Raises `OSError` where it is taken.

    `judges` is called from one thread of its own, so that torch keeps one pool of threads.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="judge") as worker:

        def timed(asked: JudgeRequest) -> dict[str, Any]:
            began = time.perf_counter()
            judgement = judges(sample_asked(asked))
            return answer_of(judgement, time.perf_counter() - began)

        def judged(body: bytes, headers: Mapping[str, str]) -> HttpAnswer | Refusal:
            asked = asked_in(body)
            if isinstance(asked, Refusal):
                return asked
            return HttpAnswer(200, worker.submit(timed, asked).result())

        with listening_at({"/judge": judged}, host, port, key, names=(reached_at(host),)) as server:
            yield server
