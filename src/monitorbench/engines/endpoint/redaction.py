"""Takes the key that an endpoint was sent out of every text that comes from it.

An endpoint that wants the key published may echo it in any field, turned round or encoded. The key as it is,
reversed, in hexadecimal and in base64 are found, and both of the first with any of their characters escaped.
"""

import base64
import dataclasses
import re
from functools import lru_cache
from urllib.parse import quote

from monitorbench.engines.protocol import Reply

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
