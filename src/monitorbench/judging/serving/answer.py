"""What a request is answered with: one JSON object, in one line where it is refused."""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from starlette.responses import Response


class Refusal(NamedTuple):
    """Why a request is not judged: the HTTP status and one line."""

    status: int
    error: str


class HttpAnswer(NamedTuple):
    """A status and a JSON object."""

    status: int
    body: Mapping[str, Any]


Refused = Callable[[str, Refusal], HttpAnswer]
"""From a path and the refusal of a request on it to the answer."""


def as_error(path: str, refusal: Refusal) -> HttpAnswer:
    """The usual answer to a refused request."""
    return HttpAnswer(refusal.status, {"error": refusal.error})


def reply(answer: HttpAnswer, closes: bool = False) -> Response:
    """The answer as a response; one that `closes` is the last on its connection."""
    headers = {"connection": "close"} if closes else {}
    if answer.status in (429, 503):
        headers["retry-after"] = "1"
    body = json.dumps(answer.body).encode()
    return Response(body, answer.status, headers, media_type="application/json")
