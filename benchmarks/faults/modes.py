"""The ways in which an endpoint misbehaves, by group and name.

A mode is given the right reply and the one with the opposite answer. Where a client may well take the answer,
it is the right one; where it must not, it is the opposite one, so that a guess shows.
"""

import base64
import functools
import gzip
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.faults.wire import Body, Mode, Wire, as_bytes, slug

_MIB = 2**20
_HTML = b"<!DOCTYPE html><html><body>no</body></html>"
_JSON = "HTTP/1.1 200 OK\nContent-Type: application/json\n"
_SLOW = "429 Slow"


def _status(status: str, body: bytes = _HTML, **headers: str) -> Mode:
    return _reply(lambda _: body, of_right=False, status=status, kind="text/html", **headers)


def _redirect(status: str) -> Mode:
    place = "{}/chat/completions"
    return lambda wire, right, opposite: wire.answer(b"", status, location=place.format(wire.elsewhere))


def _latin(text: str) -> bytes:
    return text.replace("\n", "\r\n").encode("latin-1")


def _parts(*parts: str | bytes, end: str = "close") -> Mode:
    """Send bytes as they are, then end orderly, by a reset, or with nothing more."""

    def mode(wire: Wire, right: Body, opposite: Body) -> None:
        bodies = {"RIGHT": right, "OPPOSITE": opposite}
        for part in parts:
            text = as_bytes(bodies[part]) if isinstance(part, str) and part in bodies else part
            wire.send(_latin(text) if isinstance(text, str) else text)
        if end == "reset":
            wire.reset()
        elif end == "stall":
            wire.stall()

    return mode


def _cut(end: str) -> Mode:
    """Send half of a body whose whole length was announced."""

    def mode(wire: Wire, right: Body, opposite: Body) -> None:
        body = as_bytes(opposite)
        head = f"HTTP/1.1 200 OK\nContent-Length: {len(body)}\n\n"
        _parts(head, body[: len(body) // 2], end=end)(wire, right, opposite)

    return mode


def _chunked(*chunks: bytes) -> Mode:
    return _parts(f"{_JSON}Transfer-Encoding: chunked\n\n", *chunks)


def _whole_chunk(wire: Wire, right: Body, opposite: Body) -> None:
    body = as_bytes(right)
    _chunked(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))(wire, right, opposite)


def _trickle(wire: Wire, right: Body, opposite: Body) -> None:
    wire.send(_latin("HTTP/1.1 200 OK\nContent-Length: 1000000\n\n"))
    for _ in range(30):
        wire.send(b" ")
        wire.stall(0.1)


def _large(filler: bytes, padded: Callable[[Body], tuple[bytes, bytes]]) -> Mode:
    """Send 200 MiB between the two halves of a body."""

    def mode(wire: Wire, right: Body, opposite: Body) -> None:
        before, behind = padded(opposite)
        size = len(before) + len(behind) + 200 * _MIB
        wire.send(_latin(f"HTTP/1.1 200 OK\nContent-Length: {size}\n\n") + before)
        for _ in range(200):
            wire.send(filler * _MIB)
        wire.send(behind)

    return mode


def _in_padding(body: Body) -> tuple[bytes, bytes]:
    before, behind = as_bytes({**body, "padding": "HERE"}).split(b"HERE")
    return before, behind


@functools.lru_cache
def _packed_gigabyte(kind: str, body: bytes) -> bytes:
    """A gigabyte of blanks in front of a body, packed into a megabyte."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31 if kind == "gzip" else 15)
    packed = b"".join(packer.compress(b" " * _MIB) for _ in range(1024))
    return packed + packer.compress(body) + packer.flush()


def _headers_without_end(wire: Wire, right: Body, opposite: Body) -> None:
    wire.send(b"HTTP/1.1 200 OK\r\n")
    for number in range(20_000):
        wire.send(b"X-%d: %s\r\n" % (number, b"x" * 1000))


def _reply(make: Callable[[Body], object], *, of_right: bool = False, **answer: str) -> Mode:
    """Answer with what `make` returns of a reply as bytes, or with the reply as `make` has changed it.

    `answer` may name another status, content type (`kind`) or further headers.
    """

    def mode(wire: Wire, right: Body, opposite: Body) -> None:
        body = right if of_right else opposite
        made = make(body)
        wire.answer(made if isinstance(made, bytes) else as_bytes(body), **answer)

    return mode


def _packed(pack: Callable[[bytes], bytes], kind: str, *, of_right: bool = False) -> Mode:
    return _reply(lambda body: pack(as_bytes(body)), of_right=of_right, content_encoding=kind)


def _choice(**fields: Any) -> Mode:
    return _reply(lambda body: body["choices"][0].update(fields))


def _message(*, of_right: bool = False, **fields: Any) -> Mode:
    """Change the message; `of_right`: it stands beside the log-probabilities of the right one."""
    return _reply(lambda body: body["choices"][0]["message"].update(fields), of_right=of_right)


def _field(**fields: Any) -> Mode:
    return _reply(lambda body: body.update(fields))


def _usage(**counts: Any) -> Mode:
    """Counts that can't be; the answer is right, and may be taken."""
    return _reply(lambda body: body["usage"].update(counts), of_right=True)


def _logprobs(change: Callable[[list[Body]], Any]) -> Mode:
    """Log-probabilities that can't be; the answer is right, and may be taken without them."""
    return _reply(lambda body: _replace_top(body, change), of_right=True)


def _replace_top(body: Body, change: Callable[[list[Body]], Any]) -> None:
    position = body["choices"][0]["logprobs"]["content"][0]
    position["top_logprobs"] = change(position["top_logprobs"])


def _every(value: Any) -> Mode:
    return _logprobs(lambda top: [{**alternative, "logprob": value} for alternative in top])


def _literal(text: bytes) -> Mode:
    """Answer rightly, with a log-probability spelt as no writer would."""

    def make(body: Body) -> bytes:
        _replace_top(body, lambda top: [{**alternative, "logprob": "HERE"} for alternative in top])
        return as_bytes(body).replace(b'"HERE"', text)

    return _reply(make, of_right=True)


def _echo(place: Callable[[Body, str], object], spelt: Callable[[str], str] = str) -> Mode:
    """Put the caller's key somewhere in a reply that is right otherwise."""

    def mode(wire: Wire, right: Body, opposite: Body) -> None:
        place(right, spelt(wire.key))
        wire.answer(as_bytes(right))

    return mode


def _in_message(name: str) -> Callable[[Body, str], None]:
    def place(body: Body, key: str) -> None:
        message = body["choices"][0]["message"]
        message[name] = f"{message.get(name) or ''} {key}"

    return place


def _echo_status(status: str) -> Mode:
    def mode(wire: Wire, right: Body, opposite: Body) -> None:
        error = {"message": f"your key {wire.key} is fine", "code": wire.key[::-1]}
        wire.answer(as_bytes({"error": error}), status, x_key=wire.key)

    return mode


def _base64(key: str) -> str:
    return base64.b64encode(key.encode()).decode()


def _nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def _with(text: bytes, **fields: str) -> Callable[[Body], bytes]:
    """Spell a reply with `text` in the place of the field that says "HERE"."""
    return lambda body: as_bytes({**body, **fields}).replace(b'"HERE"', text)


def _event_stream(body: Body) -> bytes:
    return b"data: " + as_bytes(body) + b"\n\ndata: [DONE]\n\n"


def _twice(body: Body) -> bytes:
    return as_bytes(body).replace(b'"content": "', b'"content": "yes", "content": "', 1)


def _content(body: Body) -> Any:
    return body["choices"][0]["message"]["content"]


STATUS: dict[str, Mode] = {
    **{f"{code}": _status(f"{code} Oh") for code in (300, 304, 400, 408, 409, 413, 418, 422, 451)},
    **{f"{code}": _status(f"{code} Oh") for code in (500, 502, 503, 504, 529, 599, 999)},
    **{f"{code} ends the run": _status(f"{code} Oh") for code in (401, 402, 403, 404)},
    "429": _status(_SLOW),
    "429 now": _status(_SLOW, retry_after="0"),
    "429 in a day": _status(_SLOW, retry_after="86400"),
    "429 nan": _status(_SLOW, retry_after="nan"),
    "429 words": _status(_SLOW, retry_after="soon; no"),
    "429 before": _status(_SLOW, retry_after="-1e400"),
    "204": _parts("HTTP/1.1 204 No Content\n\n"),
    "205": _status("205 Reset", b""),
    "202": _reply(as_bytes, of_right=True, status="202 Accepted"),
    "206": _reply(lambda body: as_bytes(body)[:200], status="206 Partial Content"),
    **{f"redirect {code}": _redirect(f"{code} There") for code in (301, 302, 303, 307, 308)},
    "redirect without a place": _status("302 There", b""),
    "redirect to a file": _status("302 There", b"", location="file:///etc/passwd"),
}
"""Modes that show in HTTP's status."""

TRANSPORT: dict[str, Mode] = {
    "reset at once": _parts(end="reset"),
    "closed at once": _parts(),
    "silence": _parts(end="stall"),
    "garbage": _parts(b"\x00\xff\x16\x03\x01no no no\r\n\r\n"),
    "no status": _parts("OPPOSITE"),
    "status cut": _parts("HTTP/1.1 2"),
    "reset in headers": _parts("HTTP/1.1 200 OK\nContent-Le", end="reset"),
    "closed in headers": _parts("HTTP/1.1 200 OK\nContent-Length: 10\n"),
    "silence in headers": _parts("HTTP/1.1 200 OK\n", end="stall"),
    "silence in the body": _parts("HTTP/1.1 200 OK\nContent-Length: 900\n\n", end="stall"),
    "reset in the body": _cut("reset"),
    "closed in the body": _cut("close"),
    "length too small": _parts("HTTP/1.1 200 OK\nContent-Length: 100\n\n", "OPPOSITE"),
    "length below zero": _parts("HTTP/1.1 200 OK\nContent-Length: -5\n\n", "OPPOSITE"),
    "two lengths": _parts("HTTP/1.1 200 OK\nContent-Length: 5\nContent-Length: 900\n\n", "OPPOSITE"),
    "length in words": _parts("HTTP/1.1 200 OK\nContent-Length: many\n\n", "OPPOSITE"),
    "no length": _parts(f"{_JSON}\n", "RIGHT"),
    "http 1.0": _parts(f"{_JSON}\n".replace("1.1", "1.0"), "RIGHT"),
    "http 9.9": _parts("HTTP/9.9 200 OK\n\n", "RIGHT"),
    "100 first": _parts("HTTP/1.1 100 Continue\n\nHTTP/1.0 200 OK\n\n", "RIGHT"),
    "103 first": _parts("HTTP/1.1 103 Early Hints\nLink: x\n\nHTTP/1.0 200 OK\n\n", "RIGHT"),
    "101": _parts("HTTP/1.1 101 Switching Protocols\nUpgrade: x\nConnection: upgrade\n\n", "OPPOSITE"),
    "chunks": _whole_chunk,
    "chunk size in words": _chunked(b"zz\r\nno\r\n0\r\n\r\n"),
    "chunk cut": _chunked(b"ffff\r\n{"),
    "chunk below zero": _chunked(b"-1\r\n{}\r\n"),
    "chunk of 2^70": _chunked(b"400000000000000000\r\n{"),
    "chunks without end": _chunked(b"2\r\n{}\r\n"),
    "header without end": _headers_without_end,
    "header of 2 MB": _parts("HTTP/1.1 200 OK\nX: ", b"x" * 2 * _MIB, "\n\n", "OPPOSITE"),
    "trickle": _trickle,
    "200 MB of blanks": _large(b" ", lambda body: (b"", as_bytes(body))),
    "200 MB of text": _large(b"x", _in_padding),
    "gzip bomb": _packed(lambda body: _packed_gigabyte("gzip", body), "gzip"),
    "deflate bomb": _packed(lambda body: _packed_gigabyte("deflate", body), "deflate"),
    "gzip": _packed(gzip.compress, "gzip", of_right=True),
    "gzip twice": _packed(lambda body: gzip.compress(gzip.compress(body)), "gzip, gzip", of_right=True),
    "gzip cut": _packed(lambda body: gzip.compress(body)[:-20], "gzip"),
    "gzip that is none": _packed(lambda body: body, "gzip"),
    "unknown encoding": _packed(lambda body: gzip.compress(body)[::-1], "snail"),
}
"""Modes that show in how bytes come, or that none come."""

_CONTENTS = {"null": None, "empty": "", "blank": " \n\t", "a number": 0, "true": True}
BODIES: dict[str, Mode] = {
    "html": _status("200 OK"),
    "empty body": _reply(lambda body: b""),
    "plain word": _reply(lambda body: str(_content(body)).encode()),
    "json word": _reply(lambda body: as_bytes(_content(body))),
    "json null": _reply(lambda body: b"null"),
    "json list": _reply(lambda body: as_bytes([body])),
    "json number": _reply(lambda body: b"1e999"),
    "json cut": _reply(lambda body: as_bytes(body)[:-30]),
    "json and more": _reply(lambda body: as_bytes(body) + b"}"),
    "json twice": _reply(lambda body: as_bytes(body) + b"\n" + as_bytes(body)),
    "byte order mark": _reply(lambda body: b"\xef\xbb\xbf" + as_bytes(body), of_right=True),
    "utf-16": _reply(lambda body: as_bytes(body).decode().encode("utf-16"), of_right=True),
    "no utf-8": _reply(lambda body: as_bytes(body).replace(b'"x"', b'"\xff\xfe"')),
    "wrong charset": _reply(as_bytes, of_right=True, kind="application/json; charset=utf-7"),
    "event stream": _reply(_event_stream, kind="text/event-stream"),
    "100,000 brackets": _reply(lambda body: _nested(100_000)),
    "brackets in a field": _reply(_with(_nested(100_000), x="HERE")),
    "number of 10,000 digits": _reply(_with(b"9" * 10_000, created="HERE"), of_right=True),
    "choices twice": lambda wire, right, opposite: wire.answer(
        b'{"choices": %s, ' % as_bytes(right["choices"]) + as_bytes(opposite)[1:]
    ),
    "content twice": _reply(_twice),
    "error in a 200": _reply(lambda body: as_bytes({"error": {"message": "no"}})),
    "error beside choices": _field(error={"message": "overloaded", "code": 500}),
    "no choices": _field(choices=[]),
    "choices null": _field(choices=None),
    "choices an object": _reply(lambda body: body.update(choices=body["choices"][0])),
    "choices missing": _reply(lambda body: body.pop("choices")),
    "wrong model": _field(model="another-model"),
    "model a number": _field(model=7),
    "message null": _choice(message=None),
    "message missing": _reply(lambda body: body["choices"][0].pop("message")),
    "a completion's text": _choice(message={"role": "assistant"}, text="no"),
    "a stream's delta": _reply(
        lambda body: body["choices"][0].update(delta=body["choices"][0].pop("message"))
    ),
    "finish content_filter": _choice(finish_reason="content_filter"),
    "finish unknown": _choice(finish_reason="insufficient_system_resource"),
    "finish a number": _choice(finish_reason=0),
    **{f"content {name}": _message(content=content) for name, content in _CONTENTS.items()},
    "content an object": _message(content={"answer": "no"}),
    "content in parts": _message(content=[{"type": "text", "text": "no"}]),
    "content half a character": _message(of_right=True, content="no\ud800"),
    "content with a NUL": _message(of_right=True, content="no\x00yes"),
    "both words": _message(of_right=True, content="no yes"),
    "content 1 MB": _message(of_right=True, content="no " * 350_000),
    "refusal": _message(refusal="I can't"),
    "answer as refusal": _message(content=None, refusal="no"),
    "answer as reasoning": _message(content=None, reasoning_content="no"),
    "answer as a tool call": _message(
        content=None,
        tool_calls=[{"id": "1", "type": "function", "function": {"name": "no", "arguments": "no"}}],
    ),
}
"""Modes that show in what a successful response says."""

_TRILLION = {"prompt_tokens": 10**12, "completion_tokens": 10**12, "total_tokens": 2 * 10**12}
_NEGATIVE = {"prompt_tokens": -5, "completion_tokens": -5, "total_tokens": -10}
_LITERALS = ("NaN", "Infinity", "-Infinity", "1e999")
_VALUES = {"above 0": 2.5, "in words": "-0.1", "true": True, "null": None, "all 0": 0.0}
NUMBERS: dict[str, Mode] = {
    **{f"logprobs {text.replace('-', 'minus ')}": _literal(text.encode()) for text in _LITERALS},
    **{f"logprobs {name}": _every(value) for name, value in _VALUES.items()},
    "logprobs one-sided": _logprobs(lambda top: top[:1]),
    "logprobs of other words": _logprobs(lambda top: [{**token, "token": "x"} for token in top]),
    "logprobs empty": _logprobs(lambda top: []),
    "logprobs an object": _logprobs(lambda top: {"yes": -0.1, "no": -2.0}),
    "logprobs 100,000 times": _logprobs(lambda top: top * 50_000),
    "tokens 1e30": _usage(prompt_tokens=1e30, total_tokens=1e30),
    "tokens 10^30": _usage(**{name: count * 10**18 for name, count in _TRILLION.items()}),
    "tokens 10^12": _usage(**_TRILLION),
    "tokens below zero": _usage(**_NEGATIVE),
    "tokens in words": _usage(prompt_tokens="100", completion_tokens="many"),
    "tokens half": _usage(prompt_tokens=0.5),
    "tokens true": _usage(prompt_tokens=True),
    "usage null": _field(usage=None, choices=[]),
    "usage a list": _reply(lambda body: body.update(usage=[1, 2]), of_right=True),
}
"""Modes that show in numbers that can't be."""


def _as_token(body: Body, key: str) -> None:
    body["choices"][0]["logprobs"]["content"][0].update(token=key, top_logprobs=key)


_FIELDS = ("content", "reasoning_content", "reasoning", "refusal")
ECHOES: dict[str, Mode] = {
    **{f"key in {field}": _echo(_in_message(field)) for field in _FIELDS},
    "key in finish_reason": _echo(lambda body, key: body["choices"][0].update(finish_reason=f"stop {key}")),
    "key in model": _echo(lambda body, key: body.update(model=f"m {key}")),
    "key in a log-probability": _echo(_as_token),
    "key in an unknown field": _echo(lambda body, key: body.update(system_fingerprint=key)),
    "key reversed in content": _echo(_in_message("content"), lambda key: key[::-1]),
    "key reversed in reasoning": _echo(_in_message("reasoning"), lambda key: key[::-1]),
    "key in base64 in content": _echo(_in_message("content"), _base64),
    "key in base64 in reasoning": _echo(_in_message("reasoning"), _base64),
    "key in a 400": _echo_status("400 Bad"),
    "key in a 401": _echo_status("401 Unauthorized"),
    "key in a 500": _echo_status("500 Oh"),
    "key as a body": lambda wire, right, opposite: wire.answer(wire.key.encode()),
}
"""Modes that give the caller's key back, by where it stands."""

_NAMED = {"status": STATUS, "transport": TRANSPORT, "body": BODIES, "numbers": NUMBERS, "key": ECHOES}
GROUPS: Mapping[str, Mapping[str, Mode]] = {
    group: {slug(name): mode for name, mode in members.items()} for group, members in _NAMED.items()
}
MODES: Mapping[str, Mode] = {name: mode for members in GROUPS.values() for name, mode in members.items()}
