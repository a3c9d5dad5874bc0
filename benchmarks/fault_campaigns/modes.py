"""The ways in which an endpoint misbehaves.

Each takes the connection, the right reply and the one with the opposite answer. Where a client may well
take the answer, it is the right one; where it must not, it is the opposite one, so that a guess shows.
"""

import base64
import functools
import gzip
import json
import re
import zlib
from collections.abc import Callable
from typing import Any

from fault_campaigns.wire import Wire

Body = dict[str, Any]
Mode = Callable[[Wire, Body, Body], None]
_MIB = 2**20
_HTML = b"<!DOCTYPE html><html><body>no</body></html>"


def _bytes(body: Any) -> bytes:
    return json.dumps(body).encode()


def _status(status: str, body: bytes = _HTML, **headers: str) -> Mode:
    return lambda wire, right, turned: wire.answer(body, status, "text/html", **headers)


def _redirect(status: str) -> Mode:
    def mode(wire: Wire, right: Body, turned: Body) -> None:
        wire.answer(b"", status, location=f"{wire.elsewhere}/chat/completions")

    return mode


def _raw(make: Callable[[Body, Body], bytes]) -> Mode:
    """A successful response with that body."""
    return lambda wire, right, turned: wire.answer(make(right, turned))


def _changed(change: Callable[[Body], None], *, of_right: bool = False) -> Mode:
    """A successful response whose JSON is changed; of the opposite answer, unless it may be taken."""

    def mode(wire: Wire, right: Body, turned: Body) -> None:
        body = right if of_right else turned
        change(body)
        wire.answer(_bytes(body))

    return mode


def _choice(**fields: Any) -> Mode:
    return _changed(lambda body: body["choices"][0].update(fields))


def _message(**fields: Any) -> Mode:
    return _changed(lambda body: body["choices"][0]["message"].update(fields))


def _odd_message(**fields: Any) -> Mode:
    """A message that is no plain answer, beside the log-probabilities of the right one."""
    return _changed(lambda body: body["choices"][0]["message"].update(fields), of_right=True)


def _field(**fields: Any) -> Mode:
    return _changed(lambda body: body.update(fields))


def _usage(**counts: Any) -> Mode:
    """Counts that can't be; the answer is right, and may be taken."""
    return _changed(lambda body: body["usage"].update(counts), of_right=True)


def _logprobs(change: Callable[[list[Body]], Any]) -> Mode:
    """Log-probabilities that can't be; the answer is right, and may be taken without them."""

    def changed(body: Body) -> None:
        position = body["choices"][0]["logprobs"]["content"][0]
        position["top_logprobs"] = change(position["top_logprobs"])

    return _changed(changed, of_right=True)


def _every(value: Any) -> Mode:
    return _logprobs(lambda top: [{**one, "logprob": value} for one in top])


def _literal(name: str, text: bytes) -> Mode:
    """The right reply with a JSON value spelt as no writer would."""

    def make(right: Body, turned: Body) -> bytes:
        position = right["choices"][0]["logprobs"]["content"][0]
        position["top_logprobs"] = [{**one, "logprob": name} for one in position["top_logprobs"]]
        return _bytes(right).replace(_bytes(name), text)

    return _raw(make)


def _echo(place: Callable[[Body, str], None], spelt: Callable[[str], str] = str) -> Mode:
    """The caller's key, somewhere in a reply that is right otherwise."""

    def mode(wire: Wire, right: Body, turned: Body) -> None:
        place(right, spelt(wire.key))
        wire.answer(_bytes(right))

    return mode


def _in_message(name: str) -> Callable[[Body, str], None]:
    def place(body: Body, key: str) -> None:
        message = body["choices"][0]["message"]
        message[name] = f"{message.get(name) or ''} {key}"

    return place


def _echo_status(status: str) -> Mode:
    def mode(wire: Wire, right: Body, turned: Body) -> None:
        error = {"message": f"your key {wire.key} is fine", "code": wire.key[::-1]}
        wire.answer(_bytes({"error": error}), status, x_key=wire.key)

    return mode


def _parts(*data: str | bytes, end: str = "close") -> Mode:
    """Bytes as they are, then an orderly end, a reset, or nothing more."""

    def mode(wire: Wire, right: Body, turned: Body) -> None:
        for part in data:
            body = {"RIGHT": _bytes(right), "TURNED": _bytes(turned)}
            wire.send(body[part] if isinstance(part, str) and part in body else _latin(part))
        if end == "reset":
            wire.reset()
        elif end == "stall":
            wire.stall()

    return mode


def _latin(part: str | bytes) -> bytes:
    return part.replace("\n", "\r\n").encode("latin-1") if isinstance(part, str) else part


def _cut(end: str) -> Mode:
    """Half of a body whose whole length was announced."""

    def mode(wire: Wire, right: Body, turned: Body) -> None:
        body = _bytes(turned)
        wire.send(_latin(f"HTTP/1.1 200 OK\nContent-Length: {len(body)}\n\n") + body[: len(body) // 2])
        if end == "reset":
            wire.reset()

    return mode


def _chunked(*chunks: bytes) -> Mode:
    head = "HTTP/1.1 200 OK\nContent-Type: application/json\nTransfer-Encoding: chunked\n\n"
    return lambda wire, right, turned: wire.send(_latin(head) + b"".join(chunks))


def _whole_chunk(wire: Wire, right: Body, turned: Body) -> None:
    head = "HTTP/1.1 200 OK\nContent-Type: application/json\nTransfer-Encoding: chunked\n\n"
    body = _bytes(right)
    wire.send(_latin(head) + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))


def _trickle(wire: Wire, right: Body, turned: Body) -> None:
    wire.send(_latin("HTTP/1.1 200 OK\nContent-Length: 1000000\n\n"))
    for _ in range(30):
        wire.send(b" ")
        wire.stall(0.1)


def _large(wire: Wire, right: Body, turned: Body) -> None:
    body = _bytes(turned)
    size = 200 * _MIB
    wire.send(_latin(f"HTTP/1.1 200 OK\nContent-Length: {size + len(body)}\n\n"))
    for _ in range(200):
        wire.send(b" " * _MIB)
    wire.send(body)


def _large_text(wire: Wire, right: Body, turned: Body) -> None:
    before, behind = _bytes({**turned, "padding": "HERE"}).split(b"HERE")
    wire.send(
        _latin(f"HTTP/1.1 200 OK\nContent-Length: {len(before) + len(behind) + 200 * _MIB}\n\n") + before
    )
    for _ in range(200):
        wire.send(b"x" * _MIB)
    wire.send(behind)


@functools.lru_cache
def _packed_gigabyte(kind: str, body: bytes) -> bytes:
    """A gigabyte of blanks in front of a body, packed into a megabyte."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31 if kind == "gzip" else 15)
    packed = b"".join(packer.compress(b" " * _MIB) for _ in range(1024))
    return packed + packer.compress(body) + packer.flush()


def _bomb(kind: str) -> Mode:
    return lambda wire, right, turned: wire.answer(
        _packed_gigabyte(kind, _bytes(turned)), content_encoding=kind
    )


def _headers_without_end(wire: Wire, right: Body, turned: Body) -> None:
    wire.send(b"HTTP/1.1 200 OK\r\n")
    for number in range(20_000):
        wire.send(b"X-%d: %s\r\n" % (number, b"x" * 1000))


def _packed(how: Callable[[bytes], bytes], kind: str, *, of_right: bool = False) -> Mode:
    return lambda wire, right, turned: wire.answer(
        how(_bytes(right if of_right else turned)), content_encoding=kind
    )


def _nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


STATUS: dict[str, Mode] = {
    **{f"{code}": _status(f"{code} Oh") for code in (300, 304, 400, 408, 409, 413, 418, 422, 451)},
    **{f"{code}": _status(f"{code} Oh") for code in (500, 502, 503, 504, 529, 599, 999)},
    **{f"{code} ends the run": _status(f"{code} Oh") for code in (401, 402, 403, 404)},
    "429": _status("429 Slow"),
    "429 now": _status("429 Slow", retry_after="0"),
    "429 in a day": _status("429 Slow", retry_after="86400"),
    "429 nan": _status("429 Slow", retry_after="nan"),
    "429 words": _status("429 Slow", retry_after="soon; no"),
    "429 before": _status("429 Slow", retry_after="-1e400"),
    "500 as json": _raw(lambda right, turned: b""),
    "204": _parts("HTTP/1.1 204 No Content\n\n"),
    "205": _status("205 Reset", b""),
    "202": lambda wire, right, turned: wire.answer(_bytes(right), "202 Accepted"),
    "206": lambda wire, right, turned: wire.answer(_bytes(turned)[:200], "206 Partial Content"),
    **{f"redirect {code}": _redirect(f"{code} There") for code in (301, 302, 303, 307, 308)},
    "redirect without a place": _status("302 There", b""),
    "redirect to a file": _status("302 There", b"", location="file:///etc/passwd"),
}
"""By HTTP's status."""

TRANSPORT: dict[str, Mode] = {
    "reset at once": _parts(end="reset"),
    "closed at once": _parts(),
    "silence": _parts(end="stall"),
    "garbage": _parts(b"\x00\xff\x16\x03\x01no no no\r\n\r\n"),
    "no status": _parts("TURNED"),
    "status cut": _parts("HTTP/1.1 2"),
    "reset in headers": _parts("HTTP/1.1 200 OK\nContent-Le", end="reset"),
    "closed in headers": _parts("HTTP/1.1 200 OK\nContent-Length: 10\n"),
    "silence in headers": _parts("HTTP/1.1 200 OK\n", end="stall"),
    "silence in the body": _parts("HTTP/1.1 200 OK\nContent-Length: 900\n\n", end="stall"),
    "reset in the body": _cut("reset"),
    "closed in the body": _cut("close"),
    "length too small": _parts("HTTP/1.1 200 OK\nContent-Length: 100\n\n", "TURNED"),
    "length below zero": _parts("HTTP/1.1 200 OK\nContent-Length: -5\n\n", "TURNED"),
    "two lengths": _parts("HTTP/1.1 200 OK\nContent-Length: 5\nContent-Length: 900\n\n", "TURNED"),
    "length in words": _parts("HTTP/1.1 200 OK\nContent-Length: many\n\n", "TURNED"),
    "no length": _parts("HTTP/1.1 200 OK\nContent-Type: application/json\n\n", "RIGHT"),
    "http 1.0": _parts("HTTP/1.0 200 OK\nContent-Type: application/json\n\n", "RIGHT"),
    "http 9.9": _parts("HTTP/9.9 200 OK\n\n", "RIGHT"),
    "100 first": _parts("HTTP/1.1 100 Continue\n\nHTTP/1.0 200 OK\n\n", "RIGHT"),
    "103 first": _parts("HTTP/1.1 103 Early Hints\nLink: x\n\nHTTP/1.0 200 OK\n\n", "RIGHT"),
    "101": _parts("HTTP/1.1 101 Switching Protocols\nUpgrade: x\nConnection: upgrade\n\n", "TURNED"),
    "chunks": _whole_chunk,
    "chunk size in words": _chunked(b"zz\r\nno\r\n0\r\n\r\n"),
    "chunk cut": _chunked(b"ffff\r\n{"),
    "chunk below zero": _chunked(b"-1\r\n{}\r\n"),
    "chunk of 2^70": _chunked(b"400000000000000000\r\n{"),
    "chunks without end": _chunked(b"2\r\n{}\r\n"),
    "header without end": _headers_without_end,
    "header of 2 MB": _parts("HTTP/1.1 200 OK\nX: ", b"x" * 2 * _MIB, "\n\n", "TURNED"),
    "trickle": _trickle,
    "200 MB of blanks": _large,
    "200 MB of text": _large_text,
    "gzip bomb": _bomb("gzip"),
    "deflate bomb": _bomb("deflate"),
    "gzip": _packed(gzip.compress, "gzip", of_right=True),
    "gzip twice": _packed(lambda body: gzip.compress(gzip.compress(body)), "gzip, gzip", of_right=True),
    "gzip cut": _packed(lambda body: gzip.compress(body)[:-20], "gzip"),
    "gzip that is none": _packed(lambda body: body, "gzip"),
    "unknown encoding": _packed(lambda body: gzip.compress(body)[::-1], "snail"),
}
"""By how bytes come, or don't."""

BODIES: dict[str, Mode] = {
    "html": lambda wire, right, turned: wire.answer(_HTML, kind="text/html"),
    "empty body": _raw(lambda right, turned: b""),
    "plain word": _raw(lambda right, turned: turned["choices"][0]["message"]["content"].encode()),
    "json word": _raw(lambda right, turned: _bytes(turned["choices"][0]["message"]["content"])),
    "json null": _raw(lambda right, turned: b"null"),
    "json list": _raw(lambda right, turned: _bytes([turned])),
    "json number": _raw(lambda right, turned: b"1e999"),
    "json cut": _raw(lambda right, turned: _bytes(turned)[:-30]),
    "json and more": _raw(lambda right, turned: _bytes(turned) + b"}"),
    "json twice": _raw(lambda right, turned: _bytes(turned) + b"\n" + _bytes(turned)),
    "byte order mark": _raw(lambda right, turned: b"\xef\xbb\xbf" + _bytes(right)),
    "utf-16": _raw(lambda right, turned: json.dumps(right).encode("utf-16")),
    "no utf-8": _raw(lambda right, turned: _bytes(turned).replace(b'"x"', b'"\xff\xfe"')),
    "wrong charset": lambda wire, right, turned: wire.answer(
        _bytes(right), kind="application/json; charset=utf-7"
    ),
    "event stream": lambda wire, right, turned: wire.answer(
        b"data: " + _bytes(turned) + b"\n\ndata: [DONE]\n\n", kind="text/event-stream"
    ),
    "100,000 brackets": _raw(lambda right, turned: _nested(100_000)),
    "brackets in a field": _raw(
        lambda right, turned: _bytes({**turned, "x": "HERE"}).replace(b'"HERE"', _nested(100_000))
    ),
    "number of 10,000 digits": _raw(
        lambda right, turned: _bytes({**right, "created": "HERE"}).replace(b'"HERE"', b"9" * 10_000)
    ),
    "choices twice": _raw(
        lambda right, turned: b'{"choices": %s, ' % _bytes(right["choices"]) + _bytes(turned)[1:]
    ),
    "content twice": _raw(
        lambda right, turned: _bytes(turned).replace(b'"content": "', b'"content": "yes", "content": "', 1)
    ),
    "error in a 200": _raw(lambda right, turned: _bytes({"error": {"message": "no"}})),
    "error beside choices": _field(error={"message": "overloaded", "code": 500}),
    "no choices": _field(choices=[]),
    "choices null": _field(choices=None),
    "choices an object": _changed(lambda body: body.update(choices=body["choices"][0])),
    "choices missing": _changed(lambda body: body.pop("choices")),
    "wrong model": _field(model="another-model"),
    "model a number": _field(model=7),
    "message null": _choice(message=None),
    "message missing": _changed(lambda body: body["choices"][0].pop("message")),
    "a completion's text": _changed(
        lambda body: body["choices"][0].update(message={"role": "assistant"}, text="no")
    ),
    "a stream's delta": _changed(
        lambda body: body["choices"][0].update(delta=body["choices"][0].pop("message"))
    ),
    "finish content_filter": _choice(finish_reason="content_filter"),
    "finish unknown": _choice(finish_reason="insufficient_system_resource"),
    "finish a number": _choice(finish_reason=0),
    "content null": _message(content=None),
    "content empty": _message(content=""),
    "content blank": _message(content=" \n\t"),
    "content a number": _message(content=0),
    "content true": _message(content=True),
    "content an object": _message(content={"answer": "no"}),
    "content in parts": _message(content=[{"type": "text", "text": "no"}]),
    "content half a character": _odd_message(content="no\ud800"),
    "content with a NUL": _odd_message(content="no\x00yes"),
    "both words": _odd_message(content="no yes"),
    "content 1 MB": _odd_message(content="no " * 350_000),
    "refusal": _message(refusal="I can't"),
    "answer as refusal": _message(content=None, refusal="no"),
    "answer as reasoning": _message(content=None, reasoning_content="no"),
    "answer as a tool call": _message(
        content=None,
        tool_calls=[{"id": "1", "type": "function", "function": {"name": "no", "arguments": "no"}}],
    ),
}
"""By what a successful response says."""

NUMBERS: dict[str, Mode] = {
    "logprobs NaN": _literal("HERE", b"NaN"),
    "logprobs Infinity": _literal("HERE", b"Infinity"),
    "logprobs minus Infinity": _literal("HERE", b"-Infinity"),
    "logprobs 1e999": _literal("HERE", b"1e999"),
    "logprobs above 0": _every(2.5),
    "logprobs in words": _every("-0.1"),
    "logprobs true": _every(True),
    "logprobs null": _every(None),
    "logprobs all 0": _every(0.0),
    "logprobs one-sided": _logprobs(lambda top: top[:1]),
    "logprobs of other words": _logprobs(lambda top: [{**one, "token": "x"} for one in top]),
    "logprobs empty": _logprobs(lambda top: []),
    "logprobs an object": _logprobs(lambda top: {"yes": -0.1, "no": -2.0}),
    "logprobs 100,000 times": _logprobs(lambda top: top * 50_000),
    "tokens 1e30": _usage(prompt_tokens=1e30, total_tokens=1e30),
    "tokens 10^30": _usage(prompt_tokens=10**30, completion_tokens=10**30, total_tokens=2 * 10**30),
    "tokens 10^12": _usage(prompt_tokens=10**12, completion_tokens=10**12, total_tokens=2 * 10**12),
    "tokens below zero": _usage(prompt_tokens=-5, completion_tokens=-5, total_tokens=-10),
    "tokens in words": _usage(prompt_tokens="100", completion_tokens="many"),
    "tokens half": _usage(prompt_tokens=0.5),
    "tokens true": _usage(prompt_tokens=True),
    "usage null": _field(usage=None, choices=[]),
    "usage a list": _changed(lambda body: body.update(usage=[1, 2]), of_right=True),
}
"""By numbers that can't be."""

ECHOES: dict[str, Mode] = {
    "key in content": _echo(_in_message("content")),
    "key in reasoning_content": _echo(_in_message("reasoning_content")),
    "key in reasoning": _echo(_in_message("reasoning")),
    "key in refusal": _echo(_in_message("refusal")),
    "key in finish_reason": _echo(lambda body, key: body["choices"][0].update(finish_reason=f"stop {key}")),
    "key in model": _echo(lambda body, key: body.update(model=f"m {key}")),
    "key in a log-probability": _echo(
        lambda body, key: body["choices"][0]["logprobs"]["content"][0].update(token=key, top_logprobs=key)
    ),
    "key in an unknown field": _echo(lambda body, key: body.update(system_fingerprint=key)),
    "key reversed in content": _echo(_in_message("content"), lambda key: key[::-1]),
    "key reversed in reasoning": _echo(_in_message("reasoning"), lambda key: key[::-1]),
    "key in base64 in content": _echo(
        _in_message("content"), lambda key: base64.b64encode(key.encode()).decode()
    ),
    "key in base64 in reasoning": _echo(
        _in_message("reasoning"), lambda key: base64.b64encode(key.encode()).decode()
    ),
    "key in a 400": _echo_status("400 Bad"),
    "key in a 401": _echo_status("401 Unauthorized"),
    "key in a 500": _echo_status("500 Oh"),
    "key as a body": lambda wire, right, turned: wire.answer(wire.key.encode()),
}
"""By where the caller's key comes back."""

MODES: dict[str, Mode] = {
    re.sub(r"[^a-zA-Z0-9.]+", "-", name): mode
    for group in (STATUS, TRANSPORT, BODIES, NUMBERS, ECHOES)
    for name, mode in group.items()
}
"""All of them, by a name that a URL and a folder can have."""
