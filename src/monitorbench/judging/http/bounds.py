"""What one connection may send and take its time for, and how many of something there may be at once."""

import io
import socket
import threading
import time
from typing import Any

MOST_HEAD = 2**15
"""Bytes of a request's line and headers."""


class TooLong(Exception):
    """A head of more than `MOST_HEAD` bytes."""


class Incoming(io.RawIOBase):
    """What a connection sends, each request's head and then its body within a time of its own."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._left: int | None = None
        self._seconds, self._until = 0.0, 0.0

    def expect_head(self, seconds: float) -> None:
        """A head may begin in so long, and then take as long again."""
        self._left, self._seconds, self._until = MOST_HEAD, seconds, time.monotonic() + seconds

    def expect_body(self, seconds: float) -> None:
        """A body has so long."""
        self._left, self._until = None, time.monotonic() + seconds

    def readable(self) -> bool:
        """See `io.RawIOBase`."""
        return True

    def readinto(self, buffer: Any) -> int:
        """See `io.RawIOBase`; raises `TimeoutError` where it takes too long."""
        if self._left is not None and self._left <= 0:
            raise TooLong
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        n = self._connection.recv_into(buffer)
        if self._left is not None:
            if self._left == MOST_HEAD:
                self._until = time.monotonic() + self._seconds
            self._left -= n
        return n


class Slots:
    """How many of something may be there at once; None: any number."""

    def __init__(self, most: int | None) -> None:
        self._most, self._taken = most, 0
        self._changed = threading.Condition()

    def take(self) -> bool:
        """One of them, where there is one; it has to be given back."""
        with self._changed:
            if self._most is not None and self._taken >= self._most:
                return False
            self._taken += 1
            return True

    def give_back(self) -> None:
        """What was taken."""
        with self._changed:
            self._taken -= 1
            self._changed.notify_all()

    def close(self) -> None:
        """Have none to take any more."""
        with self._changed:
            self._most = 0

    def empty(self, seconds: float) -> bool:
        """Wait until all are given back, at most so long; whether they are."""
        with self._changed:
            return self._changed.wait_for(lambda: self._taken == 0, seconds)
