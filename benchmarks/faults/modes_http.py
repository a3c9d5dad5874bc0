"""The ways in which an endpoint misbehaves as a web server: by status, and by how bytes come.

What a mode is: `modes.MODES`.
"""

import functools
import gzip
import zlib
from collections.abc import Callable

from benchmarks.faults.wire import Body, Mode, Wire, as_bytes

_MIB = 2**20
_HTML = b"<!DOCTYPE html><html><body>no</body></html>"


def _status(status: str, body: bytes = _HTML, **headers: str) -> Mode:
    return lambda wire, right, turned: wire.answer(body, status, "text/html", **headers)


def _redirect(status: str) -> Mode:
    def mode(wire: Wire, right: Body, turned: Body) -> None:
        wire.answer(b"", status, location=f"{wire.elsewhere}/chat/completions")

    return mode


def _parts(*data: str | bytes, end: str = "close") -> Mode:
    """Bytes as they are, then an orderly end, a reset, or nothing more."""

    def mode(wire: Wire, right: Body, turned: Body) -> None:
        for part in data:
            body = {"RIGHT": as_bytes(right), "TURNED": as_bytes(turned)}
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
        body = as_bytes(turned)
        wire.send(_latin(f"HTTP/1.1 200 OK\nContent-Length: {len(body)}\n\n") + body[: len(body) // 2])
        if end == "reset":
            wire.reset()

    return mode


def _chunked(*chunks: bytes) -> Mode:
    head = "HTTP/1.1 200 OK\nContent-Type: application/json\nTransfer-Encoding: chunked\n\n"
    return lambda wire, right, turned: wire.send(_latin(head) + b"".join(chunks))


def _whole_chunk(wire: Wire, right: Body, turned: Body) -> None:
    head = "HTTP/1.1 200 OK\nContent-Type: application/json\nTransfer-Encoding: chunked\n\n"
    body = as_bytes(right)
    wire.send(_latin(head) + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))


def _trickle(wire: Wire, right: Body, turned: Body) -> None:
    wire.send(_latin("HTTP/1.1 200 OK\nContent-Length: 1000000\n\n"))
    for _ in range(30):
        wire.send(b" ")
        wire.stall(0.1)


def _large(wire: Wire, right: Body, turned: Body) -> None:
    body = as_bytes(turned)
    size = 200 * _MIB
    wire.send(_latin(f"HTTP/1.1 200 OK\nContent-Length: {size + len(body)}\n\n"))
    for _ in range(200):
        wire.send(b" " * _MIB)
    wire.send(body)


def _large_text(wire: Wire, right: Body, turned: Body) -> None:
    before, behind = as_bytes({**turned, "padding": "HERE"}).split(b"HERE")
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
        _packed_gigabyte(kind, as_bytes(turned)), content_encoding=kind
    )


def _headers_without_end(wire: Wire, right: Body, turned: Body) -> None:
    wire.send(b"HTTP/1.1 200 OK\r\n")
    for number in range(20_000):
        wire.send(b"X-%d: %s\r\n" % (number, b"x" * 1000))


def _packed(how: Callable[[bytes], bytes], kind: str, *, of_right: bool = False) -> Mode:
    return lambda wire, right, turned: wire.answer(
        how(as_bytes(right if of_right else turned)), content_encoding=kind
    )


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
    "204": _parts("HTTP/1.1 204 No Content\n\n"),
    "205": _status("205 Reset", b""),
    "202": lambda wire, right, turned: wire.answer(as_bytes(right), "202 Accepted"),
    "206": lambda wire, right, turned: wire.answer(as_bytes(turned)[:200], "206 Partial Content"),
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
