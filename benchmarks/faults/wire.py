"""A connection of a chat endpoint, to be answered in any way, and all the ways that there are."""

import json
import re
import socket
import struct
from collections.abc import Callable
from typing import Any

Body = dict[str, Any]
Mode = Callable[["Wire", Body, Body], None]
"""Answers a request in some way, given the right reply and the one with the opposite answer."""


class Wire:
    """A connection, to be written to in any way: raw bytes, so that anything can be sent."""

    def __init__(self, sock: socket.socket, elsewhere: str, key: str) -> None:
        self._sock = sock
        self.elsewhere = elsewhere
        """The URL of the other origin."""
        self.key = key
        """What came as the caller's key."""

    def send(self, data: bytes) -> None:
        """Send as it is."""
        self._sock.sendall(data)

    def answer(
        self, body: bytes, status: str = "200 OK", kind: str = "application/json", **headers: str
    ) -> None:
        """Send a whole response; `retry_after="1"` becomes the header Retry-After."""
        lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send("\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1") + body)

    def reset(self) -> None:
        """End with a reset instead of an orderly end."""
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._sock.close()

    def stall(self, seconds: float = 3.0) -> None:
        """Say nothing, until the other side goes away."""
        self._sock.settimeout(seconds)
        try:
            self._sock.recv(1)
        except TimeoutError:
            return


def as_bytes(body: Any) -> bytes:
    """A JSON value as it goes over the wire."""
    return json.dumps(body).encode()


def slug(name: str) -> str:
    """A mode's name as a URL and a folder can have it."""
    return re.sub(r"[^a-zA-Z0-9.]+", "-", name)
