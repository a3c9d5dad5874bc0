"""Answers and refusals as one JSON object, and heads for which a request is refused in one line."""

import ipaddress
import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from starlette.datastructures import Headers
from starlette.requests import Request
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
"""A function from a path and the refusal of a request on it to the answer."""


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


MOST_HEAD = 2**15
"""Bytes of a request's line and headers."""


def to_another_host(headers: Headers, hosts: Collection[str]) -> Refusal | None:
    """The refusal of a request to another host than `hosts`, whose names are in lower case; None for others.

    A page whose own name leads here (DNS rebinding) sends that name as `Host`; an address has no name to be
    rebound.
    """
    host = headers.get("host", "")
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if not (name.lower() in hosts or _is_address(name)):
        return Refusal(
            403,
            f"Host {name[:80]!r}: not a name of this server; expected an IP address, localhost or its own "
            "name (of a guardrail also serve.names)",
        )
    return None


def from_a_page(headers: Headers) -> Refusal | None:
    """The refusal of a request that a web page of another place makes, as a browser says; None for others."""
    host = headers.get("host", "")
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        return Refusal(403, f"Origin {origin[:80]!r}: a page of another place; expected none")
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return Refusal(403, "Sec-Fetch-Site: a page of another place; expected none")
    return None


def malformed(request: Request) -> Refusal | None:
    """The refusal of a head that is too long, or that another reader may take for one of another length."""
    if sum(len(name) + len(value) + 4 for name, value in request.headers.raw) > MOST_HEAD:
        return Refusal(431, f"head of more than {MOST_HEAD} bytes")
    if "content-length" in request.headers and "transfer-encoding" in request.headers:
        return Refusal(400, "both Content-Length and Transfer-Encoding; expected one")
    return None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
