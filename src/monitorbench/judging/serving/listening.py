"""The port of a server of ours, its name in URLs, and the signal that ends it."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from monitorbench.config.base import UserError
from monitorbench.config.ending import SWEEP_VARIABLE

LOOPBACK = {"127.0.0.1", "localhost"}
"""Only this machine reaches these; on any other `engine.host` a server asks for a key."""
EVERYWHERE = {"0.0.0.0"}


def free_port(host: str, port: int, group: str = "engine") -> int:
    """The port of a host, a free one for 0; `UserError` where it is taken.

    `group` is that of the settings `host` and `port`, for errors.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise UserError(f"{group}.port={port}: can't be had on {host} ({error.strerror})") from error
        bound_port: int = probe.getsockname()[1]
        return bound_port


def reached_at(host: str, group: str = "engine") -> str:
    """The host's name in a URL; of 0.0.0.0 this machine's, and `UserError` where that leads nowhere."""
    if host not in EVERYWHERE:
        return host
    for name in (socket.gethostname(), socket.getfqdn()):
        try:
            socket.gethostbyname(name)
        except OSError:
            continue
        return name
    raise UserError(
        f"{group}.host=0.0.0.0: this machine's name can't be resolved; expected an address of it in its place"
    )


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM does what Ctrl-C does; in a sweep both leave the run pending, as for any other script."""
    if SWEEP_VARIABLE in os.environ:
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
