"""The log-probabilities that an endpoint gives at the label's position, whatever form it writes them in.

Forms are those of chat completions, of completions as some servers keep them for chats (lists side by side),
and alternatives as an object. What is no log-probability makes the whole answer a bad one.
"""

import math
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from pydantic import BaseModel, StrictFloat, StrictInt, TypeAdapter, ValidationError, model_validator

_ROUNDING = 1e-3
"""Log-probabilities of 0 may come out as slightly more; anything beyond is no log-probability."""
_LOWEST = -9999.0
"""The API's number for minus infinity."""
_MOST_PROBABILITY = 1.05
"""Most probability of a position's alternatives together; the excess over 1 is a server's rounding."""
_ENDINGS = 2
"""Tokens that may stand behind an answer: more of them, and it is not the answer that was found."""


class BadResponse(Exception):
    """Something in a body that no honest answer has; the text says what."""


class _Token(BaseModel):
    token: str
    logprob: StrictFloat | StrictInt | None = None


class _Position(_Token):
    top_logprobs: list[_Token] = []

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, given: Any) -> Any:
        """Alternatives may be an object, or null."""
        if not isinstance(given, dict):
            return given
        top = given.get("top_logprobs") or []
        if isinstance(top, dict):
            top = [{"token": token, "logprob": logprob} for token, logprob in top.items()]
        return {**given, "top_logprobs": top}


class _Logprobs(BaseModel):
    content: list[_Position] | None = None

    @model_validator(mode="before")
    @classmethod
    def _side_by_side(cls, given: Any) -> Any:
        """Read the lists of completions: tokens, their log-probabilities, and each one's alternatives."""
        if not isinstance(given, dict) or given.get("content") or not isinstance(given.get("tokens"), list):
            return given
        tokens = given["tokens"]
        logprobs = given.get("token_logprobs") or [None] * len(tokens)
        tops = given.get("top_logprobs") or [None] * len(tokens)
        names = ("token", "logprob", "top_logprobs")
        return {
            "content": [
                dict(zip(names, row, strict=True)) for row in zip(tokens, logprobs, tops, strict=True)
            ]
        }


_LOGPROBS = TypeAdapter(_Logprobs | None)


def top_logprobs_at(given: Any, text: str, label_after: str | None) -> tuple[Mapping[str, float] | None, str]:
    """Log-probabilities by token text at the label's position; None, and why, where that is missing.

    Raises `BadResponse` where a value there is no log-probability, or all are not in the documented form.
    """
    try:
        logprobs = _LOGPROBS.validate_python(given)
    except ValidationError as error:
        raise BadResponse("log-probabilities not in the documented form") from error
    if logprobs is None or not logprobs.content:
        return None, ""
    if label_after is None:
        return None, "log-probabilities left out: the label does not stand behind its evidence"
    position = _label_position(logprobs.content, text, label_after)
    if position is None:
        return None, "log-probabilities left out: the label's position is not among them"
    top: dict[str, float] = {}
    alternatives = position.top_logprobs or [position]
    for token in alternatives:
        if token.logprob is None and any(other.logprob is not None for other in alternatives):
            token.logprob = _LOWEST  # null is how JSON without infinity writes it, beside a number
        if token.logprob is None or not token.logprob <= _ROUNDING:
            raise BadResponse(f"no log-probability: {token.token[:20]!r} has {token.logprob}")
        # Two tokens may be spelt alike: their probabilities add up.
        logprob = min(max(token.logprob, _LOWEST), 0.0)
        earlier = top.get(token.token, -math.inf)
        top[token.token] = min(max(logprob, earlier) + math.log1p(math.exp(-abs(logprob - earlier))), 0.0)
    if math.fsum(map(math.exp, top.values())) > _MOST_PROBABILITY:
        raise BadResponse("log-probabilities of more than 1 together")
    return top, ""


def _label_position(content: list[_Position], text: str, label_after: str) -> _Position | None:
    """The first position whose token continues where `label_after` ends; white space doesn't count.

    Reasoning in front of the text and the tokens that end the turn behind it are among the positions, too.
    """
    wanted, written = _squeezed(label_after), _squeezed(text)
    tokens = [_squeezed(position.token) for position in content]
    starts = [0, *accumulate(map(len, tokens))]
    joined = "".join(tokens)
    begin = 0 if written.startswith(joined) else joined.rfind(written)
    behind = [token for start, token in zip(starts, tokens, strict=False) if start >= begin + len(written)]
    if begin < 0 or sum(map(bool, behind)) > _ENDINGS:
        return None
    seen = ""
    for position, token, start in zip(content, tokens, starts, strict=False):
        if start < begin or not token:
            continue
        seen += token
        if not written.startswith(seen):
            return None
        if len(seen) > len(wanted):
            return position if seen.startswith(wanted) else None
    return None


def _squeezed(text: str) -> str:
    return "".join(text.split())
